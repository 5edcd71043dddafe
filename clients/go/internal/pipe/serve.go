package pipe

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
)

// Why a run should end. They are the causes of its context.
var (
	ErrTimeout   = errors.New("the time-out of the run is over")
	ErrCancelled = errors.New("the job was cancelled")
	ErrStopping  = errors.New("the worker stops")
	ErrLost      = errors.New("the lock of the job was lost")
)

// ErrGone is returned by Serve when the worker has ended.
var ErrGone = errors.New("the worker has ended")

// errReady is returned when the first frame would be longer than a worker reads.
var errReady = errors.New("expected at most 1 MiB of types and schedules")

const (
	maxLine    = 64 << 10 // the worker's are at most 8 KiB long
	maxReady   = 1 << 20
	maxPayload = 63 << 20
	maxBody    = 64 << 20 // of a frame that this version does not know
)

// Ready is the first frame: what this program can do.
type Ready struct {
	Kind      string `json:"t"`
	Version   int    `json:"v"`
	Client    string `json:"client"`
	Parallel  int    `json:"parallel"`
	Types     any    `json:"types"`
	Schedules any    `json:"schedules,omitempty"`
}

// A Handler runs a job. The context ends when the run should end.
type Handler func(ctx context.Context, run *Run) Verdict

// A Server is one program of a pool.
type Server struct {
	in      *bufio.Reader
	out     *writer
	handler Handler
	known   names
	idle    chan *Run // to goroutines that have run jobs before

	mutex    sync.Mutex
	runs     map[int64]*Run
	stopping bool
	left     bool
	finished chan struct{} // closed with left: it stops, and has no run left
}

// Serve tells the worker that the program is ready, and runs its jobs until the
// worker says stop. If the worker ends, it returns ErrGone at once, and the
// context of each run has ended. When base ends, the worker is asked to replace
// this program; its runs go on, and have only the values of base.
func Serve(base context.Context, socket io.ReadWriter, ready Ready, handler Handler) error {
	ready.Kind, ready.Version = "ready", version
	first, err := json.Marshal(ready)
	if err != nil {
		return err
	}
	if len(first)+1 > maxReady {
		return errReady
	}
	s := &Server{
		in:       bufio.NewReaderSize(socket, maxLine),
		out:      newWriter(socket),
		handler:  handler,
		known:    names{},
		idle:     make(chan *Run),
		runs:     map[int64]*Run{},
		finished: make(chan struct{}),
	}
	if err := s.send(func(to []byte) []byte { return append(append(to, first...), '\n') }); err != nil {
		return fmt.Errorf("%w: %w", ErrGone, err)
	}
	values := context.WithoutCancel(base)
	failed := make(chan error, 1)
	go func() { failed <- s.read(values) }()
	leave := base.Done()
	for {
		select {
		case <-leave:
			leave = nil
			s.send(func(to []byte) []byte { return append(to, `{"t":"leave"}`+"\n"...) })
		case <-s.finished:
			return s.out.drain()
		case err := <-failed:
			s.abandon(err)
			return err
		}
	}
}

func (s *Server) send(frame func(buffer []byte) []byte) error { return s.out.send(frame) }

// read takes frames until the connection ends.
func (s *Server) read(base context.Context) error {
	var f frame
	for {
		if s.in.Buffered() == 0 {
			runtime.Gosched() // more frames come meanwhile
		}
		line, err := s.in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			return fmt.Errorf("reading a frame of the worker: expected a line of at most %d bytes", maxLine)
		}
		if err != nil {
			return ErrGone
		}
		if err := f.parse(line); err != nil {
			return fmt.Errorf("reading a frame of the worker: %w", err)
		}
		if err := s.take(base, &f); err != nil {
			return err
		}
	}
}

