package holdfast

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"holdfast-queue/holdfast/internal/testredis"
)

func start(t *testing.T) (context.Context, *Client, *redis.Client) {
	t.Helper()
	server := testredis.Start(t)
	c := New(Options{URL: server.URL})
	t.Cleanup(func() { c.Close() })
	return context.Background(), c, server.Client
}

// must1 is for calls that do not fail.
func must1[T any](t *testing.T) func(T, error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func record(t *testing.T, r *redis.Client, id, queue string) (line map[string]any, payload string) {
	t.Helper()
	whole := must1[string](t)(r.HGet(context.Background(), "hf:{"+queue+"}:jobs", id).Result())
	head, payload, _ := strings.Cut(whole, "\n")
	if err := json.Unmarshal([]byte(head), &line); err != nil {
		t.Fatal(err)
	}
	return line, payload
}

func waiting(t *testing.T, r *redis.Client, queue string) int64 {
	t.Helper()
	return must1[int64](t)(r.ZCard(context.Background(), "hf:{"+queue+"}:schedule").Result())
}

func TestAJobIsOneLineAndItsArguments(t *testing.T) {
	ctx, c, r := start(t)
	ref := must1[*JobRef](t)(Enqueue(ctx, c, email{"ada@example.com"}))
	whole := must1[string](t)(r.HGet(ctx, "hf:{default}:jobs", ref.ID).Result())
	if whole != "{\"type\":\"email.send\"}\n{\"to\":\"ada@example.com\"}" || len(ref.ID) != 14 || ref.Queue != "default" ||
		ref.Outcome != OutcomeNew {
		t.Errorf("found %q of %+v", whole, ref)
	}
	if queues := must1[[]string](t)(r.SMembers(ctx, "hf:{/}:queues").Result()); !slices.Equal(queues, []string{"default"}) {
		t.Errorf("found the queues %q", queues)
	}
	later := must1[*JobRef](t)(Enqueue(ctx, c, email{"ada"}, In(10*time.Minute), Queue("mail")))
	score := must1[float64](t)(r.ZScore(ctx, "hf:{mail}:schedule", later.ID).Result())
	if wait := time.Until(time.UnixMilli(int64(score))); wait < 540*time.Second || wait > 600*time.Second {
		t.Errorf("due in %v", wait)
	}
	at := must1[*JobRef](t)(Enqueue(ctx, c, email{"ada"}, At(time.Date(2030, 1, 31, 8, 0, 0, 0, time.UTC))))
	if score := must1[float64](t)(r.ZScore(ctx, "hf:{default}:schedule", at.ID).Result()); score != 1896076800000 {
		t.Errorf("due at %f", score)
	}
}

func TestWhatBecameOfIt(t *testing.T) {
	ctx, c, r := start(t)
	var refs []*JobRef
	for _, options := range [][]EnqueueOption{{}, {}, {OnConflict(ConflictNext)}, {OnConflict(ConflictNext)}} {
		refs = append(refs, must1[*JobRef](t)(Enqueue(ctx, c, email{"a"}, append(options, Unique("ada"))...)))
	}
	outcomes := fmt.Sprintf("%s %s %s %s", refs[0].Outcome, refs[1].Outcome, refs[2].Outcome, refs[3].Outcome)
	if outcomes != "new skipped parked replaced" {
		t.Errorf("found %s", outcomes)
	}
	if refs[1].ID != refs[0].ID || refs[3].ID != refs[2].ID || refs[2].ID == refs[0].ID {
		t.Errorf("found %v", refs)
	}
	chosen := must1[*JobRef](t)(Enqueue(ctx, c, email{"a"}, ID("x")))
	again := must1[*JobRef](t)(Enqueue(ctx, c, email{"b"}, ID("x")))
	line, payload := record(t, r, "x", "default")
	if chosen.Outcome != OutcomeNew || again.Outcome != OutcomeExists || payload != `{"to":"a"}` ||
		time.Since(time.UnixMilli(int64(line["created"].(float64)))) > time.Minute {
		t.Errorf("found %v, %v, %v %s", chosen.Outcome, again.Outcome, line, payload)
	}
}

func TestManyAreAcceptedAllOrNone(t *testing.T) {
	ctx, c, r := start(t)
	many := make([]email, 1000)
	refs := must1[[]*JobRef](t)(EnqueueMany(ctx, c, many))
	ids := make([]string, len(refs))
	for i, ref := range refs {
		ids[i] = ref.ID
	}
	if !slices.IsSorted(ids) || len(slices.Compact(ids)) != 1000 || waiting(t, r, "default") != 1000 {
		t.Errorf("found %d ids", len(ids))
	}
	if refs, err := EnqueueMany(ctx, c, []email{}); len(refs) != 0 || err != nil {
		t.Errorf("found %v, %v", refs, err)
	}
	for _, wrong := range []struct {
		args []Args
		text string
	}{
		{[]Args{email{"a"}, untagged{}}, "job 2: expected a json tag with a name"},
		{[]Args{email{"a"}, With(email{"a"}, Queue("other"))}, "of one queue"},
		{make([]Args, 10001), "found nil"},
		{slices.Repeat([]Args{email{"a"}}, 10001), "at most 10000"},
		{[]Args{email{"a"}, email{strings.Repeat("x", 64<<20)}}, "a payload of at most"},
		{slices.Repeat([]Args{email{strings.Repeat("x", 1<<20)}}, 64), "bytes of jobs"},
	} {
		if _, err := EnqueueMany(ctx, c, wrong.args); err == nil || !strings.Contains(err.Error(), wrong.text) {
			t.Errorf("expected an error with %q, found %v", wrong.text, err)
		}
	}
	if n := waiting(t, r, "default"); n != 1000 {
		t.Errorf("expected that nothing was accepted, found %d jobs", n)
	}
	mixed := must1[[]*JobRef](t)(EnqueueMany(ctx, c, []Args{With(email{"1"}, ID("a")), report{2026}, With(email{"3"}, ID("a")),
		With(With(email{"4"}, Priority(High)), Header("a", "b"))}, Queue("default")))
	if mixed[0].Outcome != OutcomeNew || mixed[1].Outcome != OutcomeNew || mixed[2].Outcome != OutcomeExists ||
		mixed[3].Outcome != OutcomeNew {
		t.Errorf("found %v", mixed)
	}
}

func TestHooksChangeHeaders(t *testing.T) {
	ctx, c, r := start(t)
	type tenant struct{}
	c.OnEnqueue(func(ctx context.Context, call *Call) error {
		if call.Type != "email.send" || call.Queue != "default" || call.Args != (email{"a"}) || call.Header("locale") != "de" {
			t.Errorf("found %+v", call)
		}
		name, ok := ctx.Value(tenant{}).(string)
		if !ok {
			return errors.New("no tenant")
		}
		call.SetHeader("tenant", name)
		return nil
	})
	options := Headers(map[string]string{"locale": "de", "a": "1"})
	ref := must1[*JobRef](t)(Enqueue(context.WithValue(ctx, tenant{}, "7"), c, email{"a"}, options))
	line, _ := record(t, r, ref.ID, "default")
	if found := fmt.Sprint(line["headers"]); found != "map[a:1 locale:de tenant:7]" {
		t.Errorf("found %s", found)
	}
	if _, err := Enqueue(ctx, c, email{"a"}, options); err == nil || err.Error() != "no tenant" {
		t.Errorf("found %v", err)
	}
}

func TestATypeThatIsNotKnownHere(t *testing.T) {
	ctx, c, r := start(t)
	ref := must1[*JobRef](t)(c.Send(ctx, "report.make", map[string]int{"year": 2026}, Queue("slow"), Delay(time.Second)))
	if line, payload := record(t, r, ref.ID, "slow"); line["type"] != "report.make" || payload != `{"year":2026}` {
		t.Errorf("found %v %s", line, payload)
	}
	for _, raw := range [][]byte{{0, 255}, nil} {
		ref = must1[*JobRef](t)(c.Send(ctx, "raw", raw))
		if _, payload := record(t, r, ref.ID, "default"); payload != string(raw) {
			t.Errorf("found %q", payload)
		}
	}
}

func TestCancelRequeueAndState(t *testing.T) {
	ctx, c, r := start(t)
	ref := must1[*JobRef](t)(Enqueue(ctx, c, email{"a"}, Delay(time.Hour), Keep(time.Hour)))
	state, yes := must1[State](t), must1[bool](t)
	if state(ref.State(ctx)) != StateWaiting || !yes(ref.Requeue(ctx)) {
		t.Error("expected a waiting job")
	}
	if score := must1[float64](t)(r.ZScore(ctx, "hf:{default}:schedule", ref.ID).Result()); int64(score) > time.Now().UnixMilli()+100 {
		t.Error("expected that it runs now")
	}
	if !yes(ref.Cancel(ctx)) || state(ref.State(ctx)) != StateCancelled || yes(ref.Cancel(ctx)) || yes(ref.Requeue(ctx)) {
		t.Error("expected a cancelled job")
	}
	for _, wrong := range []struct {
		ref *JobRef
		err error
	}{{ref, ErrJobCancelled}, {c.Ref("never", ""), ErrJobUnknown}} {
		if _, err := Result[int](ctx, wrong.ref); !errors.Is(err, wrong.err) {
			t.Errorf("expected %v, found %v", wrong.err, err)
		}
	}
	if _, err := c.Ref("a b", "").State(ctx); err == nil {
		t.Error("expected an error about the id")
	}
}

func TestAResultNeedsKeepAndEndsWithItsContext(t *testing.T) {
	ctx, c, _ := start(t)
	if _, err := Result[int](ctx, must1[*JobRef](t)(Enqueue(ctx, c, email{"a"}))); !errors.Is(err, ErrNotKept) {
		t.Errorf("found %v", err)
	}
	short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	started := time.Now()
	_, err := Result[int](short, must1[*JobRef](t)(Enqueue(ctx, c, email{"a"}, Keep(time.Hour))))
	if !errors.Is(err, context.DeadlineExceeded) || time.Since(started) < 250*time.Millisecond {
		t.Errorf("found %v", err)
	}
	cancelled, cancel := context.WithCancel(ctx)
	time.AfterFunc(100*time.Millisecond, cancel)
	started = time.Now()
	_, err = Result[int](cancelled, must1[*JobRef](t)(Enqueue(ctx, c, email{"a"}, Keep(time.Hour))))
	if !errors.Is(err, context.Canceled) || time.Since(started) > 30*time.Second {
		t.Errorf("found %v after %v", err, time.Since(started))
	}
	// One that is known to be kept by its arguments' options.
	short, cancel = context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	if _, err := Result[int](short, must1[*JobRef](t)(Enqueue(ctx, c, report{}))); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("found %v", err)
	}
}

