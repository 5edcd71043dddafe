package holdfast

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"

	"holdfast-queue/holdfast/internal/embedded"
	"holdfast-queue/holdfast/internal/pipe"
)

// A RunOption is an option of Run.
type RunOption func(*runOptions) error

type runOptions struct {
	queues    []string
	processes int
	parallel  int
	logs      bool
	config    string
	url       string
	namespace string
}

// Queues names the queues that the worker serves. Without it those that the
// handlers name, and "default".
func Queues(names ...string) RunOption {
	return func(o *runOptions) error {
		for _, name := range names {
			if err := checkName(name, "Queues"); err != nil {
				return err
			}
		}
		o.queues = append(o.queues, names...)
		return nil
	}
}

// Processes is the number of handler processes. Without it there is one, whose
// goroutines use all cores.
func Processes(n int) RunOption {
	return func(o *runOptions) error {
		if n < 1 || n > 1024 {
			return fmt.Errorf("Processes: expected a number from 1 to 1024, found %d", n)
		}
		o.processes = n
		return nil
	}
}

// Logs keeps the last 64 KiB of what the processes print in Redis, for
// `holdfast job logs`, if Parallel is 1.
func Logs() RunOption {
	return func(o *runOptions) error {
		o.logs = true
		return nil
	}
}

// Parallel is how many jobs one process runs at a time: 100 without it.
func Parallel(n int) RunOption {
	return func(o *runOptions) error {
		if n < 1 || n > 1024 {
			return fmt.Errorf("Parallel: expected a number from 1 to 1024, found %d", n)
		}
		o.parallel = n
		return nil
	}
}

// Config names a configuration file of the worker. Its handlers do not count.
func Config(path string) RunOption {
	return func(o *runOptions) error {
		o.config = path
		return nil
	}
}

// RedisURL is the address of Redis for the worker, and, as REDIS_URL, for the
// handlers. Without it that of the file, or REDIS_URL.
func RedisURL(url string) RunOption {
	return func(o *runOptions) error {
		o.url = url
		return nil
	}
}

// Namespace is the beginning of all keys of the worker.
func Namespace(name string) RunOption {
	return func(o *runOptions) error {
		o.namespace = name
		return checkName(name, "Namespace")
	}
}

// Run makes this program the worker: it executes the command `holdfast worker`,
// which starts copies of this program as handlers. For systemd, Docker and a
// terminal it stays one process, so call it early in main, before connections are
// opened. The command is found in HOLDFAST_BIN, in the program if it imports
// holdfast-queue/holdfast/command, or in PATH.
//
// In such a copy Run runs jobs. When the worker wants the copy to end, it calls the
// functions of OnStop, and the process exits with status 0; with 78 if the worker
// started it in a way that it does not understand. The contexts of the runs have
// the values of ctx. When ctx ends, the copy asks to be replaced and finishes its
// runs; so a program may use signal.NotifyContext.
//
// If HOLDFAST_SOCKET names the socket of a worker with --listen, Run runs jobs for
// that one: a program that a debugger has started joins it so. An interrupt ends it.
//
// Run returns only if it fails, as http.ListenAndServe does.
func Run(ctx context.Context, mux *Mux, options ...RunOption) error {
	o := runOptions{processes: 1, parallel: 100}
	for _, option := range options {
		if err := option(&o); err != nil {
			return err
		}
	}
	if len(mux.kinds) == 0 {
		return errors.New("expected a handler before Run, found none")
	}
	if !pipe.Started() && !pipe.Joins() {
		return becomeWorker(&o)
	}
	err := mux.serve(ctx, o.parallel)
	if err == nil {
		os.Exit(0) // log.Fatal(Run(...)) would make it 1
	}
	return err
}

// becomeWorker returns only if it fails.
func becomeWorker(o *runOptions) error {
	command := os.Getenv("HOLDFAST_BIN")
	inside := command == "" && embedded.Is()
	if command == "" && !inside {
		found, err := exec.LookPath("holdfast")
		if err != nil {
			return errors.New("expected the command holdfast in PATH, its file in HOLDFAST_BIN, or an import of " +
				"holdfast-queue/holdfast/command, found none")
		}
		command = found
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("expected to know the file of this program: %w", err)
	}
	words := []string{cmp.Or(command, "holdfast"), "worker", "run"}
	if o.config != "" {
		words = append(words, "-c", o.config)
	}
	for _, queue := range o.queues {
		words = append(words, "--queue", queue)
	}
	words = append(words, "--processes", strconv.Itoa(o.processes))
	if o.logs {
		words = append(words, "--logs")
	}
	if o.namespace != "" {
		words = append(words, "--namespace", o.namespace)
	}
	words = append(append(words, "--", self), os.Args[1:]...)
	if o.url != "" || (o.config == "" && os.Getenv("REDIS_URL") == "") {
		os.Setenv("REDIS_URL", cmp.Or(o.url, "redis://localhost:6379/0"))
	}
	if inside {
		return embedded.Exec(words, os.Environ())
	}
	if err := syscall.Exec(command, words, os.Environ()); err != nil {
		return fmt.Errorf("cannot execute %s: %w", command, err)
	}
	return nil
}

// serve runs jobs for a worker.
func (m *Mux) serve(ctx context.Context, parallel int) error {
	joins := pipe.Joins()
	socket, err := pipe.Open()
	if err != nil {
		fmt.Fprintf(os.Stderr, "holdfast: %v\n", err)
		os.Exit(pipe.ExitSetup)
	}
	defer socket.Close()
	// TERM only says "read the socket", which happens in any case. Signals that
	// are caught, and not ignored, are as usual in programs that handlers start.
	dropped := make(chan os.Signal, 1)
	signal.Notify(dropped, syscall.SIGTERM)
	if !joins { // it has no terminal
		signal.Notify(dropped, syscall.SIGINT)
	}
	defer signal.Stop(dropped)
	defer printStacksOnSignal()()
	for _, stop := range m.stops {
		defer stop()
	}
	for _, start := range m.starts {
		if err := start(ctx); err != nil {
			return fmt.Errorf("OnStart: %w", err)
		}
	}
	chains := make(map[string]Handler, len(m.kinds))
	for name, k := range m.kinds {
		chains[name] = m.chain(k)
	}
	return pipe.Serve(ctx, socket, m.ready(parallel), func(ctx context.Context, at *pipe.Run) pipe.Verdict {
		handler, known := chains[at.Type]
		if !known {
			return unknown(at.Type)
		}
		run := runOf(at)
		return m.kinds[at.Type].verdict(ctx, run, call(ctx, run, handler))
	})
}

// A readyType is an entry of `types` in the frame ready.
type readyType struct {
	Type        string `json:"type"`
	Queue       string `json:"queue,omitempty"`
	Timeout     int64  `json:"timeout,omitempty"`
	MaxAttempts int64  `json:"max_attempts,omitempty"`
	Keep        int64  `json:"keep,omitempty"`
	OnDead      string `json:"on_dead,omitempty"`
}

func (m *Mux) ready(parallel int) pipe.Ready {
	types := make([]readyType, len(m.order))
	for i, name := range m.order {
		p := &m.kinds[name].plan
		types[i] = readyType{name, p.queue, p.timeout, p.maxAttempts, p.keep, p.onDead}
	}
	ready := pipe.Ready{Client: "go " + Version, Parallel: parallel, Types: types}
	if len(m.schedules) > 0 {
		ready.Schedules = m.schedules
	}
	return ready
}
