// Package holdfasttest is for tests of code that enqueues jobs, and of handlers.
// It needs neither Redis nor a worker.
//
//	fake := holdfasttest.New()
//	signUp(ctx, fake.Client(), "ada@example.com")
//	jobs := fake.Jobs() // one "email.send"
//	ran, err := fake.RunAll(ctx, mux)
//
// Arguments go through JSON, as they do in Redis. No time passes in a Fake: RunAll runs
// delayed jobs at once, and no job ends by a time-out or expires. A job whose unique key
// a waiting job holds is skipped. With OnConflict or Debounce it is accepted beside that
// one. Throttle, UniqueUntil and UniqueFor do nothing.
package holdfasttest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"holdfast-queue/holdfast"
	"holdfast-queue/holdfast/internal/hook"
	"holdfast-queue/holdfast/internal/pipe"
)

// A Fake keeps the jobs that are enqueued, and runs them when it is told to.
type Fake struct {
	mutex   sync.Mutex
	client  *holdfast.Client
	inline  *holdfast.Mux
	waiting []*Job
	done    []*Job
}

// A Job is one that was enqueued.
type Job struct {
	ID      string
	Type    string
	Queue   string
	Args    any // as they were given
	Payload []byte
	Headers map[string]string
	Delay   time.Duration
	At      time.Time // zero: no time was given

	fake     *Fake
	job      *hook.Job
	state    holdfast.State
	attempts int
	err      error
	verdict  pipe.Verdict
}

// New returns a Fake whose jobs wait.
func New() *Fake {
	f := &Fake{}
	f.client = hook.NewClient("default", sink{f}).(*holdfast.Client)
	return f
}

// Inline returns a Fake that runs each job at once, where it is enqueued.
func Inline(mux *holdfast.Mux) *Fake {
	f := New()
	f.inline = mux
	return f
}

// Client returns the client whose jobs the Fake takes.
func (f *Fake) Client() *holdfast.Client { return f.client }

// Jobs returns the jobs that wait, the oldest first.
func (f *Fake) Jobs() []*Job {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return slices.Clone(f.waiting)
}

// Of returns the jobs of a type that wait.
func (f *Fake) Of(kind string) []*Job {
	return slices.DeleteFunc(f.Jobs(), func(job *Job) bool { return job.Type != kind })
}

// Done returns the jobs that have run, or were cancelled.
func (f *Fake) Done() []*Job {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return slices.Clone(f.done)
}

// Clear forgets all jobs.
func (f *Fake) Clear() {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.waiting, f.done = nil, nil
}

// RunAll runs the jobs that wait, in their order and whatever their time, and
// those that they enqueue: each one once. A job whose handler returns RetryIn or Release
// is among Jobs again, for the next call; RetryIn uses its attempts up. RunAll returns
// how many ran. An error of a handler ends it, unless the handler has chosen a verdict
// by RetryIn, Release, Dead or Cancel.
func (f *Fake) RunAll(ctx context.Context, mux *holdfast.Mux) (int, error) {
	ran := map[*Job]bool{}
	for {
		f.mutex.Lock()
		i := slices.IndexFunc(f.waiting, func(job *Job) bool { return !ran[job] })
		if i < 0 {
			f.mutex.Unlock()
			return len(ran), nil
		}
		next := f.waiting[i]
		f.mutex.Unlock()
		ran[next] = true
		if err := f.run(ctx, mux, next); err != nil {
			return len(ran), err
		}
	}
}

func (f *Fake) run(ctx context.Context, mux *holdfast.Mux, job *Job) error {
	f.mutex.Lock()
	f.move(job, holdfast.StateRunning)
	job.attempts++
	attempt := job.attempts
	f.mutex.Unlock()
	verdict, err := hook.Run(ctx, mux, job.job, attempt)
	f.mutex.Lock()
	defer f.mutex.Unlock()
	job.verdict, job.err = verdict, err
	switch verdict.Kind {
	case pipe.Done:
		job.state = holdfast.StateDone
	case pipe.Cancel:
		job.state = holdfast.StateCancelled
	case pipe.Dead:
		job.state = holdfast.StateDead
	default:
		job.state = holdfast.StateWaiting
	}
	if err != nil && !holdfast.IsVerdict(err) {
		job.state = holdfast.StateDead
		return fmt.Errorf("%s %s: %w", job.Type, job.ID, err)
	}
	if job.state == holdfast.StateWaiting {
		f.putBack(job)
	}
	return nil
}

// move is called with the mutex held.
func (f *Fake) move(job *Job, state holdfast.State) {
	if i := slices.Index(f.waiting, job); i >= 0 {
		f.waiting = slices.Delete(f.waiting, i, i+1)
		f.done = append(f.done, job)
	}
	job.state = state
}

