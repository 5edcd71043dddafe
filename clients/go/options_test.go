package holdfast

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
)

type email struct {
	To string `json:"to"`
}

func (email) Kind() string { return "email.send" }

type untagged struct{ OrderID string }

func (untagged) Kind() string { return "untagged" }

type deep struct {
	Rows []map[string]*inner `json:"rows"`
}
type inner struct {
	Self  *inner    `json:"self"`
	When  time.Time `json:"when"`
	Fault int
}

func (deep) Kind() string { return "deep" }

type unnamed struct {
	To string `json:",omitempty"`
}

func (unnamed) Kind() string { return "unnamed" }

// Name is no struct: JSON has it as a field of this name.
type Name string
type inlined struct{ Name }

func (inlined) Kind() string { return "inlined" }

type odd string

func (odd) Kind() string { return "odd" }

type badName struct{}

func (badName) Kind() string { return "a b" }

func TestArgumentsThatAreRefused(t *testing.T) {
	for _, wrong := range []struct {
		args Args
		text string
	}{
		{untagged{}, "expected a json tag with a name at the exported field holdfast.untagged.OrderID, such as `json:\"order_id\"`"},
		{&untagged{}, "holdfast.untagged.OrderID"},
		{deep{}, "holdfast.inner.Fault, such as `json:\"fault\"`"},
		{unnamed{}, "holdfast.unnamed.To"},
		{inlined{}, "holdfast.inlined.Name"},
		{odd("x"), "expected a struct"},
		{badName{}, "Kind()"},
		{nil, "found nil"},
		{(*email)(nil), "found nil"},
	} {
		_, err := Enqueue(context.Background(), New(Options{}), wrong.args)
		if err == nil || !strings.Contains(err.Error(), wrong.text) {
			t.Errorf("%T: expected an error with %q, found %v", wrong.args, wrong.text, err)
		}
	}
}

func TestArgumentsThatAreGood(t *testing.T) {
	type Base struct {
		Tenant string `json:"tenant"`
	}
	for _, good := range []any{email{}, &email{}, struct {
		Base
		*email
		hidden untagged
		Skip   func()          `json:"-"`
		Raw    json.RawMessage `json:"raw"`
		At     time.Time       `json:"at"`
	}{}, map[string]int{}} {
		if err := checkArgs(reflect.TypeOf(good)); err != nil {
			t.Errorf("%T: %v", good, err)
		}
	}
	kind, payload, err := payloadOf(email{"<a&b>"})
	if kind != "email.send" || string(payload) != `{"to":"<a&b>"}` || err != nil {
		t.Errorf("found %s %s %v", kind, payload, err)
	}
}

func TestAWrongOptionIsRefusedBeforeAnythingIsSent(t *testing.T) {
	long := strings.Repeat("x", 257)
	for _, wrong := range []struct {
		options []EnqueueOption
		text    string
	}{
		{[]EnqueueOption{Timeout(0)}, "Timeout: expected a duration from 1ms"},
		{[]EnqueueOption{Timeout(31 * 24 * time.Hour)}, "from 1ms to 720h0m0s"},
		{[]EnqueueOption{Timeout(time.Microsecond)}, "from 1ms"},
		{[]EnqueueOption{Delay(-time.Second)}, "Delay"},
		{[]EnqueueOption{Delay(time.Second), At(time.Now())}, "one of Delay and At"},
		{[]EnqueueOption{At(time.Unix(-5, 0))}, "from 1970"},
		{[]EnqueueOption{Priority("urgent")}, "Priority"},
		{[]EnqueueOption{UniqueFor(time.Second)}, "need Unique"},
		{[]EnqueueOption{Unique("")}, "1 to 256"},
		{[]EnqueueOption{Unique(long)}, "1 to 256"},
		{[]EnqueueOption{Unique("\xff")}, "UTF-8"},
		{[]EnqueueOption{MaxAttempts(0)}, "from 1"},
		{[]EnqueueOption{ExpiredDead()}, "needs StartWithin"},
		{[]EnqueueOption{ID("a b")}, "ID"},
		{[]EnqueueOption{Queue("{x}")}, "Queue"},
		{[]EnqueueOption{Header("a", strings.Repeat("x", 4096))}, "4096"},
		{[]EnqueueOption{Header("a", "\xff")}, "UTF-8"},
		{[]EnqueueOption{Unique("k"), Debounce(time.Second, 0)}, "Debounce"},
		{[]EnqueueOption{Unique("k"), Debounce(time.Second, time.Minute), Delay(time.Second)}, "beside Debounce"},
		{[]EnqueueOption{Unique("k"), Throttle(time.Second), OnConflict(ConflictReplace)}, "beside Throttle"},
	} {
		_, err := Enqueue(context.Background(), New(Options{URL: "unix:///nowhere"}), email{"a"}, wrong.options...)
		if err == nil || !strings.Contains(err.Error(), wrong.text) {
			t.Errorf("expected an error with %q, found %v", wrong.text, err)
		}
	}
}

