package holdfast

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
	"unicode/utf8"
)

// An EnqueueOption is an option of one job that is enqueued.
type EnqueueOption interface{ applyEnqueue(*plan) error }

// A HandleOption is an option of a type of job, where its handler is declared.
type HandleOption interface{ applyHandle(*kind) error }

// A ScheduleOption is an option of a schedule, or of the jobs that it makes.
type ScheduleOption interface{ applySchedule(*schedule) error }

// A TypeOption is an option that arguments may bring themselves: see
// ArgsWithOptions. Each of them is an EnqueueOption and a ScheduleOption, too.
type TypeOption interface {
	EnqueueOption
	ScheduleOption
	applyType(*plan) error
}

// An Option is an option of a job, of a type, and of the jobs of a schedule.
type Option func(*plan) error

func (o Option) applyEnqueue(p *plan) error      { return o(p) }
func (o Option) applyType(p *plan) error         { return o(p) }
func (o Option) applyHandle(k *kind) error       { return o(&k.plan) }
func (o Option) applySchedule(s *schedule) error { return o(&s.plan) }

// A JobOption is an option of a job, and of the jobs of a schedule.
type JobOption func(*plan) error

func (o JobOption) applyEnqueue(p *plan) error      { return o(p) }
func (o JobOption) applyType(p *plan) error         { return o(p) }
func (o JobOption) applySchedule(s *schedule) error { return o(&s.plan) }

type enqueueOption func(*plan) error

func (o enqueueOption) applyEnqueue(p *plan) error { return o(p) }

type idOption string

func (o idOption) applyEnqueue(p *plan) error {
	p.id = string(o)
	return checkName(p.id, "ID")
}

func (o idOption) applySchedule(s *schedule) error {
	s.ID = string(o)
	return checkName(s.ID, "ID")
}

// A plan is what the options of a job say.
type plan struct {
	queue string
	id    string // "": one is made
	due   int64  // 0: now; a time in Unix ms; or minus a delay
	timed bool   // by Delay or At
	kept  bool   // it is known to be kept when it is done
	fields
}

const (
	delayMax    = 36525 * 24 * time.Hour
	timeoutMax  = 30 * 24 * time.Hour
	attemptsMax = 1000000
	timeMax     = 253402300799999 // ms: the end of the year 9999
)

func millis(to *int64, d time.Duration, name string, least, most time.Duration) error {
	if d < least || d > most {
		return fmt.Errorf("%s: expected a duration from %v to %v, found %v", name, least, most, d)
	}
	*to = d.Milliseconds()
	return nil
}

func unixMillis(to *int64, t time.Time, name string) error {
	ms := t.UnixMilli()
	if ms < 0 || ms > timeMax {
		return fmt.Errorf("%s: expected a time from 1970 to 9999, found %v", name, t)
	}
	*to = ms
	return nil
}

// Queue names the queue of the job. Without it that is the queue of its
// arguments' Options, and without that the one of New.
func Queue(name string) Option {
	return func(p *plan) error {
		p.queue = name
		return checkName(name, "Queue")
	}
}

// MaxAttempts lets the job die after n failed attempts.
func MaxAttempts(n int) Option {
	return func(p *plan) error {
		if n < 1 || n > attemptsMax {
			return fmt.Errorf("MaxAttempts: expected a number from 1 to %d, found %d", attemptsMax, n)
		}
		p.maxAttempts = int64(n)
		return nil
	}
}

// Timeout lets an attempt fail after this time.
func Timeout(d time.Duration) Option {
	return func(p *plan) error { return millis(&p.timeout, d, "Timeout", time.Millisecond, timeoutMax) }
}

// OnDead names the type of a job that is enqueued when this one dies.
func OnDead(kind string) Option {
	return func(p *plan) error {
		p.onDead = kind
		return checkName(kind, "OnDead")
	}
}

// Keep keeps the job for this time when it is done, with its result.
func Keep(d time.Duration) JobOption {
	return func(p *plan) error {
		p.kept = true
		return millis(&p.keep, d, "Keep", time.Millisecond, delayMax)
	}
}

// A Level is a priority.
type Level string

// The priorities of jobs.
const (
	High   Level = "high"
	Normal Level = "normal"
	Low    Level = "low"
)

// Priority lets the job start before those with a lower priority.
func Priority(level Level) JobOption {
	return func(p *plan) error { return choose(&p.priority, "Priority", string(level), "normal", "high", "low") }
}

// choose takes one of several words; the first one is the default and is left
// out of the record.
func choose(to *string, name, word string, words ...string) error {
	if !slices.Contains(words, word) {
		return fmt.Errorf("%s: expected one of %q, found %q", name, words, word)
	}
	*to = word
	if word == words[0] {
		*to = ""
	}
	return nil
}

// StartWithin lets the job expire if it has not started so long after its first
// due time. It is removed then; see ExpiredDead.
func StartWithin(d time.Duration) JobOption {
	return func(p *plan) error { return millis(&p.startWithin, d, "StartWithin", time.Millisecond, delayMax) }
}

// ExpiredDead lets a job that expires be dead instead of removed.
func ExpiredDead() JobOption {
	return func(p *plan) error {
		p.expired = "dead"
		return nil
	}
}

// ID chooses the id of the job. While a job with this id is there, a second one
// is not accepted: its outcome is OutcomeExists. Of a schedule it is the schedule's id,
// which is the type of its jobs otherwise.
func ID(id string) interface {
	EnqueueOption
	ScheduleOption
} {
	return idOption(id)
}

