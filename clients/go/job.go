package holdfast

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"holdfast-queue/holdfast/internal/pipe"
)

// A JobRun is one run of a job, for code that does not know its arguments, such as
// middleware.
type JobRun struct {
	ID          string
	Type        string
	Queue       string
	Attempt     int // 1 the first time
	MaxAttempts int
	Fence       int64     // rises with every later run of the same job: a store can refuse a write with a lower one
	Created     time.Time // zero: not known
	Scheduled   time.Time // the tick of the schedule that made the job; zero: none did
	Headers     map[string]string
	Trace       string // a W3C traceparent, or ""
	Payload     []byte

	channel    channel
	checkpoint []byte
	result     []byte
	resultJSON bool
}

// A Job is one run of a job with its arguments.
type Job[T Args] struct {
	*JobRun
	Args T
}

// A channel is where a run reports itself. A run that a test has made has none.
type channel interface {
	Progress(percent int, note string)
	SetCheckpoint(data []byte)
	Log(text []byte)
	Stopping() bool
}

// CurrentRun returns the run whose context this is, or nil outside of a handler.
func CurrentRun(ctx context.Context) *JobRun {
	if at := pipe.Current(ctx); at != nil {
		run, _ := at.Local.(*JobRun)
		return run
	}
	run, _ := ctx.Value(fakeKey{}).(*JobRun)
	return run
}

func runOf(at *pipe.Run) *JobRun {
	fence, _ := strconv.ParseInt(at.Fence, 10, 64)
	run := &JobRun{
		ID: at.ID, Type: at.Type, Queue: at.Queue, Attempt: at.Attempt, MaxAttempts: at.MaxAttempts, Fence: fence,
		Created: at.Created, Scheduled: at.Scheduled, Headers: at.Headers, Trace: at.Trace, Payload: at.Payload,
		channel: at, checkpoint: at.Checkpoint,
	}
	at.Local = run
	return run
}

// Progress tells how far the run is: 0 to 100, and a note of at most 256 bytes.
func (r *JobRun) Progress(percent int, note string) error {
	if percent < 0 || percent > 100 {
		return fmt.Errorf("expected a percent from 0 to 100, found %d", percent)
	}
	if len(note) > pipe.MaxNote {
		return tooLarge("note", pipe.MaxNote, len(note))
	}
	if r.channel != nil {
		r.channel.Progress(percent, note)
	}
	return nil
}

// Checkpoint returns what an earlier run of this job has kept, or nil.
func (r *JobRun) Checkpoint() []byte { return r.checkpoint }

// SetCheckpoint keeps up to 4 KiB for the next run of this job. An empty one
// removes it.
func (r *JobRun) SetCheckpoint(data []byte) error {
	if len(data) > pipe.MaxCheckpoint {
		return tooLarge("checkpoint", pipe.MaxCheckpoint, len(data))
	}
	if r.channel != nil {
		r.channel.SetCheckpoint(data)
	}
	r.checkpoint = slices.Clone(data)
	return nil
}

// Log adds lines to the log of this run, which `holdfast job logs` prints if its
// pool keeps logs. The arguments are those of fmt.Sprintf.
func (r *JobRun) Log(format string, args ...any) {
	if r.channel != nil {
		r.channel.Log(fmt.Appendf(nil, format, args...))
	}
}

// Stopping reports whether the worker has said that this process gets no more
// jobs. The run may go on; its context has not ended.
func (r *JobRun) Stopping() bool { return r.channel != nil && r.channel.Stopping() }

func tooLarge(what string, most, found int) error {
	return fmt.Errorf("%s: expected at most %d bytes, found %d: %w", what, most, found, ErrTooLarge)
}

// setResult keeps what a handler has returned.
func (r *JobRun) setResult(body []byte, isJSON bool) error {
	if len(body) > pipe.MaxResult {
		return tooLarge("result", pipe.MaxResult, len(body))
	}
	r.result, r.resultJSON = body, isJSON
	return nil
}
