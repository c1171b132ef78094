package content

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/caddy-terraform/caddy-terraform-registry/cache"
)

// Bounds of what is read on request.
const (
	maxReads = 2        // readings of one kind at once
	maxKept  = 32 << 20 // bytes of the results of one kind
)

// readings keep what is read of a tree on request, by a key and up to a number of
// bytes, and bound how much is read at once. The zero value is ready for use.
type readings[K comparable, V sized] struct {
	once  sync.Once
	known cache.Cache[K, V]
	reads *semaphore.Weighted
}

// sized reports how many bytes it takes.
type sized interface{ Size() int }

func (r *readings[K, V]) prepare() {
	r.once.Do(func() {
		r.known.MaxBytes, r.known.Size = maxKept, V.Size
		r.reads = semaphore.NewWeighted(maxReads)
	})
}

// get returns the value of a key, reading it if necessary, once for all callers that wait
// for it. With fresh, a known value is returned only if fresh accepts it; otherwise read is
// given that value, and may reuse parts of it.
func (r *readings[K, V]) get(ctx context.Context, key K, fresh func(V) bool, read func(ctx context.Context, known V) (V, error)) (V, error) {
	r.prepare()
	return r.known.Renew(ctx, key, fresh, func(ctx context.Context, known V) (v V, life time.Duration, err error) {
		release, err := r.begin(ctx)
		if err != nil {
			return v, 0, err
		}
		defer release()
		v, err = read(ctx, known)
		return v, cache.UntilEvicted, err
	})
}

// begin waits until something may be read. release is called when it has been.
func (r *readings[K, V]) begin(ctx context.Context) (release func(), err error) {
	r.prepare()
	if err := r.reads.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	return func() { r.reads.Release(1) }, nil
}
