package pipe

import (
	"encoding/json"
	"fmt"
	"time"
)

// A Job is what the worker says about one run of a job.
type Job struct {
	ID          string
	Type        string
	Queue       string
	Attempt     int
	MaxAttempts int
	Fence       string
	Timeout     time.Duration // 0: never
	Created     time.Time     // zero: not known
	Scheduled   time.Time     // zero: no schedule made the job
	Trace       string
	Headers     map[string]string
	Payload     []byte
	Checkpoint  []byte
}

// A frame is one line of the worker: the members that some kind of frame has,
// as they were written. What they mean depends on the kind, which may come last.
type frame struct {
	kind, why, run, n, c []byte
	id, typ, queue       []byte
	attempt, maxAttempts []byte
	fence, timeout       []byte
	created, scheduled   []byte
	trace, headers       []byte
}

func (f *frame) parse(line []byte) error {
	*f = frame{}
	return members(line, func(name, value []byte) error {
		if member := f.member(name); member != nil {
			*member = value
			if string(value) == "null" {
				*member = nil
			}
		}
		return nil
	})
}

func (f *frame) member(name []byte) *[]byte {
	switch string(name) {
	case "t":
		return &f.kind
	case "why":
		return &f.why
	case "run":
		return &f.run
	case "n":
		return &f.n
	case "c":
		return &f.c
	case "id":
		return &f.id
	case "type":
		return &f.typ
	case "queue":
		return &f.queue
	case "attempt":
		return &f.attempt
	case "max_attempts":
		return &f.maxAttempts
	case "fence":
		return &f.fence
	case "timeout":
		return &f.timeout
	case "created":
		return &f.created
	case "scheduled":
		return &f.scheduled
	case "trace":
		return &f.trace
	case "headers":
		return &f.headers
	}
	return nil
}

// job reads the members of a job. known keeps texts that come again and again.
func (f *frame) job(known names) (*Job, error) {
	var r reading
	job := &Job{
		ID:          r.text("id", f.id, nil),
		Type:        r.text("type", f.typ, known),
		Queue:       r.text("queue", f.queue, known),
		Attempt:     int(r.number("attempt", f.attempt)),
		MaxAttempts: int(r.number("max_attempts", f.maxAttempts)),
		Fence:       r.text("fence", f.fence, nil),
		Timeout:     time.Duration(r.number("timeout", f.timeout)) * time.Millisecond,
		Created:     r.moment("created", f.created),
		Scheduled:   r.moment("scheduled", f.scheduled),
		Trace:       r.text("trace", f.trace, nil),
	}
	if f.headers != nil {
		if err := json.Unmarshal(f.headers, &job.Headers); err != nil {
			r.fail("headers", err)
		}
	}
	return job, r.err
}

// A reading keeps the first error of several members.
type reading struct{ err error }

func (r *reading) fail(name string, err error) {
	if r.err == nil {
		r.err = fmt.Errorf("%s: %w", name, err)
	}
}

func (r *reading) number(name string, value []byte) int64 {
	if value == nil {
		return 0
	}
	number, err := whole(value)
	if err != nil {
		r.fail(name, err)
	}
	return number
}

func (r *reading) moment(name string, value []byte) time.Time {
	if value == nil {
		return time.Time{}
	}
	return time.UnixMilli(r.number(name, value))
}

func (r *reading) text(name string, value []byte, known names) string {
	if value == nil {
		return ""
	}
	read, _, err := text(value, 0)
	if err != nil {
		r.fail(name, err)
	}
	if known != nil {
		return known.intern(read)
	}
	return string(read)
}

// names keeps one string for each text that comes again and again.
type names map[string]string

func (n names) intern(value []byte) string {
	if known, ok := n[string(value)]; ok {
		return known
	}
	fresh := string(value)
	if len(n) < 4096 {
		n[fresh] = fresh
	}
	return fresh
}
