// Package flight does something once for all callers that want it at the same time, and has one caller at
// a time do what must not be done twice at once.
package flight

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
)

// ErrPanicked: a flight has a fault. Nothing is known about what it was for, and the next
// flight does not wait.
var ErrPanicked = errors.New("fetching panicked")

// A Group does something once for all callers that want it at the same time, by key. Its flights are
// not the loads of a cache.Cache, for two reasons. A flight goes on when its callers have left,
// since its result comes into the tree or is remembered. And it waits for its origin in the
// queues of all its clients, also of clients that join it later. The zero value is ready for use.
type Group[K comparable, V any] struct {
	// Panicked is called with the error of a flight that has panicked. May be nil.
	Panicked func(err error, stack []byte)

	mutex sync.Mutex
	under map[K]*Flight[V] // those under way
}

// A Flight may have a value for its callers before it ends.
type Flight[V any] struct {
	Clients *upstream.Clients // who wait for it
	Began   time.Time

	landed chan struct{} // closed when the result is there
	result V
	err    error

	mutex   sync.Mutex
	offered V
	later   chan struct{} // closed when another value is offered
}

// Offer gives callers a value that they may take before the flight ends. A later one replaces
// it.
func (f *Flight[V]) Offer(value V) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.offered = value
	close(f.later)
	f.later = make(chan struct{})
}

// Offered returns the value that the flight has offered last, at first the zero value, and a
// channel that is closed when there is a later one.
func (f *Flight[V]) Offered() (value V, later <-chan struct{}) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.offered, f.later
}

// Landed is closed when the flight has ended.
func (f *Flight[V]) Landed() <-chan struct{} { return f.landed }

// Result returns the result of a flight that has ended.
func (f *Flight[V]) Result() (V, error) { return f.result, f.err }

// Wait waits for the result of the flight, or for the end of ctx.
func (f *Flight[V]) Wait(ctx context.Context) (value V, err error) {
	select {
	case <-f.landed:
		return f.Result()
	case <-ctx.Done():
		return value, context.Cause(ctx)
	}
}

// Join begins the flight of key with run, or joins the one under way.
func (g *Group[K, V]) Join(ctx context.Context, key K, run func(*Flight[V]) (V, error)) *Flight[V] {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if joined := g.under[key]; joined != nil {
		joined.Clients.Join(ctx)
		return joined
	}
	if g.under == nil {
		g.under = make(map[K]*Flight[V])
	}
	f := &Flight[V]{Clients: upstream.NewClients(ctx), Began: time.Now(), landed: make(chan struct{}), later: make(chan struct{})}
	g.under[key] = f
	go func() {
		defer close(f.landed)
		defer func() { // before that: the next caller begins a flight with clients of its own
			g.mutex.Lock()
			defer g.mutex.Unlock()
			delete(g.under, key)
		}()
		f.err = ErrPanicked // also if run ends its goroutine instead of returning
		f.result, f.err = g.recovered(f, run)
	}()
	return f
}

// recovered returns a panic as an error. In the goroutine of a flight it would end the process,
// and a flight reads files of unknown authors.
func (g *Group[K, V]) recovered(f *Flight[V], run func(*Flight[V]) (V, error)) (value V, err error) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if err = fmt.Errorf("%w: %v", ErrPanicked, p); g.Panicked != nil {
			g.Panicked(err, debug.Stack())
		}
	}()
	return run(f)
}

// Start is Join for a flight that offers nothing before it ends.
func (g *Group[K, V]) Start(ctx context.Context, key K, run func(clients *upstream.Clients) (V, error)) *Flight[V] {
	return g.Join(ctx, key, func(f *Flight[V]) (V, error) { return run(f.Clients) })
}

// Do is Start, and waits for the end of the flight or of ctx.
func (g *Group[K, V]) Do(ctx context.Context, key K, run func(clients *upstream.Clients) (V, error)) (V, error) {
	return g.Start(ctx, key, run).Wait(ctx)
}