func TestWrongOptionsOfNew(t *testing.T) {
	for _, wrong := range []struct {
		options Options
		text    string
	}{
		{Options{Namespace: "a b"}, "Namespace"},
		{Options{Queue: "{x}"}, "Queue"},
		{Options{Deadline: -1}, "Deadline"},
		{Options{URL: "http://x"}, "found http"},
		{Options{URL: "localhost:6379"}, "found no scheme"},
		{Options{URL: "redis+sentinel://a,b"}, "/master"},
		{Options{URL: "redis+cluster://"}, "found none"},
	} {
		c := New(wrong.options)
		_, err := c.Send(context.Background(), "t", nil)
		if err == nil || !strings.Contains(err.Error(), wrong.text) || !errors.Is(err, c.Err()) {
			t.Errorf("expected an error with %q, found %v", wrong.text, err)
		}
	}
}

func TestAddresses(t *testing.T) {
	s, err := parseSeveral("rediss+sentinel", "app:s%40x@10.0.0.1,10.0.0.2:26380,[::1]:7,[::2]/mymaster/3", "26379")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(s.nodes, " "); got != "10.0.0.1:26379 10.0.0.2:26380 [::1]:7 [::2]:26379" {
		t.Errorf("found the nodes %s", got)
	}
	if s.user != "app" || s.password != "s@x" || s.path != "mymaster/3" || s.tls == nil {
		t.Errorf("found %+v", s)
	}
}

func TestMistakesInHandlersPanic(t *testing.T) {
	for _, wrong := range []struct {
		text string
		call func(*Mux)
	}{
		{"two", func(m *Mux) { Handle(m, nothing[email]); Handle(m, nothing[email]) }},
		{"json tag", func(m *Mux) { Handle(m, nothing[untagged]) }},
		{"expected a struct", func(m *Mux) { Handle(m, nothing[*email]) }},
		{"expected a struct", func(m *Mux) { Handle(m, nothing[Args]) }},
		{"Timeout", func(m *Mux) { Handle(m, nothing[email], Timeout(-1)) }},
		{"Every", func(m *Mux) { m.Every(time.Millisecond, email{}) }},
		{"Cron", func(m *Mux) { m.Cron("", email{}) }},
		{"TZ needs Cron", func(m *Mux) { m.Every(time.Minute, email{}, TZ("Europe/Berlin")) }},
		{"one schedule", func(m *Mux) { m.Every(time.Minute, email{}); m.Every(time.Hour, email{}) }},
		{"a type", func(m *Mux) { m.HandleBytes("a b", nil) }},
	} {
		func() {
			defer func() {
				err, _ := recover().(error)
				if err == nil || !strings.Contains(err.Error(), wrong.text) {
					t.Errorf("expected a panic with %q, found %v", wrong.text, err)
				}
			}()
			wrong.call(NewMux())
		}()
	}
}

func nothing[T Args](context.Context, *Job[T]) error { return nil }

type report struct {
	Year int `json:"year"`
}

func (report) Kind() string { return "report.make" }
func (report) Options() []TypeOption {
	return []TypeOption{Queue("slow"), Timeout(time.Minute), Keep(time.Hour), Priority(Low), OnDead("report.died")}
}

func TestReady(t *testing.T) {
	m := NewMux()
	Handle(m, nothing[report], MaxAttempts(5))
	Handle(m, nothing[email], Timeout(30*time.Second), Queue("mail"))
	m.Cron("0 3 * * 1-5", report{2026}, TZ("Europe/Berlin"), Jitter(10*time.Second))
	m.Every(5*time.Minute, email{"ada"}, ID("tick"), Missed(MissedSkip), Keep(time.Minute))
	text, err := json.Marshal(m.ready(100))
	if err != nil {
		t.Fatal(err)
	}
	const expected = `{"t":"","v":0,"client":"go 0.2.0","parallel":100,"types":[` +
		`{"type":"report.make","queue":"slow","timeout":60000,"max_attempts":5,"keep":3600000,"on_dead":"report.died"},` +
		`{"type":"email.send","queue":"mail","timeout":30000}],"schedules":[` +
		`{"id":"report.make","queue":"slow","cron":"0 3 * * 1-5","tz":"Europe/Berlin","jitter":10000,` +
		`"job":{"type":"report.make","priority":"low","payload":{"year":2026}}},` +
		`{"id":"tick","queue":"mail","every":300000,"missed":"skip",` +
		`"job":{"type":"email.send","keep":60000,"payload":{"to":"ada"}}}]}`
	if string(text) != expected {
		t.Errorf("expected %s\nfound    %s", expected, text)
	}
}

func TestWhatATypeBringsIsInTheRecordOnlyWhereTheWorkerDoesNotKnowIt(t *testing.T) {
	job, err := New(Options{}).job(report{2026}, []EnqueueOption{Header("tenant", "7")})
	if err != nil {
		t.Fatal(err)
	}
	const expected = `{"type":"report.make","priority":"low","headers":{"tenant":"7"}}` + "\n" + `{"year":2026}`
	if record := string(job.plan.record(job.kind, 0, job.payload)); record != expected || !job.plan.kept {
		t.Errorf("found %s", record)
	}
}
