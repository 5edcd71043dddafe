package holdfast

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"holdfast-queue/holdfast/internal/pipe"
)

// Errors of calls that need Redis.
var (
	// ErrNoAnswer says that Redis has not answered in time. The request may have
	// been executed all the same.
	ErrNoAnswer = errors.New("no answer from Redis")

	// ErrNotKept says that a job has no result, because it is not kept when it
	// is done: give it Keep.
	ErrNotKept = errors.New("the job is not kept when it is done, so it has no result: give it Keep")

	// ErrJobCancelled says that a job was cancelled or deleted.
	ErrJobCancelled = errors.New("the job was cancelled or deleted")

	// ErrJobExpired says that a job did not start in time.
	ErrJobExpired = errors.New("the job did not start in time")

	// ErrJobUnknown says that Redis knows no such job: it is done and is kept no
	// longer, or it never was.
	ErrJobUnknown = errors.New("Redis does not know the job: it is done and is kept no longer, or it never was")

	// ErrTooLarge says that a result, a checkpoint or a note is larger than
	// Holdfast keeps. A handler that returns it ends its job as dead.
	ErrTooLarge = errors.New("larger than Holdfast keeps")
)

// The causes of the context of a run: context.Cause(ctx) says why it ended.
var (
	ErrTimeout   error = pipe.ErrTimeout   // its time-out is over
	ErrCancelled error = pipe.ErrCancelled // the job was cancelled
	ErrStopping  error = pipe.ErrStopping  // the worker stops, and its patience is over
	ErrLost      error = pipe.ErrLost      // the job may already run elsewhere
	ErrGone      error = pipe.ErrGone      // the worker has ended: Run returns it, too
)

// A RefusedError says that Redis or a script has refused a request. Nothing was
// changed.
type RefusedError struct{ Text string }

func (e *RefusedError) Error() string { return "Redis refused: " + e.Text }

// A JobDeadError says that a job is dead.
type JobDeadError struct {
	ID, Queue string
	Text      string // its last error, and the stack behind it if there was one
}

// Error has the first line of Text.
func (e *JobDeadError) Error() string {
	line, _, _ := strings.Cut(e.Text, "\n")
	return fmt.Sprintf("job %s is dead: %s", e.ID, line)
}

// A PanicError is what a panic of a handler becomes: a failed attempt.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Unwrap returns the value of the panic if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// A verdict is an error that says how a run ends.
type verdict struct {
	kind pipe.Kind
	in   *time.Duration
	err  error
}

func (v *verdict) Error() string {
	if v.err == nil {
		return ""
	}
	return v.err.Error()
}

func (v *verdict) Unwrap() error { return v.err }

// RetryIn lets the attempt fail, and the job run again after d.
func RetryIn(d time.Duration, err error) error { return &verdict{pipe.Retry, &d, err} }

// Dead lets the job be dead at once: it will not run again until an operator
// retries it by hand.
func Dead(err error) error { return &verdict{pipe.Dead, nil, err} }

// Cancel says that the job is not wanted any more: it is removed, and counts as
// cancelled.
func Cancel(err error) error { return &verdict{pipe.Cancel, nil, err} }

// Release puts the job back into its queue, and the attempt does not count.
func Release(err error) error { return &verdict{pipe.Release, nil, err} }

// ReleaseIn does the same, and lets the job run again after d.
func ReleaseIn(d time.Duration, err error) error { return &verdict{pipe.Release, &d, err} }

// IsVerdict reports whether an error was made by RetryIn, Release, ReleaseIn, Dead
// or Cancel.
func IsVerdict(err error) bool {
	var chosen *verdict
	return errors.As(err, &chosen)
}
