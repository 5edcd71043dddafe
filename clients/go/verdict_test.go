package holdfast

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast-queue/holdfast/internal/pipe"
)

var errBusy, errGone = errors.New("busy"), errors.New("gone")

// verdictOf runs a handler of email as a worker's process does.
func verdictOf(ctx context.Context, payload string, handler func(context.Context, *Job[email]) (any, error),
	options ...HandleOption) pipe.Verdict {
	m := NewMux()
	HandleResult(m, handler, options...)
	k := m.kinds["email.send"]
	run := &JobRun{ID: "a", Type: "email.send", Attempt: 2, Payload: []byte(payload)}
	return k.verdict(ctx, run, call(ctx, run, m.chain(k)))
}

func TestVerdicts(t *testing.T) {
	ended := func(cause error) context.Context {
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(cause)
		return ctx
	}
	for _, c := range []struct {
		name     string
		ctx      context.Context
		payload  string
		value    any
		err      error
		options  []HandleOption
		kind     pipe.Kind
		in       time.Duration // -1: none
		text     string
		body     string
		bodyJSON bool
	}{
		{name: "nothing", kind: pipe.Done, in: -1},
		{name: "a value", value: map[string]int{"rows": 20}, kind: pipe.Done, in: -1, body: `{"rows":20}`, bodyJSON: true},
		{name: "bytes", value: []byte{0, '\n'}, kind: pipe.Done, in: -1, body: "\x00\n"},
		{name: "a value that JSON cannot express", value: func() {}, kind: pipe.Dead, in: -1, text: "result: json: unsupported type: func()"},
		{name: "too large", value: strings.Repeat("x", 65535), kind: pipe.Dead, in: -1,
			text: "result: expected at most 65536 bytes, found 65537: larger than Holdfast keeps"},
		{name: "an error", err: errBusy, kind: pipe.Retry, in: -1, text: "busy"},
		{name: "an error of lines", err: errors.Join(errBusy, errGone), kind: pipe.Retry, in: -1, text: "busy", body: "gone"},
		{name: "an error without a text", err: errors.New(""), kind: pipe.Retry, in: -1, text: "the handler returned an error without a text"},
		{name: "retry in", err: fmt.Errorf("outer: %w", RetryIn(time.Second, errBusy)), kind: pipe.Retry, in: time.Second, text: "outer: busy"},
		{name: "dead", err: Dead(errGone), kind: pipe.Dead, in: -1, text: "gone"},
		{name: "cancel", err: Cancel(nil), kind: pipe.Cancel, in: -1},
		{name: "release", err: ReleaseIn(0, nil), kind: pipe.Release, in: 0},
		{name: "dead on", err: fmt.Errorf("a: %w", errGone), options: []HandleOption{DeadOn(errGone)}, kind: pipe.Dead, in: -1, text: "a: gone"},
		{name: "no retry on", err: errGone, options: []HandleOption{RetryOn(errBusy)}, kind: pipe.Dead, in: -1, text: "gone"},
		{name: "retry on", err: errBusy, options: []HandleOption{RetryOn(errBusy)}, kind: pipe.Retry, in: -1, text: "busy"},
		{name: "backoff", err: errBusy, options: []HandleOption{Backoff(func(attempt int, err error) time.Duration {
			return time.Duration(attempt) * time.Minute
		})}, kind: pipe.Retry, in: 2 * time.Minute, text: "busy"},
		{name: "the worker's backoff", err: errBusy, options: []HandleOption{Backoff(func(int, error) time.Duration { return -1 })},
			kind: pipe.Retry, in: -1, text: "busy"},
		{name: "a wrong type", payload: `{"to":17}`, kind: pipe.Dead, in: -1, text: "payload: expected string as 'to', found number"},
		{name: "no object", payload: `[]`, kind: pipe.Dead, in: -1, text: "payload: expected an object, found array"},
		{name: "no JSON", payload: `{`, kind: pipe.Dead, in: -1, text: "payload: unexpected end of JSON input"},
		{name: "timed out", ctx: ended(ErrTimeout), err: context.Canceled, kind: pipe.Retry, in: -1, text: "timed out: context canceled"},
		{name: "cancelled", ctx: ended(ErrCancelled), err: ErrCancelled, kind: pipe.Cancel, in: -1, text: "cancelled"},
		{name: "stopped", ctx: ended(ErrStopping), err: fmt.Errorf("x: %w", context.Canceled), kind: pipe.Release, in: -1},
		{name: "lost", ctx: ended(ErrLost), err: context.Canceled, kind: pipe.Release, in: -1},
		{name: "an error of its own after a cancel", ctx: ended(ErrStopping), err: errGone, kind: pipe.Retry, in: -1, text: "gone"},
		{name: "done after a cancel", ctx: ended(ErrTimeout), kind: pipe.Done, in: -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, payload := c.ctx, c.payload
			if ctx == nil {
				ctx = context.Background()
			}
			if payload == "" {
				payload = `{"to":"ada"}`
			}
			v := verdictOf(ctx, payload, func(context.Context, *Job[email]) (any, error) { return c.value, c.err }, c.options...)
			in := time.Duration(-1)
			if v.In != nil {
				in = *v.In
			}
			if v.Kind != c.kind || in != c.in || v.Error != c.text || string(v.Body) != c.body || v.JSON != c.bodyJSON {
				t.Errorf("found %s, in %v, error %q, body %q, JSON %v", v.Kind, in, v.Error, v.Body, v.JSON)
			}
		})
	}
}

func TestAPanicIsAFailedAttemptWithItsStack(t *testing.T) {
	v := verdictOf(context.Background(), `{"to":"ada"}`, func(context.Context, *Job[email]) (any, error) {
		panicsHere(nil)
		return nil, nil
	}, DeadOn(errGone))
	lines := strings.SplitN(string(v.Body), "\n", 2)
	if v.Kind != pipe.Retry || !strings.HasPrefix(v.Error, "panic: assignment to entry in nil map") ||
		!strings.Contains(lines[0], "panicsHere") {
		t.Errorf("found %s %q, and a stack that begins with %q", v.Kind, v.Error, lines[0])
	}
	v = verdictOf(context.Background(), `{"to":"ada"}`, func(context.Context, *Job[email]) (any, error) {
		panic(errGone)
	}, DeadOn(errGone))
	if v.Kind != pipe.Dead {
		t.Errorf("expected the error of a panic to count for DeadOn, found %s", v.Kind)
	}
}

func panicsHere(m map[string]int) { m["x"] = 1 }

func TestMiddlewareIsAroundEachRun(t *testing.T) {
	m := NewMux()
	var told []string
	for _, name := range []string{"outer", "inner"} {
		m.Use(func(next Handler) Handler {
			return func(ctx context.Context, run *JobRun) error {
				told = append(told, name+" "+run.ID)
				err := next(ctx, run)
				told = append(told, "after "+name)
				return err
			}
		})
	}
	Handle(m, func(ctx context.Context, job *Job[email]) error {
		told = append(told, job.Args.To)
		return nil
	})
	k := m.kinds["email.send"]
	run := &JobRun{ID: "a", Payload: []byte(`{"to":"ada"}`)}
	if err := call(context.Background(), run, m.chain(k)); err != nil {
		t.Fatal(err)
	}
	if found := strings.Join(told, ", "); found != "outer a, inner a, ada, after inner, after outer" {
		t.Errorf("found %s", found)
	}
}
