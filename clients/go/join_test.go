package holdfast

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast-queue/holdfast/internal/testredis"
)

// A joined is a program that was started by hand, perhaps under a debugger.
type joined struct {
	*exec.Cmd
	out bytes.Buffer
}

// listen starts a worker with --listen.
func listen(t *testing.T, holdfast string, server *testredis.Server) *exec.Cmd {
	t.Helper()
	path := filepath.Join(server.Dir, "join")
	worker := exec.Command(holdfast, "worker", "run", "--dev", "--listen", path, "--redis", server.URL)
	var log bytes.Buffer
	worker.Stderr = &log
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if worker.ProcessState == nil {
			worker.Process.Kill()
			worker.Wait()
		}
		if t.Failed() {
			t.Logf("%s", log.Bytes())
		}
	})
	testredis.Until(t, "the worker listens", func() bool { _, err := os.Stat(path); return err == nil })
	return worker
}

func join(t *testing.T, program string, server *testredis.Server) *joined {
	t.Helper()
	j := &joined{Cmd: exec.Command(program)}
	j.Env = append(os.Environ(), "REDIS_URL="+server.URL, "HOLDFAST_SOCKET="+filepath.Join(server.Dir, "join"))
	j.Stdout, j.Stderr = &j.out, &j.out
	if err := j.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if j.ProcessState == nil {
			j.Process.Kill()
			j.Wait()
		}
		if t.Failed() {
			t.Logf("%s", j.out.Bytes())
		}
	})
	return j
}

func TestAProgramJoinsAWorker(t *testing.T) {
	holdfast, program, server := command(t), app(t, "whole"), testredis.Start(t)
	worker := listen(t, holdfast, server)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	c := New(Options{URL: server.URL})
	defer c.Close()
	is := func(ref *JobRef, state State) {
		t.Helper()
		testredis.Until(t, "the job is "+string(state), func() bool { return must1[State](t)(ref.State(ctx)) == state })
	}

	// No time-out ends a run, and after a cancel the program goes on.
	j := join(t, program, server)
	waits := must1[*JobRef](t)(Enqueue(ctx, c, does{"wait"}, Timeout(100*time.Millisecond)))
	is(waits, StateRunning)
	time.Sleep(500 * time.Millisecond)
	is(waits, StateRunning)
	if !must1[bool](t)(waits.Cancel(ctx)) {
		t.Error("expected a running job")
	}
	is(waits, StateCancelled)
	if sum := must1[int](t)(Result[int](ctx, must1[*JobRef](t)(Enqueue(ctx, c, addition{1, 2})))); sum != 3 {
		t.Errorf("found %d", sum)
	}

	// ^C ends it, and its job goes back.
	waits = must1[*JobRef](t)(Enqueue(ctx, c, does{"wait"}))
	is(waits, StateRunning)
	j.Process.Signal(os.Interrupt)
	var exit *exec.ExitError
	if err := j.Wait(); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGINT {
		t.Errorf("expected its end by SIGINT, found %v", err)
	}
	is(waits, StateWaiting)

	j = join(t, program, server)
	is(waits, StateRunning)
	must1[bool](t)(waits.Cancel(ctx))
	is(waits, StateCancelled)
	worker.Process.Signal(syscall.SIGTERM)
	if err := worker.Wait(); err != nil {
		t.Errorf("expected the worker to end with status 0, found %v", err)
	}
	if err := j.Wait(); err != nil || !strings.Contains(j.out.String(), "msg=stop") {
		t.Errorf("expected it to end with status 0 after OnStop, found %v", err)
	}

	j = join(t, program, server)
	if err := j.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 78 {
		t.Errorf("expected status 78, found %v", err)
	}
	if text := "holdfast: expected a worker with --listen at the path in HOLDFAST_SOCKET, found none: dial unix "; !strings.Contains(j.out.String(), text) {
		t.Errorf("expected %q, found %q", text, j.out.String())
	}
}