func TestAResultThatIsThere(t *testing.T) {
	ctx, c, r := start(t)
	now := float64(time.Now().UnixMilli())
	keep := func(id, kind, result string) *JobRef { // as a worker writes it
		line := `{"type":"t","attempts":0,"ran":1,"worker":"w"` + kind + "}\n" + result
		r.ZAdd(ctx, "hf:{default}:done", redis.Z{Score: now, Member: id})
		r.ZAdd(ctx, "hf:{default}:kept", redis.Z{Score: now + 60000, Member: id})
		r.HSet(ctx, "hf:{default}:results", id, line)
		return c.Ref(id, "")
	}
	r.HSet(ctx, "hf:{default}:meta", "uses", "k")
	rows := must1[map[string]int](t)(Result[map[string]int](ctx, keep("j", `,"result":"json"`, `{"rows":20}`)))
	bytes := must1[[]byte](t)(Result[[]byte](ctx, keep("b", `,"result":"bytes"`, "\x00\n")))
	none := must1[int](t)(Result[int](ctx, keep("n", "", "")))
	if rows["rows"] != 20 || string(bytes) != "\x00\n" || none != 0 {
		t.Errorf("found %v %q %d", rows, bytes, none)
	}
	if _, err := Result[int](ctx, c.Ref("b", "")); err == nil || !strings.Contains(err.Error(), "found bytes") {
		t.Errorf("found %v", err)
	}
	if _, err := Result[int](ctx, c.Ref("j", "")); err == nil || !strings.Contains(err.Error(), "cannot unmarshal object") {
		t.Errorf("found %v", err)
	}
}

