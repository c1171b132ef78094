package queue

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// A Task says what a queue has to know of an archive. Archives embed it.
type Task struct {
	Address address.Address
	Version string
	Rank    int   // number of newer versions
	Bytes   int64 // to read

	// Background means that nothing waits for the archive: it is read after all others, and
	// does not count as unread until then.
	Background bool

	state *state // in a queue; nil until it is in one
}

func (t *Task) task() *Task { return t }

// Pause returns a function that pauses the reading of the archive while others are urgent. An
// archive that is read outside of a queue never pauses.
func (t *Task) Pause() func() { return t.state.wait }

// IsQueued reports whether an archive has been put into a queue.
func (t *Task) IsQueued() bool { return t.state != nil }

// HasBegun reports whether the reading of an archive has begun.
func (t *Task) HasBegun() bool {
	if t.state == nil {
		return false
	}
	t.state.gate.mutex.Lock()
	defer t.state.gate.mutex.Unlock()
	return t.state.begun
}

// IsFirst reports whether the first scan has found an archive that is in a queue.
func (t *Task) IsFirst() bool { return t.state.first }

// An Archive is a pointer to a type that embeds a Task.
type Archive interface {
	comparable
	task() *Task
}

// A gate pauses the reading of archives while others are urgent.
type gate struct {
	ctx        context.Context
	mutex      sync.Mutex
	resumed    *sync.Cond
	urgentLeft atomic.Int64 // urgent archives that are not read yet: while there are any, others pause
}

// A state is the state of an archive in a queue, whose mutex guards it.
type state struct {
	gate                    *gate
	begun, urgent, finished bool
	first                   bool       // it was found by the first scan
	dropped                 bool       // its result is of no use any more
	forgotten               bool       // it has been dropped or committed
	requests                []*request // requests that wait for the archive
}

// begin begins the reading of an archive. It reports whether that is still to be done.
func (s *state) begin() bool {
	if s.begun || s.dropped {
		return false
	}
	s.begun = true
	return true
}

// wait pauses the reading of an archive while others are urgent. An archive that is read
// outside of a queue has a nil state.
func (s *state) wait() {
	if s == nil || s.gate.urgentLeft.Load() == 0 {
		return
	}
	q := s.gate
	q.mutex.Lock()
	defer q.mutex.Unlock()
	for q.urgentLeft.Load() > 0 && !s.urgent && q.ctx.Err() == nil {
		q.resumed.Wait()
	}
}