// putBack is called with the mutex held.
func (f *Fake) putBack(job *Job) {
	if job.verdict.Kind == pipe.Release {
		job.attempts--
	}
	job.At, job.Delay = time.Time{}, 0
	if job.verdict.In != nil {
		job.Delay = *job.verdict.In
	}
	if i := slices.Index(f.done, job); i >= 0 {
		f.done = slices.Delete(f.done, i, i+1)
	}
	f.waiting = append(f.waiting, job)
}

// A sink takes the jobs of the client.
type sink struct{ fake *Fake }

func (s sink) Find(id, queue string) hook.Ref {
	s.fake.mutex.Lock()
	defer s.fake.mutex.Unlock()
	for _, jobs := range [][]*Job{s.fake.waiting, s.fake.done} {
		for _, job := range slices.Backward(jobs) {
			if job.ID == id && job.Queue == queue {
				return ref{job}
			}
		}
	}
	return nil
}

func (s sink) Enqueue(ctx context.Context, jobs []*hook.Job) ([]hook.Answer, error) {
	f := s.fake
	answers := make([]hook.Answer, len(jobs))
	var taken []*Job
	f.mutex.Lock()
	for i, job := range jobs {
		holder, outcome := f.holder(job)
		if holder == nil {
			holder, outcome = newJob(f, job), holdfast.OutcomeNew
			f.waiting = append(f.waiting, holder)
			taken = append(taken, holder)
		}
		answers[i] = hook.Answer{ID: holder.ID, Outcome: string(outcome), Ref: ref{holder}}
	}
	f.mutex.Unlock()
	if f.inline != nil {
		for _, job := range taken {
			if err := f.run(ctx, f.inline, job); err != nil {
				return nil, err
			}
		}
	}
	return answers, nil
}

func newJob(f *Fake, job *hook.Job) *Job {
	if job.ID == "" {
		job.ID = hook.NewID()
	}
	made := &Job{ID: job.ID, Type: job.Type, Queue: job.Queue, Args: job.Args, Payload: job.Payload,
		Headers: job.Headers, fake: f, job: job, state: holdfast.StateWaiting}
	if job.Due > 0 {
		made.At = time.UnixMilli(job.Due)
	} else {
		made.Delay = time.Duration(-job.Due) * time.Millisecond
	}
	return made
}

// holder returns the waiting job that has the id or the unique key of another one.
func (f *Fake) holder(job *hook.Job) (*Job, holdfast.Outcome) {
	for _, other := range f.waiting {
		if other.Queue != job.Queue {
			continue
		}
		if job.ID != "" && other.ID == job.ID {
			return other, holdfast.OutcomeExists
		}
		if job.Unique != "" && other.job.Unique == job.Unique && job.OnConflict == "" && !job.Debounced {
			return other, holdfast.OutcomeSkipped
		}
	}
	return nil, ""
}

// State returns what happened to the job.
func (j *Job) State() holdfast.State {
	j.fake.mutex.Lock()
	defer j.fake.mutex.Unlock()
	return j.state
}

// Err returns the error with which the last run ended.
func (j *Job) Err() error {
	j.fake.mutex.Lock()
	defer j.fake.mutex.Unlock()
	return j.err
}

// ArgsOf returns the arguments of a job as a handler gets them.
func ArgsOf[T holdfast.Args](job *Job) (T, error) {
	var args T
	err := json.Unmarshal(job.Payload, &args)
	return args, err
}

// A ref is a job for JobRef.
type ref struct{ job *Job }

func (r ref) State() string { return string(r.job.State()) }

func (r ref) Cancel() bool {
	f := r.job.fake
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if r.job.state != holdfast.StateWaiting {
		return false
	}
	f.move(r.job, holdfast.StateCancelled)
	return true
}

func (r ref) Result() (kind string, body []byte, err error) {
	f, job := r.job.fake, r.job
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if !job.job.Kept {
		return "", nil, fmt.Errorf("job %s: %w", job.ID, holdfast.ErrNotKept)
	}
	switch job.state {
	case holdfast.StateDone:
		if job.verdict.Body == nil {
			return "", nil, nil
		}
		if job.verdict.JSON {
			return "json", job.verdict.Body, nil
		}
		return "bytes", job.verdict.Body, nil
	case holdfast.StateCancelled:
		return "", nil, fmt.Errorf("job %s: %w", job.ID, holdfast.ErrJobCancelled)
	case holdfast.StateDead:
		return "", nil, &holdfast.JobDeadError{ID: job.ID, Queue: job.Queue, Text: job.verdict.Error}
	}
	return "", nil, errors.New(job.Type + ": this job has not run to its end: call RunAll first")
}
