package holdfast

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// A schedule is one that is written in code. It travels to the worker with the
// types: docs/pipe.md, "ready".
type schedule struct {
	ID      string       `json:"id"`
	Queue   string       `json:"queue"`
	Cron    string       `json:"cron,omitempty"`
	Every   int64        `json:"every,omitempty"`
	TZ      string       `json:"tz,omitempty"`
	Missed  string       `json:"missed,omitempty"`
	CatchUp int64        `json:"catch_up,omitempty"`
	Overlap string       `json:"overlap,omitempty"`
	Jitter  int64        `json:"jitter,omitempty"`
	Start   int64        `json:"start,omitempty"`
	End     int64        `json:"end,omitempty"`
	Limit   int64        `json:"limit,omitempty"`
	Job     scheduledJob `json:"job"`

	plan plan
}

type scheduledJob struct {
	Type        string          `json:"type"`
	MaxAttempts int64           `json:"max_attempts,omitempty"`
	Timeout     int64           `json:"timeout,omitempty"`
	Keep        int64           `json:"keep,omitempty"`
	Priority    string          `json:"priority,omitempty"`
	StartWithin int64           `json:"start_within,omitempty"`
	Expired     string          `json:"expired,omitempty"`
	OnDead      string          `json:"on_dead,omitempty"`
	Payload     json.RawMessage `json:"payload"`
}

type scheduleOption func(*schedule) error

func (o scheduleOption) applySchedule(s *schedule) error { return o(s) }

// Every enqueues a job again and again, with this period. It panics if an option
// is wrong, as Handle does.
func (m *Mux) Every(period time.Duration, args Args, options ...ScheduleOption) {
	s := schedule{}
	must(millis(&s.Every, period, "Every", time.Second, delayMax))
	m.schedule(s, args, options)
}

// Cron enqueues a job at the times of a cron expression, in UTC unless TZ names a
// zone.
func (m *Mux) Cron(expression string, args Args, options ...ScheduleOption) {
	if expression == "" {
		must(errors.New("Cron: expected an expression such as \"0 3 * * 1-5\""))
	}
	m.schedule(schedule{Cron: expression}, args, options)
}

func (m *Mux) schedule(s schedule, args Args, options []ScheduleOption) {
	kind, payload, err := payloadOf(args)
	must(err)
	own, _ := args.(ArgsWithOptions)
	if own != nil {
		for _, option := range own.Options() {
			must(option.applyType(&s.plan))
		}
	}
	p := &s.plan
	p.maxAttempts, p.timeout, p.keep, p.onDead = 0, 0, 0, "" // known to the worker, with the type
	for _, option := range options {
		must(option.applySchedule(&s))
	}
	must(p.check())
	if s.TZ != "" && s.Cron == "" {
		must(errors.New("TZ needs Cron"))
	}
	s.ID = cmp.Or(s.ID, kind)
	if handler, ok := m.kinds[kind]; ok && p.queue == "" {
		p.queue = handler.plan.queue
	}
	s.Queue = cmp.Or(p.queue, "default")
	for _, other := range m.schedules {
		if other.ID == s.ID && other.Queue == s.Queue {
			must(fmt.Errorf("expected one schedule with the id '%s', found two: name one with ID", s.ID))
		}
	}
	s.Job = scheduledJob{Type: kind, MaxAttempts: p.maxAttempts, Timeout: p.timeout, Keep: p.keep, Priority: p.priority,
		StartWithin: p.startWithin, Expired: p.expired, OnDead: p.onDead, Payload: payload}
	m.schedules = append(m.schedules, s)
}

// TZ is the time zone of a cron expression, such as "Europe/Berlin".
func TZ(zone string) ScheduleOption {
	return scheduleOption(func(s *schedule) error {
		s.TZ = zone
		return nil
	})
}

// A Rule is a word about the ticks of a schedule.
type Rule string

// What happens to ticks at which no worker ran (Missed), and to a tick while the
// job of the last one is there (Overlap). docs/schedules.md explains them.
const (
	MissedOnce    Rule = "once"
	MissedAll     Rule = "all"
	MissedSkip    Rule = "skip"
	OverlapSkip   Rule = "skip"
	OverlapAllow  Rule = "allow"
	OverlapCancel Rule = "cancel"
)

// Missed says what happens to ticks at which no worker ran: MissedOnce, which is
// the default, MissedAll or MissedSkip.
func Missed(rule Rule) ScheduleOption {
	return scheduleOption(func(s *schedule) error {
		return choose(&s.Missed, "Missed", string(rule), "once", "all", "skip")
	})
}

// CatchUp is how old a tick may be that is made up for.
func CatchUp(d time.Duration) ScheduleOption {
	return scheduleOption(func(s *schedule) error { return millis(&s.CatchUp, d, "CatchUp", time.Millisecond, delayMax) })
}

// Overlap says what happens to a tick while the job of the last one is there:
// OverlapSkip, which is the default, OverlapAllow or OverlapCancel.
func Overlap(rule Rule) ScheduleOption {
	return scheduleOption(func(s *schedule) error {
		return choose(&s.Overlap, "Overlap", string(rule), "skip", "allow", "cancel")
	})
}

// Jitter delays each tick by a random time up to this.
func Jitter(d time.Duration) ScheduleOption {
	return scheduleOption(func(s *schedule) error { return millis(&s.Jitter, d, "Jitter", time.Millisecond, delayMax) })
}

// Between bounds the ticks. A zero time is no bound.
func Between(start, end time.Time) ScheduleOption {
	return scheduleOption(func(s *schedule) error {
		if !start.IsZero() {
			if err := unixMillis(&s.Start, start, "Between"); err != nil {
				return err
			}
		}
		if !end.IsZero() {
			return unixMillis(&s.End, end, "Between")
		}
		return nil
	})
}

// Limit is the number of jobs after which the schedule ends.
func Limit(n int) ScheduleOption {
	return scheduleOption(func(s *schedule) error {
		if n < 1 || n > attemptsMax {
			return fmt.Errorf("Limit: expected a number from 1 to %d, found %d", attemptsMax, n)
		}
		s.Limit = int64(n)
		return nil
	})
}