// take handles one frame: its line was read, and its bodies follow.
func (s *Server) take(base context.Context, f *frame) error {
	var r reading
	kind := r.text("t", f.kind, s.known)
	n, c := r.number("n", f.n), r.number("c", f.c)
	switch kind {
	case "job":
		run := r.number("run", f.run)
		job, err := f.job(s.known)
		if r.err == nil {
			r.err = err
		}
		if r.err == nil && (n > maxPayload || c > MaxCheckpoint) {
			r.fail("n", fmt.Errorf("expected at most %d bytes", maxPayload))
		}
		if r.err != nil {
			break
		}
		return s.takeJob(base, run, job, n, c)
	case "cancel":
		run, why := r.number("run", f.run), r.text("why", f.why, s.known)
		if r.err == nil {
			s.cancel(run, cause(why))
		}
	case "stop":
		s.stop()
	case "ping":
		// Reading goes on, whatever a write waits for.
		go s.send(func(to []byte) []byte { return append(to, `{"t":"pong"}`+"\n"...) })
	}
	if r.err != nil {
		return fmt.Errorf("reading a frame of the worker, %q: %w", kind, r.err)
	}
	if n > maxBody || c > maxBody {
		return fmt.Errorf("reading a frame of the worker, %q: a body of %d bytes", kind, n+c)
	}
	if n+c > 0 {
		if _, err := io.CopyN(io.Discard, s.in, n+c); err != nil {
			return ErrGone
		}
	}
	return nil
}

func cause(why string) error {
	switch why {
	case "timeout":
		return ErrTimeout
	case "stop":
		return ErrStopping
	case "lost":
		return ErrLost
	}
	return ErrCancelled
}

// takeJob reads the bodies of a job and starts its run.
func (s *Server) takeJob(base context.Context, number int64, job *Job, n, c int64) error {
	body := make([]byte, n+c)
	if _, err := io.ReadFull(s.in, body); err != nil {
		return ErrGone
	}
	job.Payload = body[:n:n]
	if c > 0 {
		job.Checkpoint = body[n:]
	}
	run := &Run{Job: job, number: number, server: s}
	ctx, cancel := context.WithCancelCause(base)
	run.cancel = cancel
	s.mutex.Lock()
	s.runs[number] = run
	s.mutex.Unlock()
	run.ctx = newRunContext(ctx, run)
	select {
	case s.idle <- run:
	default:
		go s.work(run)
	}
	return nil
}

// work runs one job after another: the stack of a goroutine that has run one is
// large enough for the next. There are as many as jobs ran at a time.
func (s *Server) work(run *Run) {
	for ; ; run = <-s.idle {
		run.start()
	}
}

func (s *Server) cancel(number int64, why error) {
	s.mutex.Lock()
	run := s.runs[number]
	s.mutex.Unlock()
	if run != nil {
		run.cancel(why)
	}
}

func (s *Server) stop() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if !s.stopping {
		s.stopping = true
		s.leaveIfIdle()
	}
}

// leaveIfIdle is called with the mutex held.
func (s *Server) leaveIfIdle() {
	if s.stopping && len(s.runs) == 0 && !s.left {
		s.left = true
		close(s.finished)
	}
}

// Stopping reports whether the worker has said that no more jobs will come.
func (s *Server) Stopping() bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.stopping
}

// abandon ends all runs: their verdicts cannot be delivered any more.
func (s *Server) abandon(err error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, run := range s.runs {
		run.cancel(err)
	}
}

// finish sends the verdict of a run.
func (s *Server) finish(run *Run, verdict *Verdict) {
	run.end()
	s.send(func(to []byte) []byte { return verdict.append(to, run.number) })
	s.mutex.Lock()
	defer s.mutex.Unlock()
	delete(s.runs, run.number)
	s.leaveIfIdle()
}

// start runs the job, and sends its verdict even if the handler ends its goroutine.
func (r *Run) start() {
	verdict := Verdict{Kind: Retry, Error: "the handler ended its goroutine (runtime.Goexit)"}
	defer func() {
		r.server.finish(r, &verdict)
		r.cancel(nil)
	}()
	verdict = r.server.handler(r.ctx, r)
}