func TestADeadJob(t *testing.T) {
	ctx, c, r := start(t)
	r.HSet(ctx, "hf:{default}:jobs", "d", `{"type":"t","error":"no such user"}`+"\n")
	r.ZAdd(ctx, "hf:{default}:dead", redis.Z{Score: 1700000000000, Member: "d"})
	_, err := Result[int](ctx, c.Ref("d", ""))
	var dead *JobDeadError
	if !errors.As(err, &dead) || dead.Text != "no such user" || dead.ID != "d" || dead.Queue != "default" {
		t.Errorf("found %v", err)
	}
}

// die lets a job that is awaited be dead, as a worker does it.
func die(t *testing.T, r *redis.Client, ref *JobRef) {
	t.Helper()
	ctx, prefix := context.Background(), "hf:{"+ref.Queue+"}:"
	accepted, _, _ := strings.Cut(must1[string](t)(r.HGet(ctx, prefix+"waits", ref.ID).Result()), " ")
	r.HDel(ctx, prefix+"waits", ref.ID)
	r.ZRem(ctx, prefix+"schedule", ref.ID)
	r.Set(ctx, prefix+"ended:@"+accepted+":"+ref.ID, "1700000000000 dead *", 0)
	r.HSet(ctx, prefix+"jobs", ref.ID, `{"type":"t","error":"no such user"}`+"\n")
	r.ZAdd(ctx, prefix+"dead", redis.Z{Score: 1700000000000, Member: ref.ID})
}

