package pipe

import (
	"io"
	"runtime"
	"sync"
)

// writeAhead bounds what waits to be written while a write is under way.
const writeAhead = 1 << 20

// A writer gathers the frames that are ready at the same time into one write.
type writer struct {
	to      io.Writer
	mutex   sync.Mutex
	room    sync.Cond
	waiting []byte
	spare   []byte
	writing bool
	err     error
}

func newWriter(to io.Writer) *writer {
	w := &writer{to: to}
	w.room.L = &w.mutex
	return w
}

// send adds a frame. The first caller writes, for itself and for all that come
// until it is done. It first lets the goroutines run that are ready: handlers
// that were started by one read often end together.
func (w *writer) send(frame func(buffer []byte) []byte) error {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for len(w.waiting) > writeAhead && w.err == nil {
		w.room.Wait()
	}
	w.waiting = frame(w.waiting)
	if w.writing {
		return w.err
	}
	w.writing = true
	w.mutex.Unlock()
	runtime.Gosched()
	w.mutex.Lock()
	for len(w.waiting) > 0 && w.err == nil {
		batch := w.waiting
		w.waiting = w.spare[:0]
		w.mutex.Unlock()
		_, err := w.to.Write(batch)
		w.mutex.Lock()
		w.spare = batch
		w.err = err
		w.room.Broadcast()
	}
	w.writing = false
	w.room.Broadcast()
	return w.err
}

// drain waits until all that was sent is written.
func (w *writer) drain() error {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for w.writing {
		w.room.Wait()
	}
	return w.err
}