// Delay lets the job wait before it may start.
func Delay(d time.Duration) EnqueueOption {
	return enqueueOption(func(p *plan) error {
		if p.timed {
			return errors.New("expected one of Delay and At, found two")
		}
		p.timed = true
		err := millis(&p.due, d, "Delay", 0, delayMax)
		p.due = -p.due
		return err
	})
}

// In is another name of Delay.
func In(d time.Duration) EnqueueOption { return Delay(d) }

// At is the time from which the job may start.
func At(t time.Time) EnqueueOption {
	return enqueueOption(func(p *plan) error {
		if p.timed {
			return errors.New("expected one of Delay and At, found two")
		}
		p.timed = true
		err := unixMillis(&p.due, t, "At")
		p.due = max(1, p.due)
		return err
	})
}

// Header puts a text beside the arguments, for the code around the handler: a
// tenant, a locale, a trace. All headers together have at most 4 KiB.
func Header(name, value string) EnqueueOption {
	return enqueueOption(func(p *plan) error {
		p.headers = setHeader(p.headers, name, value)
		return nil
	})
}

// Headers does the same for several texts.
func Headers(headers map[string]string) EnqueueOption {
	return enqueueOption(func(p *plan) error {
		for _, name := range slices.Sorted(maps.Keys(headers)) {
			p.headers = setHeader(p.headers, name, headers[name])
		}
		return nil
	})
}

// Unique is a key that one job of the queue has at a time. A second job is
// skipped, unless OnConflict says something else.
func Unique(key string) EnqueueOption {
	return enqueueOption(func(p *plan) error {
		p.unique = key
		if len(key) < 1 || len(key) > 256 || !utf8.ValidString(key) {
			return fmt.Errorf("Unique: expected a text of 1 to 256 bytes in UTF-8, found %.300q", key)
		}
		return nil
	})
}

// A Moment is a time in the life of a job.
type Moment string

// When a job frees its unique key.
const (
	UntilEnd   Moment = "end"
	UntilStart Moment = "start"
	UntilDone  Moment = "done"
)

// UniqueUntil says when the job frees its unique key: at its end, which is the
// default, at its start, or when it is done.
func UniqueUntil(moment Moment) EnqueueOption {
	return enqueueOption(func(p *plan) error {
		return choose(&p.uniqueUntil, "UniqueUntil", string(moment), "end", "start", "done")
	})
}

// UniqueFor holds the unique key at least this long after the job was accepted.
func UniqueFor(d time.Duration) EnqueueOption {
	return enqueueOption(func(p *plan) error { return millis(&p.uniqueFor, d, "UniqueFor", time.Millisecond, delayMax) })
}

// A Conflict is what happens to a job whose unique key is taken.
type Conflict string

// What happens to a job whose unique key is taken.
const (
	ConflictSkip    Conflict = "skip"    // it is not accepted: the default
	ConflictReplace Conflict = "replace" // the waiting holder takes its payload and options
	ConflictNext    Conflict = "next"    // it waits until the holder has ended
	ConflictCancel  Conflict = "cancel"  // the same, and a running holder is asked to end
)

// OnConflict says what happens to the job if its unique key is taken.
func OnConflict(conflict Conflict) EnqueueOption {
	return enqueueOption(func(p *plan) error {
		return choose(&p.onConflict, "OnConflict", string(conflict), "skip", "replace", "next", "cancel")
	})
}

// Debounce makes one job of many with the same unique key: it starts when no
// other one has come for a time, but not later than maxWait after the first.
func Debounce(quiet, maxWait time.Duration) EnqueueOption {
	return enqueueOption(func(p *plan) error {
		if err := millis(&p.debounce, quiet, "Debounce", time.Millisecond, delayMax); err != nil {
			return err
		}
		return millis(&p.maxWait, maxWait, "Debounce", time.Millisecond, delayMax)
	})
}

// Throttle accepts one job with this unique key in each period.
func Throttle(period time.Duration) EnqueueOption {
	return enqueueOption(func(p *plan) error { return millis(&p.throttle, period, "Throttle", time.Millisecond, delayMax) })
}

// Awaited lets Redis remember how the job ended, for a caller that asks a moment
// later.
func Awaited() EnqueueOption {
	return enqueueOption(func(p *plan) error {
		p.awaited = 1
		return nil
	})
}

// ReplaceDead removes a dead job with the chosen ID first.
func ReplaceDead() EnqueueOption {
	return enqueueOption(func(p *plan) error {
		p.replaceDead = 1
		return nil
	})
}

// check looks at options that need or exclude each other.
func (p *plan) check() error {
	if p.unique == "" && (p.uniqueUntil != "" || p.uniqueFor != 0 || p.onConflict != "" || p.debounce != 0 || p.throttle != 0) {
		return errors.New("UniqueUntil, UniqueFor, OnConflict, Debounce and Throttle need Unique")
	}
	if p.expired != "" && p.startWithin == 0 {
		return errors.New("ExpiredDead needs StartWithin")
	}
	if p.debounce != 0 && (p.uniqueUntil != "" || p.uniqueFor != 0 || p.onConflict != "" || p.throttle != 0 || p.timed) {
		return errors.New("expected no UniqueUntil, UniqueFor, OnConflict, Throttle, Delay and At beside Debounce")
	}
	if p.throttle != 0 && (p.uniqueFor != 0 || (p.onConflict != "" && p.onConflict != string(ConflictNext))) {
		return errors.New("expected no UniqueFor, and no OnConflict but ConflictSkip and ConflictNext, beside Throttle")
	}
	return checkHeaders(p.headers)
}
