package changes

import (
	"context"
	"sync"
	"time"
)

// A Background is what a process does for other instances while scans go on, until End.
type Background struct {
	mutex sync.Mutex // guards ended
	ended bool
	tasks sync.WaitGroup
	ctx   context.Context // ends with End
	stop  context.CancelFunc
}

// NewBackground returns a Background that does nothing yet.
func NewBackground() *Background {
	b := new(Background)
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

// endPatience is how long End waits for a slow storage.
const endPatience = 2 * time.Second

// End waits until everything has been done, but only for a moment, and then ends the rest.
func (b *Background) End() {
	defer b.stop()
	b.mutex.Lock()
	b.ended = true
	b.mutex.Unlock()
	finished := make(chan struct{})
	go func() {
		b.tasks.Wait()
		close(finished)
	}()
	select {
	case <-finished:
	case <-time.After(endPatience):
	}
}
