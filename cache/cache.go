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
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"golang.org/x/sync/singleflight"
)

// UntilEvicted is the life of a value that is kept while there is room for it.
const UntilEvicted time.Duration = math.MaxInt64

const (
	defaultEntries = 4096 // of a Cache without any other bound
	overhead       = 512  // about how many bytes a value takes beside its own
)

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

	// Size returns how many bytes a value takes. It is called when the value is put, and
	// may be nil without MaxBytes.
	Size func(V) int

	// Now is the clock. Nil: time.Now.
	Now func() time.Time

	mutex sync.Mutex // guards what follows
	kept  *simplelru.LRU[K, entry[V]]
	bytes int // of all that is kept
	loads map[K]*load
}

type entry[V any] struct {
	value   V
	bytes   int
	expires time.Time // zero: never
}

// Get returns the value of a key, if it is kept and its life has not ended.
func (c *Cache[K, V]) Get(key K) (value V, ok bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.get(key)
}

// Put keeps a value in place of the one before. With a life that is not positive, it
// only removes the one before.
func (c *Cache[K, V]) Put(key K, value V, life time.Duration) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.put(key, value, life)
}

// PutIfAbsent keeps a value unless the key has one, and returns the value that is kept then:
// callers that have made the same value at the same time all use the first one.
func (c *Cache[K, V]) PutIfAbsent(key K, value V, life time.Duration) V {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if known, ok := c.get(key); ok {
		return known
	}
	c.put(key, value, life)
	return value
}

// Remove removes the value of a key.
func (c *Cache[K, V]) Remove(key K) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.kept != nil {
		c.kept.Remove(key)
	}
}

func (c *Cache[K, V]) get(key K) (value V, ok bool) {
	if c.kept == nil {
		return value, false
	}
	e, ok := c.kept.Get(key)
	if ok && !e.expires.IsZero() && !c.now().Before(e.expires) {
		c.kept.Remove(key)
		return value, false
	}
	return e.value, ok
}

func (c *Cache[K, V]) put(key K, value V, life time.Duration) {
	if c.kept == nil {
		c.kept, _ = simplelru.NewLRU(c.maxEntries(), func(_ K, e entry[V]) { c.bytes -= e.bytes }) // it fails for a size below one
	}
	c.kept.Remove(key) // Add would not tell the size of the value that it replaces
	e := entry[V]{value: value}
	if c.MaxBytes > 0 {
		e.bytes = c.Size(value) + overhead
	}
	if life <= 0 || e.bytes > c.MaxBytes {
		return
	}
	if life != UntilEvicted {
		e.expires = c.now().Add(life)
	}
	c.bytes += e.bytes
	c.kept.Add(key, e)
	for c.bytes > c.MaxBytes {
		c.kept.RemoveOldest()
	}
}

func (c *Cache[K, V]) maxEntries() int {
	switch {
	case c.MaxEntries > 0:
		return c.MaxEntries
	case c.MaxBytes > 0:
		return math.MaxInt
	}
	return defaultEntries
}

func (c *Cache[K, V]) now() time.Time {
	if c.Now == nil {
		return time.Now()
	}
	return c.Now()
}

// A load is under way for all callers that wait for the value of its key. singleflight
// joins the callers. It cannot tell when the last caller has left, so the callers are
// counted here, and each load has a group with one key.
type load struct {
	flight  singleflight.Group
	ctx     context.Context
	cancel  context.CancelFunc
	waiting int
}

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
// reuse parts of it; the zero value if there is none.
func (c *Cache[K, V]) Renew(ctx context.Context, key K, fresh func(V) bool, read func(ctx context.Context, known V) (V, time.Duration, error)) (value V, err error) {
	if err := ctx.Err(); err != nil {
		return value, err
	}
	c.mutex.Lock()
	known, ok := c.get(key)
	if ok && (fresh == nil || fresh(known)) {
		c.mutex.Unlock()
		return known, nil
	}
	l := c.loads[key]
	if l == nil {
		l = c.begin(ctx, key)
	}
	l.waiting++
	loaded := l.flight.DoChan("", func() (any, error) { // or joins the load under way
		return c.run(key, l, func() (V, time.Duration, error) { return read(l.ctx, known) })
	})
	c.mutex.Unlock()

	select {
	case result := <-loaded:
		value, _ = result.Val.(V)
		return value, result.Err
	case <-ctx.Done():
		c.leave(key, l)
		return value, ctx.Err()
	}
}

// begin makes the load of a key. The mutex is held.
func (c *Cache[K, V]) begin(ctx context.Context, key K) *load {
	l := new(load)
	l.ctx, l.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if c.loads == nil {
		c.loads = make(map[K]*load)
	}
	c.loads[key] = l
	return l
}

// run loads, and keeps the value unless all callers have left meanwhile: another load may
// have been begun.
func (c *Cache[K, V]) run(key K, l *load, read func() (V, time.Duration, error)) (V, error) {
	defer l.cancel()
	value, life, err := recovered(read)
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.loads[key] == l {
		delete(c.loads, key)
		if err == nil {
			c.put(key, value, life)
		}
	}
	return value, err
}

// leave ends the waiting of one caller.
func (c *Cache[K, V]) leave(key K, l *load) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if l.waiting--; l.waiting > 0 {
		return
	}
	l.cancel()
	if c.loads[key] == l {
		delete(c.loads, key)
	}
}

// recovered returns a panic as an error. A panic in the goroutine of a load would end the
// process, and loads read files of unknown authors.
func recovered[V any](read func() (V, time.Duration, error)) (value V, life time.Duration, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("loading panicked: %v", p)
		}
	}()
	return read()
}
