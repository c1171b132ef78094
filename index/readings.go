package index

import (
	"context"
	"fmt"
	"math"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// Bounds of what is read on request.
const (
	maxReads = 2        // readings of one kind at once
	maxKept  = 32 << 20 // bytes of what has been read of one kind
)

// readings keep what is read of a tree on request, by a key and up to a number of
// bytes. The zero value is ready for use.
type readings[K comparable, V sized] struct {
	mutex   sync.Mutex
	known   *simplelru.LRU[K, V]
	bytes   int // of known
	flights map[K]*flight[V]
	reads   chan struct{}
}

// sized reports how many bytes it takes.
type sized interface{ Size() int }

// A flight is a reading under way, shared by all callers with the same key. It is not
// singleflight's, since it is canceled when no caller waits for it any more.
type flight[V sized] struct {
	waiting int
	cancel  context.CancelFunc
	done    chan struct{} // closed when the rest is known
	result  V
	err     error
}

// get returns the value of a key, reading it if necessary. With fresh, a known value is
// returned only if fresh accepts it; otherwise read is given that value, and may reuse
// parts of it.
func (d *readings[K, V]) get(ctx context.Context, key K, fresh func(V) bool, read func(ctx context.Context, known V) (V, error)) (v V, err error) {
	if err := ctx.Err(); err != nil {
		return v, err
	}
	d.mutex.Lock()
	d.prepare()
	known, ok := d.known.Get(key)
	if ok && (fresh == nil || fresh(known)) {
		d.mutex.Unlock()
		return known, nil
	}
	f := d.flights[key]
	if f == nil {
		f = &flight[V]{done: make(chan struct{})}
		flying, cancel := context.WithCancel(context.WithoutCancel(ctx))
		f.cancel = cancel
		d.flights[key] = f
		go d.fly(flying, key, f, func(ctx context.Context) (V, error) { return read(ctx, known) })
	}
	f.waiting++
	d.mutex.Unlock()

	select {
	case <-f.done:
		return f.result, f.err
	case <-ctx.Done():
		d.mutex.Lock()
		defer d.mutex.Unlock()
		if f.waiting--; f.waiting == 0 {
			f.cancel()
			d.forget(key, f) // the next caller begins another
		}
		return v, ctx.Err()
	}
}

func (d *readings[K, V]) fly(ctx context.Context, key K, f *flight[V], read func(context.Context) (V, error)) {
	defer f.cancel()
	release, err := d.begin(ctx)
	if err == nil {
		f.result, err = recovered(ctx, read)
		release()
	}
	f.err = err
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if err == nil {
		d.keep(key, f.result)
	}
	d.forget(key, f)
	close(f.done)
}

// recovered reads, and returns a panic as an error: what is read was written by anyone,
// and no other goroutine would catch it.
func recovered[V any](ctx context.Context, read func(context.Context) (V, error)) (v V, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("reading panicked: %v", p)
		}
	}()
	return read(ctx)
}

func (d *readings[K, V]) forget(key K, f *flight[V]) {
	if d.flights[key] == f {
		delete(d.flights, key)
	}
}

// begin waits until something may be read. release is called when it has been.
func (d *readings[K, V]) begin(ctx context.Context) (release func(), err error) {
	d.mutex.Lock()
	d.prepare()
	d.mutex.Unlock()
	select {
	case d.reads <- struct{}{}:
		return func() { <-d.reads }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (d *readings[K, V]) prepare() {
	if d.known != nil {
		return
	}
	d.flights = make(map[K]*flight[V])
	d.reads = make(chan struct{}, maxReads)
	d.known, _ = simplelru.NewLRU(math.MaxInt, func(_ K, v V) { d.bytes -= v.Size() })
}

func (d *readings[K, V]) keep(key K, v V) {
	d.known.Remove(key)
	d.known.Add(key, v)
	for d.bytes += v.Size(); d.bytes > maxKept; {
		d.known.RemoveOldest()
	}
}
