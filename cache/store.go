package cache

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

const (
	defaultEntries = 4096 // of a Cache without any other bound
	overhead       = 512  // about how many bytes a value takes beside its own
)

// bounds are the bounds of a Cache.
type bounds struct{ entries, bytes int }

func (b bounds) maxEntries() int {
	switch {
	case b.entries > 0:
		return b.entries
	case b.bytes > 0:
		return math.MaxInt
	}
	return defaultEntries
}

// An item is a value to keep.
type item struct {
	value any
	bytes int // zero: they are not bounded
	life  time.Duration
}

// A kept value of a store.
type kept struct {
	value   any
	bytes   int
	expires time.Time // zero: never
}

// A store is a Cache for keys and values of any type. Callers pass the same bounds each time.
type store struct {
	mutex sync.Mutex // guards what follows
	kept  *simplelru.LRU[any, kept]
	bytes int // of all that is kept
	loads map[any]*load
}

func (s *store) Get(key any) (value any, ok bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.get(key)
}

func (s *store) Put(b bounds, key any, i item) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.put(b, key, i)
}

func (s *store) PutIfAbsent(b bounds, key any, i item) any {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if known, ok := s.get(key); ok {
		return known
	}
	s.put(b, key, i)
	return i.value
}

func (s *store) Remove(key any) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.kept != nil {
		s.kept.Remove(key)
	}
}

// get is Get. The mutex is held, as it is for put.
func (s *store) get(key any) (value any, ok bool) {
	if s.kept == nil {
		return nil, false
	}
	k, ok := s.kept.Get(key)
	if ok && !k.expires.IsZero() && !time.Now().Before(k.expires) {
		s.kept.Remove(key)
		return nil, false
	}
	return k.value, ok
}

func (s *store) put(b bounds, key any, i item) {
	if s.kept == nil {
		s.kept, _ = simplelru.NewLRU(b.maxEntries(), func(_ any, k kept) { s.bytes -= k.bytes }) // it fails for a size below one
	}
	s.kept.Remove(key) // Add would not tell the size of the value that it replaces
	if i.life <= 0 || i.bytes > b.bytes {
		return
	}
	k := kept{value: i.value, bytes: i.bytes}
	if i.life != UntilEvicted {
		k.expires = time.Now().Add(i.life)
	}
	s.bytes += k.bytes
	s.kept.Add(key, k)
	for s.bytes > b.bytes {
		s.kept.RemoveOldest()
	}
}

// A load is under way for all callers that wait for the value of its key. It ends when the last
// one has left, which singleflight cannot tell.
type load struct {
	ctx     context.Context
	cancel  context.CancelFunc
	waiting int // callers

	ended chan struct{} // closed when there is a value or an error
	value any
	err   error
}

func (s *store) Renew(ctx context.Context, b bounds, key any, fresh func(any) bool, read func(ctx context.Context, known any) (item, error)) (any, error) {
	for {
		value, joined, err := s.renew(ctx, b, key, fresh, read)
		if !joined || err != nil || fresh(value) {
			return value, err
		}
	}
}

// renew is Renew, once. joined reports whether another caller has begun the load: its value may
// be out of date for this one.
func (s *store) renew(ctx context.Context, b bounds, key any, fresh func(any) bool, read func(ctx context.Context, known any) (item, error)) (value any, joined bool, err error) {
	if err := ctx.Err(); err != nil {
		return nil, false, err
	}
	s.mutex.Lock()
	known, ok := s.get(key)
	if ok && fresh(known) {
		s.mutex.Unlock()
		return known, false, nil
	}
	l, joined := s.loads[key]
	if !joined {
		l = s.begin(ctx, key)
		go s.run(b, key, l, func() (item, error) { return read(l.ctx, known) })
	}
	l.waiting++
	s.mutex.Unlock()

	select {
	case <-l.ended:
		return l.value, joined, l.err
	case <-ctx.Done():
		s.leave(key, l)
		return nil, joined, ctx.Err()
	}
}

// begin makes the load of a key. The mutex is held.
func (s *store) begin(ctx context.Context, key any) *load {
	l := &load{ended: make(chan struct{})}
	l.ctx, l.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if s.loads == nil {
		s.loads = make(map[any]*load)
	}
	s.loads[key] = l
	return l
}

// run loads, and keeps the value unless all callers have left meanwhile: another load may
// have been begun.
func (s *store) run(b bounds, key any, l *load, read func() (item, error)) {
	defer close(l.ended)
	defer l.cancel()
	var i item
	l.err = errEnded
	defer func() {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		if s.loads[key] == l {
			delete(s.loads, key)
			if l.err == nil {
				s.put(b, key, i)
			}
		}
	}()
	i, l.err = recovered(read)
	l.value = i.value
}

// errEnded is the error of a load that has ended its goroutine instead of returning.
var errEnded = errors.New("loading ended without a value")

// leave ends the waiting of one caller.
func (s *store) leave(key any, l *load) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if l.waiting--; l.waiting > 0 {
		return
	}
	l.cancel()
	if s.loads[key] == l {
		delete(s.loads, key)
	}
}

// recovered returns a panic as an error. A panic in the goroutine of a load would end the
// process, and loads read files of unknown authors.
func recovered(read func() (item, error)) (i item, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("loading panicked: %v", p)
		}
	}()
	return read()
}
