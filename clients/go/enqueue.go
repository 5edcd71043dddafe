package holdfast

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

const (
	jobsMax    = 10000    // of one call
	bytesMax   = 64 << 20 // of its records
	payloadMax = 63 << 20
)

// The codes of an answer.
const (
	codeOK     = 0
	codeExists = -1
	codeGone   = -3
	codeLate   = -4
	codeRuns   = -6
	codeDead   = -7
)

// A pending job is one that is about to be enqueued.
type pending struct {
	kind    string
	plan    plan
	payload []byte
	args    any
}

// Enqueue enqueues a job.
//
// A request whose answer is lost is sent again as it was, and executed once. If
// Redis does not answer in time the error is ErrNoAnswer, and the job may have
// been accepted; with an ID a second call is safe then. If ctx had ended before the
// call, the error is its cause, and nothing was sent.
func Enqueue(ctx context.Context, c *Client, args Args, options ...EnqueueOption) (*JobRef, error) {
	job, err := c.job(args, options)
	if err != nil {
		return nil, err
	}
	return first(c.enqueue(ctx, []*pending{job}))
}

// EnqueueMany enqueues up to 10,000 jobs of one queue with one request: all of
// them, or none. Their arguments may be of several types if T is Args. The
// options are those of each job; With gives one of them options of its own, such as
// an ID.
func EnqueueMany[T Args](ctx context.Context, c *Client, args []T, options ...EnqueueOption) ([]*JobRef, error) {
	jobs := make([]*pending, len(args))
	for i := range args {
		var err error
		if jobs[i], err = c.job(args[i], options); err != nil {
			return nil, fmt.Errorf("job %d: %w", i+1, err)
		}
	}
	return c.enqueue(ctx, jobs)
}

// With gives the arguments of one job of EnqueueMany options of its own.
func With(args Args, options ...EnqueueOption) Args { return withOptions{args, options} }

type withOptions struct {
	Args
	options []EnqueueOption
}

// Send enqueues a job of a type whose arguments are not known here. A payload of
// bytes goes as it is, nil is empty, and anything else goes as JSON.
func (c *Client) Send(ctx context.Context, kind string, payload any, options ...EnqueueOption) (*JobRef, error) {
	job := &pending{kind: kind, args: payload}
	err := checkName(kind, "a type")
	switch value := payload.(type) {
	case nil:
	case []byte:
		job.payload = value
	case json.RawMessage:
		job.payload = value
	default:
		if err == nil {
			job.payload, err = toJSON(payload)
		}
	}
	if err == nil {
		err = job.plan.read(c, nil, options)
		job.plan.kept = true // perhaps: its handler knows
	}
	if err != nil {
		return nil, err
	}
	return first(c.enqueue(ctx, []*pending{job}))
}

// Ref returns a job that was enqueued elsewhere. An empty queue is that of the
// client.
func (c *Client) Ref(id, queue string) *JobRef {
	if queue == "" {
		queue = c.queue
	}
	ref := &JobRef{ID: id, Queue: queue, Outcome: OutcomeExists, client: c, kept: true}
	if c.sink != nil {
		ref.fake = c.sink.Find(id, queue)
	}
	return ref
}

func first(refs []*JobRef, err error) (*JobRef, error) {
	if err != nil {
		return nil, err
	}
	return refs[0], nil
}

// job reads arguments and options.
func (c *Client) job(args Args, options []EnqueueOption) (*pending, error) {
	for with, ok := args.(withOptions); ok; with, ok = args.(withOptions) {
		args, options = with.Args, slices.Concat(options, with.options)
	}
	kind, payload, err := payloadOf(args)
	if err != nil {
		return nil, err
	}
	job := &pending{kind: kind, payload: payload, args: args}
	var own []TypeOption
	if with, ok := args.(ArgsWithOptions); ok {
		own = with.Options()
	}
	return job, job.plan.read(c, own, options)
}

// read applies the options of a type, then those of a call. What the worker
// learns from the handler's program is not repeated in the record.
func (p *plan) read(c *Client, own []TypeOption, options []EnqueueOption) error {
	p.queue = c.queue
	for _, option := range own {
		if err := option.applyType(p); err != nil {
			return err
		}
	}
	p.maxAttempts, p.timeout, p.keep, p.onDead = 0, 0, 0, ""
	for _, option := range options {
		if err := option.applyEnqueue(p); err != nil {
			return err
		}
	}
	return p.check()
}

func (c *Client) enqueue(ctx context.Context, jobs []*pending) ([]*JobRef, error) {
	if c.err != nil {
		return nil, c.err
	}
	for _, job := range jobs {
		if err := c.callHooks(ctx, job); err != nil {
			return nil, err
		}
	}
	if err := checkJobs(jobs); err != nil || len(jobs) == 0 {
		return nil, err
	}
	if c.sink != nil {
		return c.enqueueFake(ctx, jobs)
	}
	return c.accept(ctx, jobs)
}

func (c *Client) callHooks(ctx context.Context, job *pending) error {
	if len(c.hooks) == 0 {
		return nil
	}
	call := &Call{Type: job.kind, Queue: job.plan.queue, Args: job.args, plan: &job.plan}
	for _, hook := range c.hooks {
		if err := hook(ctx, call); err != nil {
			return err
		}
	}
	return checkHeaders(job.plan.headers)
}

