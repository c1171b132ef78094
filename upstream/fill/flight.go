package fill

import (
	"context"
	"sync"

	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
)

// Flights do a thing once for all who want it at the same time. Unlike those of
// a singleflight.Group they go on when whoever asked has left, and who has left
// does not wait.
type flights[K comparable, V any] struct {
	mutex   sync.Mutex
	running map[K]*flight[V]
}

type flight[V any] struct {
	by    *upstream.Clients
	done  chan struct{}
	value V
	err   error
}

// do joins the flight of key, or begins it with run, and waits for its end or
// that of ctx. What run waits for, it waits for in the name of by.
func (g *flights[K, V]) do(ctx context.Context, key K, run func(by *upstream.Clients) (V, error)) (value V, err error) {
	g.mutex.Lock()
	f := g.running[key]
	joins := f != nil
	if !joins {
		f = &flight[V]{by: upstream.NewClients(ctx), done: make(chan struct{})}
		if g.running == nil {
			g.running = make(map[K]*flight[V])
		}
		g.running[key] = f
		go func() {
			f.value, f.err = run(f.by)
			g.mutex.Lock()
			delete(g.running, key)
			g.mutex.Unlock()
			close(f.done)
		}()
	}
	g.mutex.Unlock()
	if joins {
		f.by.Join(ctx)
	}
	select {
	case <-f.done:
		return f.value, f.err
	case <-ctx.Done():
		return value, context.Cause(ctx)
	}
}
