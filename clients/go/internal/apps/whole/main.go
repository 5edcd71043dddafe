// A program as users write it, for the tests of the whole way.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"time"

	"holdfast-queue/holdfast"
)

// Add adds two numbers.
type Add struct {
	A int `json:"a"`
	B int `json:"b"`
}

// Kind is the type.
func (Add) Kind() string { return "add" }

// Options keep the sum.
func (Add) Options() []holdfast.TypeOption {
	return []holdfast.TypeOption{holdfast.Keep(time.Hour)}
}

// Does is a job that does what it says.
type Does struct {
	What string `json:"what"`
}

// Kind is the type.
func (Does) Kind() string { return "does" }

// Options keep the job.
func (Does) Options() []holdfast.TypeOption {
	return []holdfast.TypeOption{holdfast.Keep(time.Hour), holdfast.Queue("second")}
}

var errNever = errors.New("never again")

func does(ctx context.Context, job *holdfast.Job[Does]) (string, error) {
	switch job.Args.What {
	case "third":
		if job.Attempt < 3 {
			return "", holdfast.RetryIn(10*time.Millisecond, fmt.Errorf("attempt %d", job.Attempt))
		}
		return fmt.Sprint("attempt ", job.Attempt), nil
	case "panic":
		var m map[string]int
		m["x"] = 1
	case "dead":
		return "", fmt.Errorf("really: %w", errNever)
	case "wait":
		if err := job.Progress(10, "waiting"); err != nil {
			return "", err
		}
		<-ctx.Done()
		return "", context.Cause(ctx)
	case "spin":
		// It need not compute for the whole grace of 5 s: only when the worker asks for its stack.
		time.Sleep(4 * time.Second)
		for i := 0; ; i++ {
			spun = i
		}
	case "tenant":
		slog.InfoContext(ctx, "here")
		return job.Headers["tenant"] + " " + holdfast.CurrentRun(ctx).Type, nil
	}
	return "", fmt.Errorf("no such thing: %s", job.Args.What)
}

var spun int

func main() {
	slog.SetDefault(slog.New(holdfast.LogHandler(slog.NewTextHandler(os.Stderr, nil))))
	mux := holdfast.NewMux()
	mux.OnStart(func(context.Context) error {
		slog.Info("start")
		return nil
	})
	mux.OnStop(func() { slog.Info("stop") })
	holdfast.HandleResult(mux, func(_ context.Context, job *holdfast.Job[Add]) (int, error) {
		return job.Args.A + job.Args.B, nil
	})
	holdfast.HandleResult(mux, does, holdfast.MaxAttempts(3), holdfast.DeadOn(errNever),
		holdfast.Backoff(func(int, error) time.Duration { return 10 * time.Millisecond }))
	log.Fatal(holdfast.Run(context.Background(), mux))
}
