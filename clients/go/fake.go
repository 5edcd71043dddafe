package holdfast

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"holdfast-queue/holdfast/internal/hook"
	"holdfast-queue/holdfast/internal/pipe"
)

var errTesting = errors.New("expected a job in Redis: a test has none")

// fakeKey is the key of the run of a test in its context.
type fakeKey struct{}

// init gives package holdfasttest what only this package can do.
func init() {
	hook.NewClient = func(queue string, sink hook.Sink) any {
		c := New(Options{URL: "unix:///nowhere", Queue: queue})
		c.sink = sink
		return c
	}
	hook.NewID = func() string { return testIDs.next(1)[0] }
	hook.Run = func(ctx context.Context, mux any, job *hook.Job, attempt int) (pipe.Verdict, error) {
		return mux.(*Mux).runFake(ctx, job, attempt)
	}
	hook.SetChannel = func(run any, channel hook.Channel) { run.(*JobRun).channel = channel }
}

var testIDs idMaker

// enqueueFake gives jobs to the sink of a test.
func (c *Client) enqueueFake(ctx context.Context, jobs []*pending) ([]*JobRef, error) {
	taken := make([]*hook.Job, len(jobs))
	for i, job := range jobs {
		p := &job.plan
		taken[i] = &hook.Job{ID: p.id, Type: job.kind, Queue: p.queue, Args: job.args, Payload: job.payload, Due: p.due,
			Headers: map[string]string{}, Unique: p.unique, OnConflict: p.onConflict, Debounced: p.debounce != 0,
			Kept: p.kept, MaxAttempts: int(p.maxAttempts)}
		for _, h := range p.headers {
			taken[i].Headers[h.name] = h.value
		}
	}
	answers, err := c.sink.Enqueue(ctx, taken)
	if err != nil {
		return nil, err
	}
	refs := make([]*JobRef, len(jobs))
	for i, answer := range answers {
		refs[i] = &JobRef{ID: answer.ID, Queue: jobs[i].plan.queue, Outcome: Outcome(answer.Outcome), client: c,
			kept: true, fake: answer.Ref}
	}
	return refs, nil
}

func (m *Mux) runFake(ctx context.Context, job *hook.Job, attempt int) (pipe.Verdict, error) {
	k, known := m.kinds[job.Type]
	if !known {
		return unknown(job.Type), fmt.Errorf("expected a handler for the type '%s', found none", job.Type)
	}
	run := &JobRun{ID: job.ID, Type: job.Type, Queue: job.Queue, Attempt: attempt,
		MaxAttempts: cmp.Or(job.MaxAttempts, int(k.plan.maxAttempts), hook.MaxAttempts), Created: time.Now(),
		Headers: maps.Clone(job.Headers), Payload: job.Payload}
	ctx = context.WithValue(ctx, fakeKey{}, run)
	err := call(ctx, run, m.chain(k))
	verdict := k.verdict(ctx, run, err)
	if verdict.Kind == pipe.Retry && attempt >= run.MaxAttempts {
		verdict.Kind = pipe.Dead
	}
	return verdict, err
}
