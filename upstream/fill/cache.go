package fill

import (
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// A cache keeps values for some time, and of them only the most recently used:
// what clients request must not fill the server's memory. It is safe for
// concurrent use.
//
// simplelru does the eviction. Lifetimes and weights are kept here: those of
// golang-lru's expirable package are the same for all entries, and its cleanup
// goroutine cannot be stopped when a configuration goes.
type cache[K comparable, V any] struct {
	maxWeight int         // bytes of all values; zero: unbounded
	weigh     func(V) int // nil: values have no weight

	mutex   sync.Mutex
	entries *simplelru.LRU[K, cacheEntry[V]]
	weight  int
}

type cacheEntry[V any] struct {
	value   V
	weight  int
	expires time.Time // zero: when it is evicted
}

// newCache makes a cache of at most size values, more than zero.
func newCache[K comparable, V any](size int) *cache[K, V] {
	c := new(cache[K, V])
	c.entries, _ = simplelru.NewLRU(size, func(_ K, e cacheEntry[V]) { c.weight -= e.weight })
	return c
}

// bounded also bounds the weight of all values.
func (c *cache[K, V]) bounded(maxWeight int, weigh func(V) int) *cache[K, V] {
	c.maxWeight, c.weigh = maxWeight, weigh
	return c
}

func (c *cache[K, V]) get(key K) (value V, ok bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	e, ok := c.entries.Get(key)
	if ok && !e.expires.IsZero() && !time.Now().Before(e.expires) {
		c.entries.Remove(key)
		return value, false
	}
	return e.value, ok
}

// put keeps a value for the given time; with zero, until it is evicted.
func (c *cache[K, V]) put(key K, value V, lifetime time.Duration) {
	e := cacheEntry[V]{value: value}
	if lifetime > 0 {
		e.expires = time.Now().Add(lifetime)
	}
	if c.weigh != nil {
		e.weight = c.weigh(value)
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.entries.Remove(key) // so that the weight of the old value is subtracted
	c.weight += e.weight
	c.entries.Add(key, e)
	for c.maxWeight > 0 && c.weight > c.maxWeight {
		c.entries.RemoveOldest()
	}
}

func (c *cache[K, V]) remove(key K) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.entries.Remove(key)
}
