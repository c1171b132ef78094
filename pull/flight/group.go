// Package flight does something once for all callers that want it at the same time, tells them how far it
// is, and has one caller at a time do what must not be done twice at once.
package flight

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
)

// ErrPanicked: a flight has a fault. Nothing is known about what it was for, and the next
// flight does not wait.
var ErrPanicked = errors.New("fetching panicked")

// A Group does something once for all callers that want it at the same time. Its flights are not
// the loads of a cache.Cache, for two reasons. A flight goes on when its callers have left,
// since its result comes into the tree or is remembered. And it waits for its origin in the
// queues of all its clients, also of clients that join it later. The clients are added to
// singleflight here. The zero value is ready for use.
type Group[V any] struct {
	group singleflight.Group

	// Panicked is called with the error of a flight that has panicked. May be nil.
	Panicked func(err error, stack []byte)

	mutex sync.Mutex
	under map[string]*Flight[V] // those under way
}

// A Flight may have a value for its callers before it ends.
type Flight[V any] struct {
	Clients *upstream.Clients // who wait for it
	Began   time.Time

	mutex sync.Mutex
	value V
	later chan struct{} // closed when there is another value
}

// Offer gives callers a value that they may take before the flight ends. A later one replaces
// it.
func (f *Flight[V]) Offer(value V) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.value = value
	close(f.later)
	f.later = make(chan struct{})
}

// Offered returns the value that the flight has offered last, at first the zero value, and a
// channel that is closed when there is a later one.
func (f *Flight[V]) Offered() (value V, later <-chan struct{}) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.value, f.later
}

// Join begins the flight of key with run, or joins the one under way. The channel gets its
// result.
func (f *Group[V]) Join(ctx context.Context, key string, run func(*Flight[V]) (V, error)) (*Flight[V], <-chan singleflight.Result) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	joined := f.under[key]
	if joined == nil {
		if f.under == nil {
			f.under = make(map[string]*Flight[V])
		}
		joined = &Flight[V]{Clients: upstream.NewClients(ctx), Began: time.Now(), later: make(chan struct{})}
		f.under[key] = joined
	} else {
		joined.Clients.Join(ctx)
	}
	return joined, f.group.DoChan(key, func() (any, error) {
		defer func() { // at once: the next caller begins a flight with clients of its own
			f.mutex.Lock()
			defer f.mutex.Unlock()
			delete(f.under, key)
			f.group.Forget(key)
		}()
		return f.recovered(joined, run)
	})
}

// recovered returns a panic as an error. In the goroutine of a flight it would end the process,
// and a flight reads files of unknown authors.
func (f *Group[V]) recovered(under *Flight[V], run func(*Flight[V]) (V, error)) (value V, err error) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if err = fmt.Errorf("%w: %v", ErrPanicked, p); f.Panicked != nil {
			f.Panicked(err, debug.Stack())
		}
	}()
	return run(under)
}

// Start is Join for a flight that offers nothing before it ends.
func (f *Group[V]) Start(ctx context.Context, key string, run func(clients *upstream.Clients) (V, error)) <-chan singleflight.Result {
	_, result := f.Join(ctx, key, func(under *Flight[V]) (V, error) { return run(under.Clients) })
	return result
}

// Do is Start, and waits for the end of the flight or of ctx.
func (f *Group[V]) Do(ctx context.Context, key string, run func(clients *upstream.Clients) (V, error)) (value V, err error) {
	return Landing[V](ctx, f.Start(ctx, key, run))
}

// Landing waits for the result of a flight, or for the end of ctx.
func Landing[V any](ctx context.Context, results <-chan singleflight.Result) (value V, err error) {
	select {
	case result := <-results:
		value, _ = result.Val.(V)
		return value, result.Err
	case <-ctx.Done():
		return value, context.Cause(ctx)
	}
}
