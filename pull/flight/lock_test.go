package flight_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/pull/flight"
)

// Nobody waits for ever for a storage of locks.
func TestLocksAreWaitedForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		_, err := flight.Lock(t.Context(), time.Minute, func(ctx context.Context) (func(), error) {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		})
		if err == nil || err.Error() != "it was not to be had within 1m0s" || time.Since(began) != time.Minute {
			t.Errorf("got %v after %s", err, time.Since(began))
		}
	})
}

// Nobody waits for a caller who has left, and such a caller has no lock.
func TestLocksThatNobodyWaitsForAnyMore(t *testing.T) {
	for rule, given := range map[string]bool{"it is not to be had": false, "it comes at the last moment": true} {
		ctx, leave := context.WithCancel(t.Context())
		back := false
		_, err := flight.Lock(ctx, time.Minute, func(ctx context.Context) (func(), error) {
			leave()
			if given {
				return func() { back = true }, nil
			}
			<-ctx.Done()
			return nil, ctx.Err()
		})
		if err == nil || back != given {
			t.Errorf("%s: got %v, and it is given back: %t", rule, err, back)
		}
	}
}

func TestUnlockingIsWaitedForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		defer close(hang)
		unlock, err := flight.Lock(t.Context(), time.Minute, func(context.Context) (func(), error) {
			return func() { <-hang }, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if unlock(); time.Since(began) >= time.Minute {
			t.Errorf("it took %s", time.Since(began))
		}
	})
}

// A lock is held for longer than it is waited for. Its context lives until it has been given back.
func TestLocksAreHeldForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var held context.Context
		caller, leave := context.WithCancel(t.Context())
		unlock, err := flight.Lock(caller, time.Minute, func(ctx context.Context) (func(), error) {
			held = ctx
			return func() {
				if ctx.Err() != nil {
					t.Error("it was lost")
				}
			}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		leave()
		time.Sleep(time.Hour)
		if unlock(); held.Err() == nil {
			t.Error("it is renewed for ever")
		}
	})
}
