package holdfast

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"holdfast-queue/holdfast/internal/testredis"
)

// The arguments of internal/apps/whole.
type addition struct {
	A int `json:"a"`
	B int `json:"b"`
}

func (addition) Kind() string          { return "add" }
func (addition) Options() []TypeOption { return []TypeOption{Keep(time.Hour)} }

type does struct {
	What string `json:"what"`
}

func (does) Kind() string          { return "does" }
func (does) Options() []TypeOption { return []TypeOption{Keep(time.Hour), Queue("second")} }

// command returns the command holdfast; without it the test is skipped.
func command(t *testing.T) string {
	t.Helper()
	path := os.Getenv("HOLDFAST")
	if path == "" {
		path, _ = exec.LookPath("holdfast")
	}
	if path == "" {
		t.Skip("no command holdfast: HOLDFAST names it")
	}
	return path
}

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "hf-go-apps-")
	if err != nil {
		log.Fatal(err)
	}
	buildApps = sync.OnceValues(func() (string, error) {
		out, err := exec.Command("go", "build", "-o", dir, "./internal/apps/...").CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, out)
		}
		return dir, err
	})
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// buildApps builds the programs of internal/apps at its first call, and returns their folder.
var buildApps func() (string, error)

// app returns the path of a program of internal/apps.
func app(t *testing.T, name string) string {
	t.Helper()
	dir, err := buildApps()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, name)
}

func TestConform(t *testing.T) {
	holdfast := command(t)
	out, err := exec.Command(holdfast, "conform", "--timeout", "2m", "--", app(t, "conform")).CombinedOutput()
	t.Logf("%s", out)
	if err != nil || !strings.Contains(string(out), " 0 failed, 0 skipped") {
		t.Errorf("%v", err)
	}
}

func TestTheWholeWay(t *testing.T) {
	holdfast, program, server := command(t), app(t, "whole"), testredis.Start(t)
	var log bytes.Buffer
	worker := exec.Command(program)
	worker.Env = append(os.Environ(), "HOLDFAST_BIN="+holdfast, "REDIS_URL="+server.URL)
	worker.Stdout, worker.Stderr = &log, &log
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	c := New(Options{URL: server.URL})
	defer c.Close()
	ended := false
	defer func() {
		if !ended {
			worker.Process.Kill()
			worker.Wait()
		}
		if t.Failed() {
			t.Logf("%s", log.Bytes())
		}
	}()

	result := func(what string, options ...EnqueueOption) (string, error) {
		return Result[string](ctx, must1[*JobRef](t)(Enqueue(ctx, c, does{what}, options...)))
	}
	fails := func(what, text string, options ...EnqueueOption) {
		t.Helper()
		value, err := result(what, options...)
		var dead *JobDeadError
		if !errors.As(err, &dead) || !strings.Contains(dead.Text, text) {
			t.Errorf("%s: expected a dead job with %q, found %q, %v", what, text, value, err)
		}
	}

	if sum := must1[int](t)(Result[int](ctx, must1[*JobRef](t)(Enqueue(ctx, c, addition{1, 2})))); sum != 3 {
		t.Errorf("found %d", sum)
	}
	many := make([]addition, 500)
	for i := range many {
		many[i] = addition{i, 1}
	}
	for i, ref := range must1[[]*JobRef](t)(EnqueueMany(ctx, c, many)) {
		if sum := must1[int](t)(Result[int](ctx, ref)); sum != i+1 {
			t.Errorf("job %d: found %d", i, sum)
		}
	}
	if found := must1[string](t)(result("third")); found != "attempt 3" {
		t.Errorf("found %q", found)
	}
	if found := must1[string](t)(result("tenant", Header("tenant", "7"))); found != "7 does" {
		t.Errorf("found %q", found)
	}
	fails("nothing known", "no such thing: nothing known", MaxAttempts(1))
	fails("dead", "really: never again")
	fails("panic", "whole/main.go", MaxAttempts(1))
	fails("panic", "panic: assignment to entry in nil map", MaxAttempts(1))
	fails("wait", "timed out", MaxAttempts(1), Timeout(200*time.Millisecond))
	bad := must1[*JobRef](t)(c.Send(ctx, "add", map[string]string{"a": "one"}, Keep(time.Hour)))
	if _, err := Result[int](ctx, bad); err == nil || !strings.Contains(err.Error(), "payload: expected int as 'a', found string") {
		t.Errorf("found %v", err)
	}

	running := func(ref *JobRef) {
		t.Helper()
		testredis.Until(t, "the job runs", func() bool { return must1[State](t)(ref.State(ctx)) == StateRunning })
	}
	cancelled := must1[*JobRef](t)(Enqueue(ctx, c, does{"wait"}))
	running(cancelled)
	if !must1[bool](t)(cancelled.Cancel(ctx)) {
		t.Error("expected a running job")
	}
	if _, err := Result[string](ctx, cancelled); !errors.Is(err, ErrJobCancelled) {
		t.Errorf("found %v", err)
	}

	// A loop that never looks at its context is killed with its process, and the
	// others of the process run again.
	neighbour := must1[*JobRef](t)(Enqueue(ctx, c, does{"wait"}))
	running(neighbour)
	stacks := ""
	for try := 0; try < 3 && !strings.Contains(stacks, "main.does"); try++ { // a busy machine may give it no time
		_, err := result("spin", MaxAttempts(1), Timeout(300*time.Millisecond))
		var dead *JobDeadError
		if !errors.As(err, &dead) {
			t.Fatalf("expected a dead job, found %v", err)
		}
		stacks = dead.Text
	}
	if !strings.Contains(stacks, "main.does") {
		t.Errorf("expected the stack of the handler, found %q", stacks)
	}
	if sum := must1[int](t)(Result[int](ctx, must1[*JobRef](t)(Enqueue(ctx, c, addition{1, 2})))); sum != 3 {
		t.Errorf("found %d", sum)
	}
	running(neighbour)

	worker.Process.Signal(syscall.SIGTERM)
	must1[bool](t)(neighbour.Cancel(ctx))
	err := worker.Wait()
	ended = true
	if err != nil {
		t.Errorf("expected the worker to end with status 0, found %v", err)
	}
	for _, text := range []string{"msg=start", "msg=stop", "job_type=does"} {
		if !strings.Contains(log.String(), text) {
			t.Errorf("expected %q in the log", text)
		}
	}
}

