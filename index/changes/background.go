package changes

import (
	"context"
	"sync"
	"time"
)

// A Background is what a process does for other instances while scans go on, until End.
type Background struct {
	mutex sync.Mutex // guards ended and tasks
	ended bool
	tasks *sync.WaitGroup // begun since the last Wait, and that Wait
	ctx   context.Context // ends with End
	stop  context.CancelFunc
}

// NewBackground returns a Background that does nothing yet.
func NewBackground() *Background {
	b := &Background{tasks: new(sync.WaitGroup)}
	b.ctx, b.stop = context.WithCancel(context.Background())
	return b
}

// Go begins to do something and returns at once. After End it has no effect.
func (b *Background) Go(do func(context.Context)) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if !b.ended {
		b.tasks.Go(func() { do(b.ctx) })
	}
}

// patience is how long Wait and End wait for a slow storage.
const patience = 2 * time.Second

// Wait waits until everything that was begun has been done, but only for a moment.
func (b *Background) Wait() {
	b.mutex.Lock()
	begun := b.tasks
	b.tasks = new(sync.WaitGroup) // it is not added to what is waited for
	b.tasks.Go(begun.Wait)        // End waits for that, too
	b.mutex.Unlock()
	waitFor(begun)
}

// End waits until everything has been done, but only for a moment, and then ends the rest.
func (b *Background) End() {
	defer b.stop()
	b.mutex.Lock()
	b.ended = true
	begun := b.tasks
	b.mutex.Unlock()
	waitFor(begun)
}

// waitFor waits for tasks, but only for a moment.
func waitFor(tasks *sync.WaitGroup) {
	finished := make(chan struct{})
	go func() {
		tasks.Wait()
		close(finished)
	}()
	select {
	case <-finished:
	case <-time.After(patience):
	}
}
