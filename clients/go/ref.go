package holdfast

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"holdfast-queue/holdfast/internal/hook"
)

// An Outcome says what enqueueing did.
type Outcome string

// What enqueueing did.
const (
	OutcomeNew      Outcome = "new"      // the job was accepted
	OutcomeExists   Outcome = "exists"   // a job with the chosen id has not ended, or is dead
	OutcomeSkipped  Outcome = "skipped"  // another job holds its unique key; ID is that job's
	OutcomeReplaced Outcome = "replaced" // that job has taken its payload and options; ID is that job's
	OutcomeParked   Outcome = "parked"   // it waits until that job has ended
)

// A State is what is known of a job.
type State string

// The states of jobs.
const (
	StateWaiting   State = "waiting"
	StateRunning   State = "running"
	StateParked    State = "parked"
	StateDead      State = "dead"
	StateDone      State = "done"
	StateCancelled State = "cancelled"
	StateDeleted   State = "deleted"
	StateExpired   State = "expired"
	StateUnknown   State = "unknown" // it is done and not kept, or it never was
)

var states = map[string]State{
	"schedule": StateWaiting, "schedule:h": StateWaiting, "schedule:l": StateWaiting, "running": StateRunning,
	"parked": StateParked, "dead": StateDead, "done": StateDone,
	"cancelled": StateCancelled, "replaced": StateCancelled, "deleted": StateDeleted, "expired": StateExpired,
}

// lookAgain is how often a caller that waits asks again: Redis reports the end,
// and a message that is lost costs this.
const lookAgain = 2 * time.Second

// A JobRef is a job that was enqueued. It is for one goroutine at a time; Client.Ref
// makes another one of the same job.
type JobRef struct {
	ID      string
	Queue   string
	Outcome Outcome

	client   *Client
	tag      string   // of its shard; "": not known, or its queue has none
	kept     bool     // false: it is known to have no Keep
	accepted int64    // which life of the id is meant: when it was accepted; 0: the present one
	fake     hook.Ref // of a test
}

// String returns the queue and the id.
func (r *JobRef) String() string { return r.Queue + "/" + r.ID }

// Cancel removes a waiting job, and asks the worker of a running one to end it. The
// worker hears it when it next renews the lock, within about a third of the lease. It returns false if the job has ended already.
func (r *JobRef) Cancel(ctx context.Context) (bool, error) {
	if r.fake != nil {
		return r.fake.Cancel(), nil
	}
	answer, err := r.ask(ctx, "cancel", "0 "+randomName(), r.ID)
	if err != nil {
		return false, err
	}
	code := intOf(answer[0])
	return code == codeOK || code == codeRuns, nil
}

// Requeue runs a waiting job now, and a dead one again like a new one. It returns
// false if there is no such job, or it runs, or another job holds its unique key.
func (r *JobRef) Requeue(ctx context.Context) (bool, error) {
	if r.fake != nil {
		return false, errTesting
	}
	answer, err := r.ask(ctx, "requeue", "0 "+randomName(), 0, 0, 0, 0, r.ID)
	if err != nil {
		return false, err
	}
	if intOf(answer[0]) != codeOK || codeOfOne(answer) != codeOK {
		return false, nil
	}
	if r.accepted != 0 { // if it was dead, this life is over
		_, err = r.look(ctx, "job", 0)
	}
	return true, err
}

// look asks for the job. A life that has ended as dead is not asked for again: a
// retry begins another one, which is the answer if there is one already.
func (r *JobRef) look(ctx context.Context, script string, whole int, more ...any) ([]any, error) {
	request := append([]any{r.ID, whole, r.accepted, 0}, more...)
	answer, err := r.ask(ctx, script, request...)
	if err != nil || r.accepted == 0 {
		return answer, err
	}
	there := intOf(answer[0]) == codeOK
	if there && wordAt(answer, 2) == "dead" {
		r.accepted = 0
	}
	if there || wordAt(answer, 4) != "dead" {
		return answer, nil
	}
	r.accepted, request[2] = 0, 0
	if now, err := r.ask(ctx, script, request...); err != nil || intOf(now[0]) == codeOK {
		return now, err
	}
	return answer, nil
}

func codeOfOne(answer []any) int64 {
	if len(answer) < 3 {
		return codeGone
	}
	codes, _ := answer[2].([]any)
	if len(codes) != 1 {
		return codeGone
	}
	return intOf(codes[0])
}

// State returns what is known of the job now.
func (r *JobRef) State(ctx context.Context) (State, error) {
	if r.fake != nil {
		return State(r.fake.State()), nil
	}
	answer, err := r.look(ctx, "job", 0)
	if err != nil {
		return "", err
	}
	place := 2
	if intOf(answer[0]) != codeOK {
		place = 4
	}
	if state, ok := states[wordAt(answer, place)]; ok {
		return state, nil
	}
	return StateUnknown, nil
}

func wordAt(answer []any, i int) string {
	if i >= len(answer) {
		return ""
	}
	return textOf(answer[i])
}

