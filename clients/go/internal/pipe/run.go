package pipe

import (
	"bytes"
	"context"
	"strconv"
	"sync/atomic"
	"time"
)

// A Run is one job under way.
type Run struct {
	*Job
	number int64
	server *Server
	ctx    context.Context
	cancel context.CancelCauseFunc
	ended  atomic.Bool
	Local  any // of the handler's package
}

// end keeps frames that come after the verdict, from goroutines that the handler
// left behind, from the socket.
func (r *Run) end() { r.ended.Store(true) }

// Stopping reports whether the worker has said that no more jobs will come.
func (r *Run) Stopping() bool { return r.server.Stopping() }

// Progress reports how far the run has come.
func (r *Run) Progress(percent int, note string) {
	r.send(func(to []byte) []byte {
		to = head(to, "progress", r.number)
		to = append(to, `,"percent":`...)
		to = strconv.AppendInt(to, int64(max(0, percent)), 10)
		if note != "" {
			to = append(to, `,"note":`...)
			to = quote(to, Cut(note, MaxNote))
		}
		return tail(to, nil)
	})
}

// SetCheckpoint replaces the checkpoint of the job, at most MaxCheckpoint bytes.
func (r *Run) SetCheckpoint(data []byte) {
	r.send(func(to []byte) []byte {
		if data == nil {
			data = []byte{}
		}
		return tail(head(to, "checkpoint", r.number), data)
	})
}

// Log adds lines to the log of the run.
func (r *Run) Log(text []byte) {
	for len(text) > 0 {
		part := text
		if len(part) > maxLog {
			part = part[:maxLog]
			if end := bytes.LastIndexByte(part, '\n'); end >= 0 {
				part = part[:end+1]
			}
		}
		text = text[len(part):]
		r.send(func(to []byte) []byte { return tail(head(to, "log", r.number), part) })
	}
}

func (r *Run) send(frame func([]byte) []byte) {
	if !r.ended.Load() {
		r.server.send(frame)
	}
}

// A runContext ends when the worker says so. Its deadline is when that will be:
// it does not end by itself, because the worker decides.
type runContext struct {
	context.Context
	run      *Run
	deadline time.Time
}

func newRunContext(ctx context.Context, run *Run) context.Context {
	c := &runContext{Context: ctx, run: run}
	if run.Timeout > 0 {
		c.deadline = time.Now().Add(run.Timeout)
	}
	return c
}

func (c *runContext) Deadline() (time.Time, bool) { return c.deadline, !c.deadline.IsZero() }

type runKey struct{}

func (c *runContext) Value(key any) any {
	if key == (runKey{}) {
		return c.run
	}
	return c.Context.Value(key)
}

// Current returns the run of a context, or nil.
func Current(ctx context.Context) *Run {
	run, _ := ctx.Value(runKey{}).(*Run)
	return run
}
