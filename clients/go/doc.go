// Package holdfast enqueues jobs on Holdfast, a work queue on Redis whose jobs
// are held by locks, and runs their handlers.
//
// The arguments of a job are a struct that names its type:
//
//	type SendEmail struct {
//		To string `json:"to"`
//	}
//
//	func (SendEmail) Kind() string { return "email.send" }
//
// A program enqueues such jobs, and needs no worker for that:
//
//	hf := holdfast.New(holdfast.Options{}) // the Redis at REDIS_URL
//	ref, err := holdfast.Enqueue(ctx, hf, SendEmail{To: "ada@example.com"}, holdfast.Delay(10*time.Minute))
//
// Another one, or the same, has the handlers, and is the worker:
//
//	mux := holdfast.NewMux()
//	holdfast.Handle(mux, func(ctx context.Context, job *holdfast.Job[SendEmail]) error {
//		return smtp.Send(ctx, job.Args.To)
//	}, holdfast.Timeout(30*time.Second))
//	log.Fatal(holdfast.Run(ctx, mux))
//
// The manual is docs/go.md of the repository.
package holdfast

// Version is the version of this package.
const Version = "0.2.0"