// ask sends a request to the shard that has the job.
func (r *JobRef) ask(ctx context.Context, script string, args ...any) ([]any, error) {
	c := r.client
	if c == nil {
		return nil, errors.New("expected a JobRef of Enqueue or Client.Ref")
	}
	if c.err != nil {
		return nil, c.err
	}
	if c.sink != nil {
		return nil, r.failed(errors.New("the Fake has no such job in queue '" + r.Queue + "'"))
	}
	if err := errors.Join(checkName(r.ID, "ID"), checkName(r.Queue, "Queue")); err != nil {
		return nil, err
	}
	tag := r.tag
	if tag == "" {
		tag = r.Queue
	}
	answer, err := c.link.send(ctx, script, c.prefix(tag), args...)
	var sharded *shardedError
	if !errors.As(err, &sharded) {
		return answer, err
	}
	// A job with a unique key may be in another shard than its id says.
	first := shardOf(r.ID, len(sharded.tags))
	for i := range sharded.tags {
		tag := sharded.tags[(first+i)%len(sharded.tags)]
		if answer, err = c.link.send(ctx, script, c.prefix(tag), args...); err != nil {
			return nil, err
		}
		gone := intOf(answer[0]) == codeGone
		if script == "requeue" {
			gone = codeOfOne(answer) == codeGone
		}
		if !gone || wordAt(answer, 4) != "" {
			r.tag = tag
			break
		}
	}
	return answer, nil
}

// Result waits for the end of a job, and returns what its handler returned: its
// JSON as an R, or its bytes if R is []byte. A job without a result gives the zero
// value. Redis announces the end; in case that is lost, Result asks every 2 s. Give
// ctx a deadline: a job whose type no worker handles waits for ever.
//
// The error is ErrNotKept at once if the job is known to have no Keep. Later it is
// a *JobDeadError, ErrJobCancelled, ErrJobExpired, ErrJobUnknown, or that of ctx.
func Result[R any](ctx context.Context, ref *JobRef) (R, error) {
	var value R
	kind, body, err := ref.result(ctx)
	if err != nil || kind == "" {
		return value, err
	}
	if into, ok := any(&value).(*[]byte); ok {
		*into = body
		return value, nil
	}
	if kind != "json" {
		return value, fmt.Errorf("job %s: expected a result in JSON, found bytes: Result[[]byte] returns them", ref.ID)
	}
	if err := json.Unmarshal(body, &value); err != nil {
		return value, fmt.Errorf("job %s: the result: %w", ref.ID, err)
	}
	return value, nil
}

// result returns the kind of the result, "json", "bytes" or "", and its bytes.
func (r *JobRef) result(ctx context.Context) (kind string, body []byte, err error) {
	if r.fake != nil {
		return r.fake.Result()
	}
	if !r.kept {
		return "", nil, r.failed(ErrNotKept)
	}
	client := randomName()
	for {
		answer, err := r.look(ctx, "await", 1, client, 1)
		if err != nil {
			return "", nil, err
		}
		end, err := r.endOf(answer)
		if err != nil || end != nil {
			return end.kind(), end.body(), err
		}
		if len(answer) > 12 {
			if accepted := numberOf(answer[12]); accepted > 0 {
				r.accepted = accepted
			}
		}
		if err := r.waitForWord(ctx, client); err != nil {
			r.waitNoLonger(client)
			return "", nil, r.failed(err)
		}
	}
}

// waitForWord returns when Redis has told about the end, or might have.
func (r *JobRef) waitForWord(ctx context.Context, client string) error {
	tag := r.tag
	if tag == "" {
		tag = r.Queue
	}
	key := r.client.prefix(tag) + "told:" + client
	told := make(chan error, 1)
	go func() { // the end of a context does not end a read of go-redis
		node, err := r.client.link.node(ctx, key)
		if err == nil {
			err = node.BLPop(context.WithoutCancel(ctx), lookAgain, key).Err()
		}
		told <- err
	}()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case err := <-told:
		if err == nil || errors.Is(err, redis.Nil) {
			return nil
		}
		if remedyOf(err) == fail {
			return refusal(err)
		}
		return sleep(ctx, 100*time.Millisecond)
	}
}

// waitNoLonger lets Redis forget the caller. If it is not told, it forgets it a
// day later.
func (r *JobRef) waitNoLonger(client string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	r.ask(ctx, "await", r.ID, 0, r.accepted, 0, client, 0)
}

func (r *JobRef) failed(err error) error { return fmt.Errorf("job %s: %w", r.ID, err) }

// An end is the result of a job that is done.
type end struct {
	line   string
	result string
}

func (e *end) kind() string {
	var line struct {
		Result string `json:"result"`
	}
	if e == nil || json.Unmarshal([]byte(e.line), &line) != nil {
		return ""
	}
	return line.Result
}

func (e *end) body() []byte {
	if e == nil {
		return nil
	}
	return []byte(e.result)
}

// endOf returns the end of a job, nil if it has not ended, or why it has no result.
func (r *JobRef) endOf(answer []any) (*end, error) {
	if intOf(answer[0]) != codeOK {
		switch word := wordAt(answer, 4); word {
		case "cancelled", "deleted", "replaced":
			return nil, r.failed(ErrJobCancelled)
		case "expired":
			return nil, r.failed(ErrJobExpired)
		case "done":
			return nil, r.failed(ErrNotKept)
		case "dead":
			return nil, &JobDeadError{r.ID, r.Queue, "it died, and was removed since then"}
		}
		return nil, r.failed(ErrJobUnknown)
	}
	line, body, _ := strings.Cut(wordAt(answer, 4), "\n")
	switch wordAt(answer, 2) {
	case "done":
		return &end{line, body}, nil
	case "dead":
		var record struct {
			Error  string `json:"error"`
			Reason string `json:"reason"`
		}
		json.Unmarshal([]byte(line), &record)
		for _, text := range []string{record.Error, record.Reason, "it is dead"} {
			if text != "" {
				return nil, &JobDeadError{r.ID, r.Queue, text}
			}
		}
	}
	return nil, nil
}

// numberOf reads a number that Redis has written as a number or as its digits.
func numberOf(value any) int64 {
	if text, ok := value.(string); ok {
		number, _ := strconv.ParseInt(text, 10, 64)
		return number
	}
	return intOf(value)
}
