package holdfasttest_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast-queue/holdfast"
	"holdfast-queue/holdfast/holdfasttest"
)

type email struct {
	To string `json:"to"`
}

func (email) Kind() string { return "email.send" }

var errBusy = errors.New("busy")

// handlers returns handlers of emails; one to "again" enqueues another one.
func handlers(hf *holdfast.Client) *holdfast.Mux {
	mux := holdfast.NewMux()
	holdfast.HandleResult(mux, func(ctx context.Context, job *holdfast.Job[email]) (string, error) {
		if holdfast.CurrentRun(ctx).ID != job.ID {
			return "", errors.New("no run in the context")
		}
		switch job.Args.To {
		case "again":
			_, err := holdfast.Enqueue(ctx, hf, email{"ada"})
			return "", err
		case "busy":
			return "", errBusy
		case "later":
			return "", holdfast.RetryIn(time.Second, errBusy)
		case "dead":
			return "", holdfast.Dead(errBusy)
		case "cancel":
			return "", holdfast.Cancel(nil)
		case "panic":
			panic("here")
		}
		return job.Args.To + job.Headers["tenant"], nil
	})
	return mux
}

func TestAFakeKeepsJobsAndRunsThem(t *testing.T) {
	ctx := context.Background()
	fake := holdfasttest.New()
	hf := fake.Client()
	ref, err := holdfast.Enqueue(ctx, hf, email{"ada"}, holdfast.Delay(time.Minute), holdfast.Header("tenant", "7"),
		holdfast.Queue("mail"), holdfast.Keep(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := holdfast.Enqueue(ctx, hf, email{"again"}); err != nil {
		t.Fatal(err)
	}
	jobs := fake.Of("email.send")
	args, err := holdfasttest.ArgsOf[email](jobs[0])
	if len(jobs) != 2 || jobs[0].Args != (email{"ada"}) || args != (email{"ada"}) || err != nil || jobs[0].Queue != "mail" ||
		jobs[0].Delay != time.Minute || jobs[0].Headers["tenant"] != "7" || len(fake.Of("other")) != 0 {
		t.Errorf("found %+v", jobs[0])
	}
	if _, err := holdfast.Result[string](ctx, ref); err == nil || !strings.Contains(err.Error(), "call RunAll first") {
		t.Errorf("found %v", err)
	}
	if ran, err := fake.RunAll(ctx, handlers(hf)); ran != 3 || err != nil {
		t.Errorf("found %d, %v", ran, err)
	}
	if result, err := holdfast.Result[string](ctx, ref); result != "ada7" || err != nil {
		t.Errorf("found %q, %v", result, err)
	}
	if len(fake.Jobs()) != 0 || len(fake.Done()) != 3 {
		t.Error("expected that all have run")
	}
	fake.Clear()
	if len(fake.Done()) != 0 {
		t.Error("expected none")
	}
}

func TestIDsAndUniqueKeys(t *testing.T) {
	ctx := context.Background()
	fake := holdfasttest.New()
	send := func(options ...holdfast.EnqueueOption) *holdfast.JobRef {
		ref, err := holdfast.Enqueue(ctx, fake.Client(), email{"ada"}, options...)
		if err != nil {
			t.Fatal(err)
		}
		return ref
	}
	first := send(holdfast.ID("x"), holdfast.Unique("k"), holdfast.Keep(time.Hour))
	if again := send(holdfast.ID("x")); again.Outcome != holdfast.OutcomeExists {
		t.Errorf("found %v", again.Outcome)
	}
	if skipped := send(holdfast.Unique("k")); skipped.Outcome != holdfast.OutcomeSkipped || skipped.ID != "x" {
		t.Errorf("found %v", skipped)
	}
	if cancelled, err := first.Cancel(ctx); !cancelled || err != nil {
		t.Errorf("found %v, %v", cancelled, err)
	}
	if state, _ := first.State(ctx); state != holdfast.StateCancelled {
		t.Errorf("found %v", state)
	}
	if _, err := holdfast.Result[string](ctx, first); !errors.Is(err, holdfast.ErrJobCancelled) {
		t.Errorf("found %v", err)
	}
	if len(fake.Jobs()) != 0 {
		t.Error("expected none")
	}
}

func TestAVerdictIsNoErrorOfTheTest(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		to    string
		state holdfast.State
		text  string
	}{
		{"later", holdfast.StateWaiting, ""}, {"dead", holdfast.StateDead, ""}, {"cancel", holdfast.StateCancelled, ""},
		{"busy", holdfast.StateDead, ": busy"}, {"panic", holdfast.StateDead, "panic: here"},
	} {
		fake := holdfasttest.New()
		ref, _ := holdfast.Enqueue(ctx, fake.Client(), email{c.to})
		_, err := fake.RunAll(ctx, handlers(fake.Client()))
		if c.text == "" && err != nil || c.text != "" && (err == nil || !strings.Contains(err.Error(), c.text)) {
			t.Errorf("%s: found %v", c.to, err)
		}
		if state, _ := ref.State(ctx); state != c.state || append(fake.Done(), fake.Jobs()...)[0].Err() == nil {
			t.Errorf("%s: found %v", c.to, state)
		}
	}
}

func TestAJobThatAsksForAnotherRunWaits(t *testing.T) {
	ctx := context.Background()
	var attempts []int
	mux := holdfast.NewMux()
	holdfast.Handle(mux, func(ctx context.Context, job *holdfast.Job[email]) error {
		attempts = append(attempts, job.Attempt)
		switch len(attempts) {
		case 1:
			return holdfast.RetryIn(30*time.Second, errBusy)
		case 2:
			return holdfast.ReleaseIn(time.Minute, nil)
		}
		return nil
	})
	fake := holdfasttest.New()
	ref, err := holdfast.Enqueue(ctx, fake.Client(), email{"ada"}, holdfast.Delay(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	for _, delay := range []time.Duration{30 * time.Second, time.Minute} {
		if ran, err := fake.RunAll(ctx, mux); ran != 1 || err != nil {
			t.Errorf("found %d, %v", ran, err)
		}
		jobs := fake.Jobs()
		if len(jobs) != 1 || len(fake.Done()) != 0 || jobs[0].ID != ref.ID || jobs[0].Delay != delay {
			t.Fatalf("found %+v", jobs)
		}
	}
	if ran, err := fake.RunAll(ctx, mux); ran != 1 || err != nil || len(fake.Jobs()) != 0 || len(fake.Done()) != 1 {
		t.Errorf("found %d, %v", ran, err)
	}
	if !slices.Equal(attempts, []int{1, 2, 2}) {
		t.Errorf("found %v", attempts)
	}
}

func TestInline(t *testing.T) {
	ctx := context.Background()
	fake := holdfasttest.Inline(handlers(nil))
	ref, err := holdfast.Enqueue(ctx, fake.Client(), email{"ada"}, holdfast.Keep(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if result, err := holdfast.Result[string](ctx, ref); result != "ada" || err != nil {
		t.Errorf("found %q, %v", result, err)
	}
	if _, err := holdfast.Enqueue(ctx, fake.Client(), email{"busy"}); !errors.Is(err, errBusy) {
		t.Errorf("found %v", err)
	}
	unkept, err := holdfast.Enqueue(ctx, fake.Client(), email{"ada"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := holdfast.Result[string](ctx, unkept); !errors.Is(err, holdfast.ErrNotKept) {
		t.Errorf("found %v", err)
	}
	sent, err := fake.Client().Send(ctx, "email.send", email{"ada"}) // what its handler keeps is not known here
	if err != nil {
		t.Fatal(err)
	}
	if result, err := holdfast.Result[string](ctx, sent); result != "ada" || err != nil {
		t.Errorf("found %q, %v", result, err)
	}
}

func TestARefOfTheClientIsOfTheFake(t *testing.T) {
	ctx := context.Background()
	fake := holdfasttest.New()
	made, err := holdfast.Enqueue(ctx, fake.Client(), email{"ada"}, holdfast.Keep(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	ref := fake.Client().Ref(made.ID, "")
	if _, err := fake.RunAll(ctx, handlers(fake.Client())); err != nil {
		t.Fatal(err)
	}
	if state, err := ref.State(ctx); state != holdfast.StateDone || err != nil {
		t.Errorf("found %v, %v", state, err)
	}
	if result, err := holdfast.Result[string](ctx, ref); result != "ada" || err != nil {
		t.Errorf("found %q, %v", result, err)
	}
	if _, err := fake.Client().Ref("none", "").State(ctx); err == nil || !strings.Contains(err.Error(), "has no such job") {
		t.Errorf("found %v", err)
	}
}

func TestAttemptsAreUsedUp(t *testing.T) {
	ctx := context.Background()
	fake := holdfasttest.New()
	ref, err := holdfast.Enqueue(ctx, fake.Client(), email{"later"}, holdfast.MaxAttempts(2))
	if err != nil {
		t.Fatal(err)
	}
	for _, expected := range []holdfast.State{holdfast.StateWaiting, holdfast.StateDead} {
		if ran, err := fake.RunAll(ctx, handlers(fake.Client())); ran != 1 || err != nil {
			t.Errorf("found %d, %v", ran, err)
		}
		if state, err := ref.State(ctx); state != expected || err != nil {
			t.Errorf("found %v, %v", state, err)
		}
	}
}

func TestNewJob(t *testing.T) {
	job, told := holdfasttest.NewJob(email{"ada"})
	job.Attempt = 2
	job.Headers["tenant"] = "7"
	if job.MaxAttempts != 20 {
		t.Errorf("found %d attempts", job.MaxAttempts)
	}
	if err := job.Progress(50, "connected"); err != nil {
		t.Fatal(err)
	}
	job.Log("row %d", 17)
	if err := job.SetCheckpoint([]byte("17")); err != nil {
		t.Fatal(err)
	}
	percent, note := told.LastProgress()
	if percent != 50 || note != "connected" || told.Logged() != "row 17" || string(told.LastCheckpoint()) != "17" ||
		string(job.Checkpoint()) != "17" || job.Stopping() {
		t.Errorf("found %d %q %q", percent, note, told.Logged())
	}
	if err := job.Progress(50, strings.Repeat("x", 257)); !errors.Is(err, holdfast.ErrTooLarge) {
		t.Errorf("found %v", err)
	}
	if err := job.Progress(101, ""); err == nil {
		t.Error("expected an error")
	}
}