func TestARetryBeginsANewLife(t *testing.T) {
	ctx, c, r := start(t)
	for name, retry := range map[string]func(*JobRef) (bool, error){
		"by this ref":  func(ref *JobRef) (bool, error) { return ref.Requeue(ctx) },
		"from outside": func(ref *JobRef) (bool, error) { return c.Ref(ref.ID, "").Requeue(ctx) },
	} {
		for _, told := range []bool{true, false} {
			ref := must1[*JobRef](t)(Enqueue(ctx, c, email{"a"}, Keep(time.Hour), Awaited()))
			die(t, r, ref)
			var dead *JobDeadError
			if told {
				if _, err := Result[int](ctx, ref); !errors.As(err, &dead) {
					t.Errorf("%s: found %v", name, err)
				}
			}
			if !must1[bool](t)(retry(ref)) {
				t.Errorf("%s: expected a retry", name)
			}
			short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
			if _, err := Result[int](short, ref); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s, told %v: found %v", name, told, err)
			}
			cancel()
			if state := must1[State](t)(ref.State(ctx)); state != StateWaiting {
				t.Errorf("%s, told %v: found %v", name, told, state)
			}
		}
	}
	gone := must1[*JobRef](t)(Enqueue(ctx, c, email{"a"}, Keep(time.Hour), Awaited()))
	die(t, r, gone)
	r.ZRem(ctx, "hf:{default}:dead", gone.ID)
	r.HDel(ctx, "hf:{default}:jobs", gone.ID)
	if _, err := Result[int](ctx, gone); err == nil || !strings.Contains(err.Error(), "removed since then") {
		t.Errorf("found %v", err)
	}
	early := must1[*JobRef](t)(Enqueue(ctx, c, email{"a"}, Awaited(), Delay(time.Hour)))
	if !must1[bool](t)(early.Requeue(ctx)) || early.accepted == 0 {
		t.Error("expected the same life: the job was not dead")
	}
}

