package fill

import (
	"context"
	"sync"

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

	mutex   sync.Mutex
	clients map[string]*upstream.Clients // of the flights under way
}

// start begins the flight of key with run, or joins the one under way.
func (f *flights[V]) start(ctx context.Context, key string, run func(clients *upstream.Clients) (V, error)) <-chan singleflight.Result {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	clients := f.clients[key]
	if clients == nil {
		if f.clients == nil {
			f.clients = make(map[string]*upstream.Clients)
		}
		clients = upstream.NewClients(ctx)
		f.clients[key] = clients
	} else {
		clients.Join(ctx)
	}
	return f.group.DoChan(key, func() (any, error) {
		defer func() { // at once: the next caller begins a flight with clients of its own
			f.mutex.Lock()
			defer f.mutex.Unlock()
			delete(f.clients, key)
			f.group.Forget(key)
		}()
		return run(clients)
	})
}

// do is start, and waits for the end of the flight or of ctx.
func (f *flights[V]) do(ctx context.Context, key string, run func(clients *upstream.Clients) (V, error)) (value V, err error) {
	select {
	case result := <-f.start(ctx, key, run):
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
