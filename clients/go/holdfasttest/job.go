package holdfasttest

import (
	"sync"

	"holdfast-queue/holdfast"
	"holdfast-queue/holdfast/internal/hook"
)

// NewJob returns a job for a call of a handler, and what the handler tells about it.
// The fields of its JobRun may be set.
func NewJob[T holdfast.Args](args T) (*holdfast.Job[T], *Told) {
	job := &holdfast.Job[T]{Args: args, JobRun: &holdfast.JobRun{ID: "fake", Type: args.Kind(), Queue: "default",
		Attempt: 1, MaxAttempts: hook.MaxAttempts, Headers: map[string]string{}}}
	told := &Told{}
	hook.SetChannel(job.JobRun, channel{told})
	return job, told
}

// Told is what a run has told about itself.
type Told struct {
	mutex      sync.Mutex
	percent    int
	note       string
	checkpoint []byte
	log        []byte
}

// LastProgress returns what the last call of Progress has told.
func (t *Told) LastProgress() (percent int, note string) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.percent, t.note
}

// LastCheckpoint returns the checkpoint that was set last.
func (t *Told) LastCheckpoint() []byte {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.checkpoint
}

// Logged returns all that Log was given.
func (t *Told) Logged() string {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return string(t.log)
}

// A channel tells what a run says.
type channel struct{ told *Told }

func (c channel) Progress(percent int, note string) {
	c.told.mutex.Lock()
	defer c.told.mutex.Unlock()
	c.told.percent, c.told.note = percent, note
}

func (c channel) SetCheckpoint(data []byte) {
	c.told.mutex.Lock()
	defer c.told.mutex.Unlock()
	c.told.checkpoint = append([]byte{}, data...)
}

func (c channel) Log(text []byte) {
	c.told.mutex.Lock()
	defer c.told.mutex.Unlock()
	c.told.log = append(c.told.log, text...)
}

func (channel) Stopping() bool { return false }