func TestTheKeepOfAnotherJobIsNotKnown(t *testing.T) {
	ctx, c, _ := start(t)
	must1[*JobRef](t)(Enqueue(ctx, c, email{"a"}, Keep(time.Hour), ID("x"), Unique("k")))
	short, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	for _, option := range []EnqueueOption{ID("x"), Unique("k")} {
		ref := must1[*JobRef](t)(Enqueue(ctx, c, email{"a"}, option))
		if _, err := Result[int](short, ref); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v: found %v", ref.Outcome, err)
		}
	}
}

func TestGoroutinesShareAClient(t *testing.T) {
	ctx, c, r := start(t)
	var all sync.WaitGroup
	for range 50 {
		all.Add(1)
		go func() {
			defer all.Done()
			for range 20 {
				if _, err := Enqueue(ctx, c, email{"a"}); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	all.Wait()
	if n := waiting(t, r, "default"); n != 1000 {
		t.Errorf("found %d jobs", n)
	}
}

// A loser is a client of Redis that loses answers, after they were executed.
type loser struct {
	lose func()
}

func (l *loser) DialHook(next redis.DialHook) redis.DialHook { return next }
func (l *loser) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
func (l *loser) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if lose := l.lose; lose != nil && err == nil && strings.EqualFold(cmd.Name(), "evalsha") {
			l.lose = nil
			lose()
			err = &net.OpError{Op: "read", Err: errors.New("lost")}
			cmd.SetErr(err)
		}
		return err
	}
}

func TestARequestThatComesTwiceIsExecutedOnce(t *testing.T) {
	ctx, _, r := start(t)
	l := &loser{}
	own := redis.NewClient(r.Options())
	defer own.Close()
	own.AddHook(l)
	c := New(Options{Redis: own})
	must1[*JobRef](t)(Enqueue(ctx, c, email{"0"}))
	lost := false
	l.lose = func() {
		lost = true
		r.Del(ctx, "hf:{default}:jobs", "hf:{default}:schedule") // it has run since then
	}
	ref := must1[*JobRef](t)(Enqueue(ctx, c, email{"1"}))
	if !lost || ref.Outcome != OutcomeNew || waiting(t, r, "default") != 0 {
		t.Errorf("expected one execution, found %v", ref)
	}
	if err := c.Close(); err != nil || own.Ping(ctx).Err() != nil {
		t.Error("expected the program's own client to stay open")
	}
}

// The step ends what Redis remembers of the producer, so nobody can tell.
func TestARequestIsNotExecutedAgainAfterAStepForward(t *testing.T) {
	ctx, _, r := start(t)
	l := &loser{}
	own := redis.NewClient(r.Options())
	defer own.Close()
	own.AddHook(l)
	c := New(Options{Redis: own})
	must1[*JobRef](t)(Enqueue(ctx, c, email{"0"}))
	c.clock.redis -= time.Hour.Milliseconds() // until the next answer is lost
	l.lose = func() {
		r.Del(ctx, append(r.Keys(ctx, "hf:{default}:seen:*").Val(), "hf:{default}:jobs", "hf:{default}:schedule")...)
	}
	if _, err := Enqueue(ctx, c, email{"1"}); !errors.Is(err, ErrNoAnswer) || waiting(t, r, "default") != 0 {
		t.Errorf("expected no second execution, found %v", err)
	}
	must1[*JobRef](t)(Enqueue(ctx, c, email{"2"}))
}

func TestScriptsAreLoadedAgain(t *testing.T) {
	ctx, c, r := start(t)
	must1[*JobRef](t)(Enqueue(ctx, c, email{"0"}))
	r.ScriptFlush(ctx)
	must1[*JobRef](t)(Enqueue(ctx, c, email{"1"}))
}

func TestRedisThatRestarts(t *testing.T) {
	server := testredis.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	ctx, c := context.Background(), New(Options{URL: server.URL, Deadline: 2 * time.Minute})
	defer c.Close()
	must1[*JobRef](t)(Enqueue(ctx, c, email{"0"}))
	server.Kill()
	done := make(chan error)
	go func() {
		_, err := Enqueue(ctx, c, email{"1"})
		done <- err
	}()
	server.Run(t)
	if err := <-done; err != nil || waiting(t, server.Client, "default") != 2 {
		t.Errorf("found %v", err)
	}
}

func TestNoRedisIsToldInTime(t *testing.T) {
	c := New(Options{URL: "redis://localhost:1", Deadline: 300 * time.Millisecond})
	_, err := Enqueue(context.Background(), c, email{"0"})
	if !errors.Is(err, ErrNoAnswer) || !strings.Contains(err.Error(), "no answer from Redis in 300ms: ") {
		t.Errorf("found %v", err)
	}
	c = New(Options{URL: "redis://localhost:1", Deadline: time.Minute})
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	for _, sent := range []bool{true, false} { // ctx ends in the first call, and before the second one
		_, err = Enqueue(ctx, c, email{"0"})
		if errors.Is(err, ErrNoAnswer) != sent || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("found %v", err)
		}
	}
}

