package holdfast

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"holdfast-queue/holdfast/internal/pipe"
)

// unknownWait is how long a job waits that came to a program without its type.
const unknownWait = 10 * time.Second

// chain returns what runs a job: its handler inside of the middleware.
func (m *Mux) chain(k *kind) Handler {
	handler := k.handler
	for i := len(m.middleware) - 1; i >= 0; i-- {
		handler = m.middleware[i](handler)
	}
	return handler
}

// call runs a job. A panic is an error.
func call(ctx context.Context, run *JobRun, handler Handler) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &PanicError{value, stack()}
		}
	}()
	return handler(ctx, run)
}

func unknown(name string) pipe.Verdict {
	wait := unknownWait
	return pipe.Verdict{Kind: pipe.Release, In: &wait,
		Error: fmt.Sprintf("this process has no handler for the type '%s'", name)}
}

// verdict says what an error of a handler means.
func (k *kind) verdict(ctx context.Context, run *JobRun, err error) pipe.Verdict {
	if err == nil {
		return pipe.Verdict{Kind: pipe.Done, Body: run.result, JSON: run.resultJSON}
	}
	var chosen *verdict
	var misfit *misfitError
	switch {
	case errors.As(err, &chosen):
		return failure(chosen.kind, chosen.in, err)
	case errors.As(err, &misfit), errors.Is(err, ErrTooLarge), is(err, k.deadOn):
		return failure(pipe.Dead, nil, err)
	}
	if cause := context.Cause(ctx); cause != nil && ended(err, cause) {
		return interrupted(cause, err)
	}
	if k.retryOn != nil && !is(err, k.retryOn) {
		return failure(pipe.Dead, nil, err)
	}
	if k.backoff != nil {
		if wait := k.backoff(run.Attempt, err); wait >= 0 {
			return failure(pipe.Retry, &wait, err)
		}
	}
	return failure(pipe.Retry, nil, err)
}

// ended reports whether an error says that the context has ended.
func ended(err, cause error) bool {
	return errors.Is(err, cause) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// interrupted is the verdict of a run that the worker has asked to end.
func interrupted(cause, err error) pipe.Verdict {
	switch {
	case errors.Is(cause, ErrCancelled):
		return pipe.Verdict{Kind: pipe.Cancel, Error: "cancelled"}
	case errors.Is(cause, ErrTimeout):
		return failure(pipe.Retry, nil, fmt.Errorf("timed out: %w", err))
	}
	return pipe.Verdict{Kind: pipe.Release}
}

// failure reports an error: its first line, then the others and the stack of a
// panic.
func failure(kind pipe.Kind, in *time.Duration, err error) pipe.Verdict {
	text, rest, _ := strings.Cut(err.Error(), "\n")
	if text == "" && kind != pipe.Release && kind != pipe.Cancel {
		text = "the handler returned an error without a text"
	}
	body := []byte(rest)
	var panicked *PanicError
	if errors.As(err, &panicked) {
		body = append(body, panicked.Stack...)
	}
	// The worker keeps the end of what follows, and a stack of Go begins with
	// what matters.
	room := max(0, pipe.MaxError-len(text)-1)
	return pipe.Verdict{Kind: kind, In: in, Error: text, Body: body[:min(len(body), room)]}
}

// stack returns the stack of a panic, from the function that panicked on.
func stack() []byte {
	whole := debug.Stack()
	if at := bytes.Index(whole, []byte("\npanic(")); at >= 0 {
		lines := bytes.SplitN(whole[at+1:], []byte("\n"), 3)
		return lines[len(lines)-1]
	}
	return whole
}
