package pull

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
)

// Flights do something once for all callers that want it at the same time. They are not
// the loads of a cache.Cache, for two reasons. A flight goes on when its callers have left,
// since its result comes into the tree or is remembered. And it waits for its origin in the
// queues of all its clients, also of clients that join it later. The clients are added to
// singleflight here. The zero value is ready for use.
type flights[V any] struct {
	group singleflight.Group

	// panicked is called with the error of a flight that has panicked. May be nil.
	panicked func(err error, stack []byte)

	mutex sync.Mutex
	under map[string]*flight[V] // those under way
}

// A flight may have a value for its callers before it ends.
type flight[V any] struct {
	clients *upstream.Clients
	began   time.Time

	mutex sync.Mutex
	value V
	later chan struct{} // closed when there is another value
}

// offer gives callers a value that they may take before the flight ends. A later one replaces
// it.
func (f *flight[V]) offer(value V) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.value = value
	close(f.later)
	f.later = make(chan struct{})
}

// offered returns the value that the flight has offered last, at first the zero value, and a
// channel that is closed when there is a later one.
func (f *flight[V]) offered() (value V, later <-chan struct{}) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.value, f.later
}

// join begins the flight of key with run, or joins the one under way. The channel gets its
// result.
func (f *flights[V]) join(ctx context.Context, key string, run func(*flight[V]) (V, error)) (*flight[V], <-chan singleflight.Result) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	joined := f.under[key]
	if joined == nil {
		if f.under == nil {
			f.under = make(map[string]*flight[V])
		}
		joined = &flight[V]{clients: upstream.NewClients(ctx), began: time.Now(), later: make(chan struct{})}
		f.under[key] = joined
	} else {
		joined.clients.Join(ctx)
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
func (f *flights[V]) recovered(under *flight[V], run func(*flight[V]) (V, error)) (value V, err error) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if err = fmt.Errorf("%w: %v", ErrPanicked, p); f.panicked != nil {
			f.panicked(err, debug.Stack())
		}
	}()
	return run(under)
}

// start is join for a flight that offers nothing before it ends.
func (f *flights[V]) start(ctx context.Context, key string, run func(clients *upstream.Clients) (V, error)) <-chan singleflight.Result {
	_, result := f.join(ctx, key, func(under *flight[V]) (V, error) { return run(under.clients) })
	return result
}

// do is start, and waits for the end of the flight or of ctx.
func (f *flights[V]) do(ctx context.Context, key string, run func(clients *upstream.Clients) (V, error)) (value V, err error) {
	return landing[V](ctx, f.start(ctx, key, run))
}

// landing waits for the result of a flight, or for the end of ctx.
func landing[V any](ctx context.Context, results <-chan singleflight.Result) (value V, err error) {
	select {
	case result := <-results:
		value, _ = result.Val.(V)
		return value, result.Err
	case <-ctx.Done():
		return value, context.Cause(ctx)
	}
}

// A keyedMutex is a mutex for each key. It is held while a lock that instances share is
// waited for, so that one mutex for all keys would have all wait. The zero value is ready for use.
type keyedMutex struct {
	mutex sync.Mutex
	users map[string]*keyUsers
}

type keyUsers struct {
	sync.Mutex
	count int
}

func (k *keyedMutex) lock(key string) (unlock func()) {
	k.mutex.Lock()
	u := k.users[key]
	if u == nil {
		if k.users == nil {
			k.users = make(map[string]*keyUsers)
		}
		u = new(keyUsers)
		k.users[key] = u
	}
	u.count++
	k.mutex.Unlock()

	u.Lock()
	return func() {
		u.Unlock()
		k.mutex.Lock()
		defer k.mutex.Unlock()
		if u.count--; u.count == 0 {
			delete(k.users, key)
		}
	}
}