// checkJobs looks at what Redis cannot accept all or none.
func checkJobs(jobs []*pending) error {
	if len(jobs) > jobsMax {
		return fmt.Errorf("expected at most %d jobs in one call, found %d", jobsMax, len(jobs))
	}
	for _, job := range jobs {
		if job.plan.queue != jobs[0].plan.queue {
			return fmt.Errorf("expected jobs of one queue, which are accepted all or none, found '%s' and '%s'",
				jobs[0].plan.queue, job.plan.queue)
		}
		if len(job.payload) > payloadMax {
			return fmt.Errorf("%s: expected a payload of at most %d bytes, found %d", job.kind, payloadMax, len(job.payload))
		}
	}
	return nil
}

// accept sends the jobs. If another job has an id that was made, it makes others.
func (c *Client) accept(ctx context.Context, jobs []*pending) ([]*JobRef, error) {
	started, queue := time.Now(), jobs[0].plan.queue
	if err := c.register(ctx, queue); err != nil {
		return nil, err
	}
	lane := c.takeLane()
	defer c.putLane(lane)
	for range 8 {
		tag, err := c.tagOf(queue, jobs)
		if err != nil {
			return nil, err
		}
		ids := c.ids.next(len(jobs))
		script, words, size := words(jobs, ids)
		if size > bytesMax {
			return nil, fmt.Errorf("expected at most %d bytes of jobs in one call, found %d", bytesMax, size)
		}
		lane.number++
		waited := time.Since(started).Milliseconds()
		answer, err := c.link.sendKnown(ctx, c.knownUntil(), script, c.prefix(tag),
			append([]any{lane.producer, lane.number, 0, c.remember, waited}, words...)...)
		var sharded *shardedError
		switch {
		case errors.As(err, &sharded):
			c.shards.Store(queue, sharded.tags)
		case err != nil:
			return nil, err
		case intOf(answer[0]) == codeLate:
			return nil, fmt.Errorf("%w at first, and its clock was set forward since then", ErrNoAnswer)
		case intOf(answer[0]) == codeOK:
			c.noteTime(answer)
			return c.refs(jobs, ids, tag, answer), nil
		case intOf(answer[0]) != codeExists:
			return nil, &RefusedError{fmt.Sprintf("%s answered %d", script, intOf(answer[0]))}
		}
	}
	return nil, &RefusedError{"all ids that were made are in use: is the clock of this machine set far back?"}
}

// words are the jobs as arguments of a script. It replaces the ids of jobs that
// have chosen one.
func words(jobs []*pending, ids []string) (script string, words []any, size int) {
	script = "enqueue"
	words = make([]any, 0, 3*len(jobs)+1)
	made := make([]byte, len(jobs))
	now, chosen := time.Now().UnixMilli(), false
	for i, job := range jobs {
		created := int64(0)
		made[i] = 'n'
		if job.plan.id != "" {
			ids[i], created, made[i], chosen = job.plan.id, now, 'c', true
		}
		if job.plan.optional() {
			script = "enqueue_with"
		}
		record := job.plan.record(job.kind, created, job.payload)
		size += len(record)
		words = append(words, ids[i], job.plan.due, record)
	}
	if !chosen {
		made = made[:1]
	}
	made[0] -= 'a' - 'A' // checked here: the script need not look at each character
	return script, append(words, string(made)), size
}

// tagOf returns the queue, or the shard of it, that gets the jobs.
func (c *Client) tagOf(queue string, jobs []*pending) (string, error) {
	known, ok := c.shards.Load(queue)
	if !ok {
		return queue, nil
	}
	tags, place := known.([]string), -1
	for _, job := range jobs {
		text := job.plan.unique
		if text == "" {
			text = job.plan.id
		}
		if text == "" {
			continue
		}
		if shard := shardOf(text, len(tags)); place >= 0 && shard != place {
			return "", fmt.Errorf("expected jobs of one shard of queue '%s', which are accepted all or none: their ids "+
				"and unique keys belong to several", queue)
		} else {
			place = shard
		}
	}
	if place < 0 {
		place = int(c.turn.Add(1) % uint64(len(tags)))
	}
	return tags[place], nil
}

// refs reads what happened to each job.
func (c *Client) refs(jobs []*pending, ids []string, tag string, answer []any) []*JobRef {
	list := func(i int) []any {
		if i >= len(answer) {
			return nil
		}
		values, _ := answer[i].([]any)
		return values
	}
	refs := make([]*JobRef, len(jobs))
	codes := list(3)
	for i, job := range jobs {
		refs[i] = &JobRef{ID: ids[i], Queue: job.plan.queue, Outcome: OutcomeNew, client: c, tag: tag, kept: job.plan.kept}
		if i < len(codes) {
			switch intOf(codes[i]) {
			case codeExists, codeRuns, codeDead:
				refs[i].Outcome, refs[i].kept = OutcomeExists, true
			}
		}
	}
	for met := range slices.Chunk(list(4), 4) {
		ref := refs[intOf(met[0])-1]
		ref.Outcome = Outcome(textOf(met[1]))
		if ref.Outcome != OutcomeParked {
			ref.ID = textOf(met[2])
		}
		if ref.Outcome == OutcomeSkipped {
			ref.kept = true
		}
	}
	for awaited := range slices.Chunk(list(5), 2) {
		refs[intOf(awaited[0])-1].accepted = numberOf(awaited[1])
	}
	return refs
}
