package upstream

import (
	"context"
	"errors"
	"sync"
)

// Flights do a thing once for all who want it at the same time. Unlike those of
// a singleflight.Group they go on when whoever asked has left, and who has left
// does not wait.
type flights[K comparable, V any] struct {
	most int // at the same time; zero: any number

	mutex   sync.Mutex
	running map[K]*flight[V]
}

type flight[V any] struct {
	done  chan struct{}
	value V
	err   error
}

var errTooMany = errors.New("too many are under way")

// do joins the flight of key, or begins it with run, and waits for its end or
// that of ctx. It is errTooMany when it would begin one too many.
func (g *flights[K, V]) do(ctx context.Context, key K, run func() (V, error)) (value V, err error) {
	g.mutex.Lock()
	f := g.running[key]
	switch {
	case f != nil:
	case g.most > 0 && len(g.running) >= g.most:
		g.mutex.Unlock()
		return value, errTooMany
	default:
		f = &flight[V]{done: make(chan struct{})}
		if g.running == nil {
			g.running = make(map[K]*flight[V])
		}
		g.running[key] = f
		go func() {
			f.value, f.err = run()
			g.mutex.Lock()
			delete(g.running, key)
			g.mutex.Unlock()
			close(f.done)
		}()
	}
	g.mutex.Unlock()
	select {
	case <-f.done:
		return f.value, f.err
	case <-ctx.Done():
		return value, context.Cause(ctx)
	}
}
