package oidc

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

const (
	// staleAge is the age at which a document is fetched again.
	staleAge = time.Hour

	// failurePause is how long a failed fetch is not repeated: otherwise an issuer
	// that is down would cost every request a timeout.
	failurePause = 10 * time.Second

	// renewalPause is how long a document that was just fetched is not fetched
	// again: otherwise tokens with made-up key IDs would make the registry hammer
	// the issuer.
	renewalPause = 5 * time.Second
)

// A document of an issuer is fetched when it is first needed, cached, and fetched
// again in the background when it is stale. It stays cached whatever happens to
// the issuer. That is why it is not in a cache.Cache, whose values end with their life,
// and whose loads end with their callers.
type document[T any] struct {
	fetch func() (T, error) // takes a bounded time
	now   func() time.Time

	flight singleflight.Group

	mu      sync.Mutex
	value   T
	cached  bool // there is a value
	fetched time.Time
	tried   time.Time // end of the last fetch
	failure error     // of the last fetch
}

// get returns the document. Only the first requests for it have to wait.
func (d *document[T]) get(ctx context.Context) (T, error) {
	d.mu.Lock()
	value, cached, age := d.value, d.cached, d.now().Sub(d.fetched)
	d.mu.Unlock()
	if !cached {
		return d.renewed(ctx)
	}
	if age >= staleAge {
		d.start()
	}
	return value, nil
}

// renewed returns the document after another fetch, or after the last one if that
// ended a moment ago. If the fetch has failed, it returns the error and what was
// cached before.
func (d *document[T]) renewed(ctx context.Context) (T, error) {
	var err error
	if done := d.start(); done != nil {
		select {
		case <-done:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil {
		err = d.failure
	}
	return d.value, err
}

// start starts a fetch, unless one is under way, and returns a channel that
// receives when it has ended; nil if the last one ended a moment ago.
//
// No request owns a fetch: if the one that started it gives up, the others still
// get the result.
func (d *document[T]) start() <-chan singleflight.Result {
	if !d.due() {
		return nil
	}
	return d.flight.DoChan("", func() (any, error) {
		if !d.due() { // one has ended in between
			return nil, nil
		}
		value, err := d.fetch()
		d.mu.Lock()
		defer d.mu.Unlock()
		d.tried, d.failure = d.now(), err
		if err == nil {
			d.value, d.cached, d.fetched = value, true, d.tried
		}
		return nil, nil
	})
}

// due reports whether the last fetch ended long enough ago for another one.
func (d *document[T]) due() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	pause := renewalPause
	if d.failure != nil {
		pause = failurePause
	}
	return d.tried.IsZero() || d.now().Sub(d.tried) >= pause
}
