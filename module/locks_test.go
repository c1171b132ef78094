package module

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestNamedLocks(t *testing.T) {
	t.Run("one at a time has the lock of a name", func(t *testing.T) {
		var l namedLocks
		var users sync.WaitGroup
		count := 0 // the race detector sees who has no lock
		for range 100 {
			users.Go(func() {
				release, err := l.acquire(t.Context(), "a")
				if err != nil {
					t.Error(err)
					return
				}
				count++
				release()
			})
		}
		users.Wait()
		if count != 100 || len(l.named) != 0 {
			t.Errorf("%d had it, and %d locks are left", count, len(l.named))
		}
	})
	t.Run("names do not wait for each other", func(t *testing.T) {
		var l namedLocks
		a, err := l.acquire(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		b, err := l.acquire(t.Context(), "b")
		if err != nil {
			t.Fatal(err)
		}
		a()
		b()
	})
	t.Run("the wait ends with the context", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var l namedLocks
			release, err := l.acquire(t.Context(), "a")
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := l.acquire(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got error %v", err)
			}
			release()
			again, err := l.acquire(t.Context(), "a")
			if err != nil {
				t.Fatal(err)
			}
			again()
			if len(l.named) != 0 {
				t.Errorf("%d locks are left", len(l.named))
			}
		})
	})
}

// A lock is that of all instances with the same storage.
func TestLockIsShared(t *testing.T) {
	one := newConfiguration(t)
	other := newConfigurationIn(t, one.storage)
	unlock, err := one.app().lock(t.Context(), "terraform_registry/publish/acme@demo@1.0.0")
	if err != nil {
		t.Fatal(err)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := other.app().lock(canceled, "terraform_registry/publish/acme@demo@1.0.0"); err == nil {
		t.Error("two instances have the lock")
	}
	unlock()
	unlock, err = other.app().lock(t.Context(), "terraform_registry/publish/acme@demo@1.0.0")
	if err != nil {
		t.Fatal(err)
	}
	unlock()
}

// Many requests of a process for one lock take it one after the other, without waiting
// for the storage's next look at it.
func TestLockOfOneProcess(t *testing.T) {
	app := newConfiguration(t).app()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second) // the storage would take 49
	defer cancel()
	var users sync.WaitGroup
	for range 50 {
		users.Go(func() {
			unlock, err := app.lock(ctx, "a")
			if err != nil {
				t.Error(err)
				return
			}
			unlock()
		})
	}
	users.Wait()
}
