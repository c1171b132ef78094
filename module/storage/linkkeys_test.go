package storage

import (
	"context"
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
				store := NewLinkKeys(alone(s), locksIn(s))
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

// A crash may leave the file of a lock that is cut off. It keeps no instance from starting.
func TestLinkKeysAfterACrash(t *testing.T) {
	files := &certmagic.FileStorage{Path: t.TempDir()}
	synctest.Test(t, func(t *testing.T) {
		left, _, _ := newStorageLock(files)
		left.name = LinkKeysName
		if err := files.Store(t.Context(), left.file(), []byte(`{"created":"2000-01-`)); err != nil {
			t.Fatal(err)
		}
		keys := access.NewRotatingLinkKeys(t.Context(), NewLinkKeys(alone(files), locksIn(files)), slog.New(slog.DiscardHandler), time.Now)
		defer keys.Close()
		if err := keys.Load(); err != nil {
			t.Error(err)
		}
	})
}
