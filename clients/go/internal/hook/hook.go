// Package hook lets the package holdfasttest take the place of Redis and of the
// worker. Package holdfast fills its variables.
package hook

import (
	"context"

	"holdfast-queue/holdfast/internal/pipe"
)

// MaxAttempts is how often a worker without other settings tries a job.
const MaxAttempts = 20

// A Job is one that was enqueued.
type Job struct {
	ID      string // "": a new one
	Type    string
	Queue   string
	Args    any // as they were given
	Payload []byte
	Headers map[string]string
	Due     int64 // 0: now; a time in Unix ms; or minus a delay
	Kept    bool  // it has Keep

	MaxAttempts int // 0: what its handler says

	Unique     string
	OnConflict string
	Debounced  bool
}

// An Answer says what happened to a job, as the fields of a JobRef.
type Answer struct {
	ID      string
	Outcome string
	Ref     Ref
}

// A Ref is the fate of a job.
type Ref interface {
	Cancel() bool
	State() string
	Result() (kind string, body []byte, err error)
}

// A Sink takes jobs instead of Redis.
type Sink interface {
	Enqueue(ctx context.Context, jobs []*Job) ([]Answer, error)

	// Find returns a job that was enqueued, or nil.
	Find(id, queue string) Ref
}

// A Channel is where a run reports itself.
type Channel interface {
	Progress(percent int, note string)
	SetCheckpoint(data []byte)
	Log(text []byte)
	Stopping() bool
}

var (
	// NewClient returns a *holdfast.Client.
	NewClient func(queue string, sink Sink) any

	// NewID makes an id.
	NewID func() string

	// Run runs a job with the handlers of a *holdfast.Mux. err is what the
	// handler has returned.
	Run func(ctx context.Context, mux any, job *Job, attempt int) (verdict pipe.Verdict, err error)

	// SetChannel lets a *holdfast.JobRun report itself.
	SetChannel func(run any, channel Channel)
)
