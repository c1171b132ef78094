package storage

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/certmagic"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
)

// A hangingStorage has one value, and does not return from one of its methods, whatever the context.
type hangingStorage struct {
	memoryStorage
	call   string
	until  chan struct{}
	locked bool
}

func (s *hangingStorage) begin(call string) {
	if call == s.call {
		<-s.until
	}
}

func (s *hangingStorage) Load(ctx context.Context, key string) ([]byte, error) {
	s.begin("Load")
	return s.memoryStorage.Load(ctx, key)
}

func (s *hangingStorage) Store(ctx context.Context, key string, value []byte) error {
	s.begin("Store")
	return s.memoryStorage.Store(ctx, key, value)
}

func (s *hangingStorage) Lock(context.Context, string) error {
	s.begin("Lock")
	s.locked = true
	return nil
}

func (s *hangingStorage) Unlock(context.Context, string) error {
	s.begin("Unlock")
	s.locked = false
	return nil
}

// The end of a configuration does not wait for a storage that never returns. A lock that it gives when
// nobody waits any more is given back.
func TestClosingLinkKeysInAStorageThatHangs(t *testing.T) {
	const day = 24 * time.Hour // from then on, the key is replaced
	for _, test := range []struct {
		call string
		do   func(k *access.RotatingLinkKeys)
	}{
		{"Load", func(k *access.RotatingLinkKeys) { k.Reload() }},
		{"Load", func(k *access.RotatingLinkKeys) { k.Keys() }},
		{"Lock", func(k *access.RotatingLinkKeys) { k.Keys() }},
		{"Store", func(k *access.RotatingLinkKeys) { k.Keys() }},
		{"Unlock", func(k *access.RotatingLinkKeys) { k.Keys() }},
	} {
		t.Run(test.call, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &hangingStorage{until: make(chan struct{})}
				store := NewLinkKeys(func() (certmagic.Storage, error) { return s, nil })
				keys := access.NewRotatingLinkKeys(t.Context(), store, slog.New(slog.DiscardHandler), time.Now)
				if err := keys.Load(); err != nil {
					t.Fatal(err)
				}
				time.Sleep(day)
				s.call = test.call
				for range 2 * maxLinkKeysCalls {
					test.do(keys)
					time.Sleep(time.Second)
				}
				began := time.Now()
				keys.Close()
				if took := time.Since(began); took > 5*time.Second {
					t.Errorf("closing takes %s", took)
				}
				close(s.until)
				synctest.Wait()
				if s.locked {
					t.Error("the lock stays")
				}
			})
		})
	}
}

// While a storage hangs, as many calls as may wait for it do. A lock is given back all the same.
func TestUnlockingDoesNotWaitForOtherCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &hangingStorage{until: make(chan struct{})}
		defer close(s.until)
		calls := NewCalls(alone(s), 1)
		if err := calls.Lock(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		s.call = "Load"
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := calls.Load(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("loading: %v", err)
		}
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := calls.Unlock(ctx, "a"); err != nil || s.locked {
			t.Errorf("unlocking: %v", err)
		}
	})
}
