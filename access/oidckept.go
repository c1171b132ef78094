package access

import (
	"context"
	"sync"
	"time"
)

const (
	// staleAge is how old a document may be before it is fetched again.
	staleAge = time.Hour

	// failurePause is how long a failed attempt counts: without it an issuer
	// that is down would cost every request a timeout.
	failurePause = 10 * time.Second

	// renewalPause is how long a document that was just fetched is taken to be
	// all there is: without it anybody could have the issuer asked as often as
	// they make up the name of a key.
	renewalPause = 5 * time.Second
)

// kept is a document of an issuer: fetched when it is first asked for, kept,
// and fetched again in the background when it is stale. Whatever happens to the
// issuer then, the document stays.
type kept[T any] struct {
	fetch func() (T, error) // takes a bounded time
	now   func() time.Time

	mutex   sync.Mutex
	value   T
	known   bool // there is a value
	fetched time.Time
	tried   time.Time     // when the last attempt ended
	failure error         // of the last attempt
	flight  chan struct{} // closed when the attempt under way ends; nil: none is
}

// get returns the document. Only who needs it first has to wait.
func (k *kept[T]) get(ctx context.Context) (T, error) {
	k.mutex.Lock()
	if k.known {
		defer k.mutex.Unlock()
		if k.now().Sub(k.fetched) >= staleAge {
			k.attempt()
		}
		return k.value, nil
	}
	flight := k.attempt()
	k.mutex.Unlock()

	if err := land(ctx, flight); err != nil {
		var none T
		return none, err
	}
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if k.known {
		return k.value, nil
	}
	return k.value, k.failure
}

// renewed returns the document as it is after another attempt to fetch it, or
// after the last one if that was a moment ago. With an error it is what was
// known before.
func (k *kept[T]) renewed(ctx context.Context) (T, error) {
	k.mutex.Lock()
	flight := k.attempt()
	k.mutex.Unlock()

	err := land(ctx, flight)
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if err == nil {
		err = k.failure
	}
	return k.value, err
}

// attempt returns the attempt under way, if need be after starting one; nil if
// the last was a moment ago. It wants the mutex held.
//
// An attempt belongs to nobody: whoever started it may give up, and those who
// joined still get its result.
func (k *kept[T]) attempt() <-chan struct{} {
	pause := renewalPause
	if k.failure != nil {
		pause = failurePause
	}
	if k.flight == nil && (k.tried.IsZero() || k.now().Sub(k.tried) >= pause) {
		k.flight = make(chan struct{})
		go k.fly()
	}
	return k.flight
}

func (k *kept[T]) fly() {
	value, err := k.fetch()
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.tried, k.failure = k.now(), err
	if err == nil {
		k.value, k.known, k.fetched = value, true, k.tried
	}
	close(k.flight)
	k.flight = nil
}

// land waits for the end of an attempt, if there is one.
func land(ctx context.Context, flight <-chan struct{}) error {
	if flight == nil {
		return nil
	}
	select {
	case <-flight:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
