// The types of `holdfast conform` (docs/pipe.md).
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"strconv"
	"time"

	"holdfast-queue/holdfast"
)

var handlers = map[string]func(ctx context.Context, run *holdfast.JobRun) ([]byte, error){
	"echo": func(_ context.Context, run *holdfast.JobRun) ([]byte, error) { return run.Payload, nil },
	"fail": func(_ context.Context, run *holdfast.JobRun) ([]byte, error) {
		return nil, errors.New(string(run.Payload))
	},
	"dead": func(_ context.Context, run *holdfast.JobRun) ([]byte, error) {
		return nil, holdfast.Dead(errors.New(string(run.Payload)))
	},
	"sleep": func(ctx context.Context, run *holdfast.JobRun) ([]byte, error) {
		ms, err := strconv.Atoi(string(run.Payload))
		if err != nil {
			return nil, err
		}
		select {
		case <-time.After(time.Duration(ms) * time.Millisecond):
			return nil, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	},
	"print": func(_ context.Context, run *holdfast.JobRun) ([]byte, error) {
		_, err := fmt.Printf("%s\n", run.Payload)
		return nil, err
	},
	"exit": func(_ context.Context, run *holdfast.JobRun) ([]byte, error) {
		status, err := strconv.Atoi(string(run.Payload))
		if err == nil {
			os.Exit(status)
		}
		return nil, err
	},
	"fork": func(ctx context.Context, _ *holdfast.JobRun) ([]byte, error) {
		return nil, exec.CommandContext(ctx, "true").Run()
	},
	"progress": func(_ context.Context, run *holdfast.JobRun) ([]byte, error) {
		return nil, run.Progress(50, string(run.Payload[:min(80, len(run.Payload))]))
	},
	"log": func(_ context.Context, run *holdfast.JobRun) ([]byte, error) {
		run.Log("%s", run.Payload)
		return nil, nil
	},
	"checkpoint": func(_ context.Context, run *holdfast.JobRun) ([]byte, error) {
		earlier := run.Checkpoint()
		return earlier, run.SetCheckpoint(run.Payload)
	},
}

func main() {
	mux := holdfast.NewMux()
	for name, handler := range handlers {
		mux.HandleBytes(name, handler)
	}
	holdfast.HandleResult(mux, func(_ context.Context, job *holdfast.Job[headers]) (map[string]string, error) {
		return job.Headers, nil
	})
	log.Fatal(holdfast.Run(context.Background(), mux))
}

// headers are the arguments of a type that looks at its headers only.
type headers struct{}

func (headers) Kind() string { return "headers" }