func TestWhatRedisRefuses(t *testing.T) {
	ctx, c, r := start(t)
	r.Set(ctx, "hf:{default}:jobs", "no hash", 0)
	_, err := Enqueue(ctx, c, email{"0"})
	var refused *RefusedError
	if !errors.As(err, &refused) || !strings.Contains(refused.Text, "WRONGTYPE") {
		t.Errorf("found %v", err)
	}
}

func TestAWrongPasswordAndAClosedClientAreToldAtOnce(t *testing.T) {
	ctx, c, r := start(t)
	r.ConfigSet(ctx, "requirepass", "secret")
	started := time.Now()
	_, err := Enqueue(ctx, New(Options{URL: "unix://:wrong@" + r.Options().Addr, Deadline: 2 * time.Minute}), email{"0"})
	var refused *RefusedError
	if !errors.As(err, &refused) || !strings.Contains(refused.Text, "WRONGPASS") {
		t.Errorf("found %v", err)
	}
	c.Close()
	if _, err = Enqueue(ctx, c, email{"0"}); !errors.Is(err, redis.ErrClosed) || time.Since(started) > time.Minute {
		t.Errorf("found %v", err)
	}
}

func TestAQueueWithShards(t *testing.T) {
	ctx, c, r := start(t)
	tags := []string{"wide/0-0", "wide/1-0", "wide/2-0", "wide/3-0"}
	r.HSet(ctx, "hf:{wide}:meta", "uses", "s", "shards", "4 "+strings.Join(tags, " "))
	counts := func() []int64 {
		var all []int64
		for _, tag := range tags {
			all = append(all, waiting(t, r, tag))
		}
		slices.Sort(all)
		return all
	}
	var refs []*JobRef
	for range 8 {
		refs = append(refs, must1[*JobRef](t)(Enqueue(ctx, c, email{"a"}, Queue("wide"))))
	}
	if found := counts(); !slices.Equal(found, []int64{2, 2, 2, 2}) {
		t.Errorf("found %v", found)
	}
	for _, ref := range refs {
		if must1[State](t)(ref.State(ctx)) != StateWaiting || must1[State](t)(c.Ref(ref.ID, "wide").State(ctx)) != StateWaiting {
			t.Errorf("expected to find %v", ref)
		}
	}
	must1[[]*JobRef](t)(EnqueueMany(ctx, c, make([]email, 10), Queue("wide")))
	if found := counts(); !slices.Equal(found, []int64{2, 2, 2, 12}) {
		t.Errorf("found %v", found)
	}
	must1[*JobRef](t)(Enqueue(ctx, c, email{"a"}, Queue("wide"), ID("x")))
	if !must1[bool](t)(c.Ref("x", "wide").Cancel(ctx)) || !must1[bool](t)(c.Ref(refs[3].ID, "wide").Cancel(ctx)) {
		t.Error("expected that they are found")
	}
	var many []Args
	for i := range 20 {
		many = append(many, With(email{"a"}, ID(fmt.Sprint("id-", i))))
	}
	if _, err := EnqueueMany(ctx, c, many, Queue("wide")); err == nil || !strings.Contains(err.Error(), "one shard") {
		t.Errorf("found %v", err)
	}
}
