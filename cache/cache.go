// Package cache keeps in memory what takes time to make or to get: documents, pages,
// answers of origins, digests.
//
// Clients decide which keys there are, so every [Cache] is bounded, by the number of its
// values or by their bytes, and evicts the values that were used least recently. Values
// may have a life. Callers that want the same value at the same time share one load. A
// cache has no goroutine of its own: it ends with its last reference.
//
// Errors are not kept. A package that must not repeat failures keeps errors in a second
// Cache, each error with a life. In a Cache of their own, errors of names that do not exist
// cannot evict values.
package cache

import (
	"context"
	"math"
	"time"
)

// UntilEvicted is the life of a value that is kept while there is room for it.
const UntilEvicted time.Duration = math.MaxInt64

// A Cache keeps the values that were used last, by key. It is safe for concurrent use.
// The zero value is ready for use, and keeps up to 4,096 values. The exported fields must
// not change once the Cache is used.
//
// A key is kept with its value. If its strings are parts of a request, they keep the whole
// request line in memory: clone them.
type Cache[K comparable, V any] struct {
	// MaxEntries bounds the number of values. Zero: MaxBytes does, or else it is 4,096.
	MaxEntries int

	// MaxBytes bounds the size of all values. Zero: only their number is bounded. A value
	// that is larger on its own is not kept.
	MaxBytes int

	// Size returns how many bytes a value takes. It is called for each value that is put or
	// loaded, and may be nil without MaxBytes.
	Size func(V) int

	// The compiler makes all methods of a generic type again, for each Cache, in each package
	// that knows of it: nearly all of a Cache is in store, which is not generic.
	store store
}

// Get returns the value of a key, if it is kept and its life has not ended.
func (c *Cache[K, V]) Get(key K) (value V, ok bool) {
	kept, ok := c.store.Get(key)
	return as[V](kept), ok
}

// Put keeps a value in place of the one before. With a life that is not positive, it
// only removes the one before.
func (c *Cache[K, V]) Put(key K, value V, life time.Duration) {
	c.store.Put(c.bounds(), key, c.item(value, life))
}

// PutIfAbsent keeps a value unless the key has one, and returns the value that is kept then:
// callers that have made the same value at the same time all use the first one.
func (c *Cache[K, V]) PutIfAbsent(key K, value V, life time.Duration) V {
	return as[V](c.store.PutIfAbsent(c.bounds(), key, c.item(value, life)))
}

// Remove removes the value of a key.
func (c *Cache[K, V]) Remove(key K) { c.store.Remove(key) }

// Load returns the value of a key, and loads it if it is not kept. The function that loads
// also returns for how long the value is kept; zero is not at all.
//
// Callers with the same key share one load, with its value or error. A caller whose context
// ends waits no longer. The load goes on while another caller waits, and is cancelled when
// the last one has left: the next caller begins another load. The context of the load has
// the values of the first caller's context. A panic of the function is returned as an error.
func (c *Cache[K, V]) Load(ctx context.Context, key K, read func(context.Context) (V, time.Duration, error)) (V, error) {
	return c.Renew(ctx, key, nil, func(ctx context.Context, _ V) (V, time.Duration, error) { return read(ctx) })
}

// Renew is Load for values that may become out of date: a value that is kept is returned
// only if fresh accepts it. Otherwise it is passed to the function that loads, which may
// reuse parts of it; the zero value if there is none. A caller that has waited for the load of
// another begins its own if fresh does not accept the value.
func (c *Cache[K, V]) Renew(ctx context.Context, key K, fresh func(V) bool, read func(ctx context.Context, known V) (V, time.Duration, error)) (V, error) {
	accepts := func(kept any) bool { return fresh == nil || fresh(as[V](kept)) }
	value, err := c.store.Renew(ctx, c.bounds(), key, accepts, func(ctx context.Context, known any) (item, error) {
		value, life, err := read(ctx, as[V](known))
		if err != nil {
			return item{value: value}, err
		}
		return c.item(value, life), nil
	})
	return as[V](value), err
}

func (c *Cache[K, V]) bounds() bounds { return bounds{c.MaxEntries, c.MaxBytes} }

func (c *Cache[K, V]) item(value V, life time.Duration) item {
	i := item{value: value, life: life}
	if c.MaxBytes > 0 {
		i.bytes = c.Size(value) + overhead
	}
	return i
}

// as returns a value that a store has kept; the zero value for nil.
func as[V any](kept any) V {
	value, _ := kept.(V)
	return value
}