type greet struct {
	Name string `json:"name"`
}

func (greet) Kind() string          { return "greet" }
func (greet) Options() []TypeOption { return []TypeOption{Keep(time.Hour)} }

func TestACommandInsideOfTheProgram(t *testing.T) {
	holdfast, program, server := command(t), app(t, "embedded"), testredis.Start(t)
	var log bytes.Buffer
	worker := exec.Command(program)
	worker.Env = append(os.Environ(), "COMMAND="+holdfast, "HOLDFAST_BIN=", "PATH=/nowhere", "REDIS_URL="+server.URL)
	worker.Stdout, worker.Stderr = &log, &log
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	c := New(Options{URL: server.URL})
	defer c.Close()
	greeting, err := Result[string](ctx, must1[*JobRef](t)(Enqueue(ctx, c, greet{"Ada"})))
	worker.Process.Signal(syscall.SIGTERM)
	if ended := worker.Wait(); greeting != "hello, Ada" || err != nil || ended != nil {
		t.Errorf("found %q, %v, %v\n%s", greeting, err, ended, log.String())
	}
}

func TestRunSaysWhatIsMissing(t *testing.T) {
	ctx := context.Background()
	t.Setenv("REDIS_URL", "redis://nowhere") // Run may set it
	if err := Run(ctx, NewMux()); err == nil || !strings.Contains(err.Error(), "expected a handler") {
		t.Errorf("found %v", err)
	}
	m := NewMux()
	Handle(m, nothing[email])
	t.Setenv("HOLDFAST_BIN", "")
	t.Setenv("PATH", t.TempDir())
	if err := Run(ctx, m); err == nil || !strings.Contains(err.Error(), "an import of holdfast-queue/holdfast/command, found none") {
		t.Errorf("found %v", err)
	}
	t.Setenv("HOLDFAST_BIN", "/nowhere/holdfast")
	if err := Run(ctx, m); err == nil || !strings.Contains(err.Error(), "cannot execute /nowhere/holdfast") {
		t.Errorf("found %v", err)
	}
	for _, wrong := range []RunOption{Processes(0), Parallel(1025), Queues("a b"), Namespace("{")} {
		if err := Run(ctx, m, wrong); err == nil || !strings.Contains(err.Error(), "expected") {
			t.Errorf("found %v", err)
		}
	}
}
