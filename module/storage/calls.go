// Package storage keeps in Caddy's storage what instances of a cluster share about a tree, and
// their locks.
//
// A storage may be a network disk, a database or a bucket. It may hang, fail and forget. So
// each call ends with its context, even if the storage does not return, and the number of
// calls that wait for it is bounded.
package storage

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"github.com/caddyserver/certmagic"
)

// Calls call Caddy's storage.
type Calls struct {
	storage func() (certmagic.Storage, error) // called each time, since the storage of a configuration is closed when the configuration ends
	calls   chan struct{}                     // has an element for each call
}

// NewCalls returns calls to a storage. At most atOnce calls wait for it at the same time.
func NewCalls(storage func() (certmagic.Storage, error), atOnce int) Calls {
	return Calls{storage, make(chan struct{}, atOnce)}
}

// call calls the storage. It returns when ctx ends, even if the call does not return: a
// file storage ignores the context, and may hang on a network disk.
func call[T any](ctx context.Context, s Calls, do func(certmagic.Storage) (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	var none T
	storage, err := s.storage()
	if err != nil {
		return none, err
	}
	select {
	case s.calls <- struct{}{}:
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
	answered := make(chan answer, 1)
	go func() {
		defer func() { <-s.calls }()
		value, err := do(storage)
		answered <- answer{value, err}
	}()
	select {
	case a := <-answered:
		return a.value, a.err
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
}

// Load implements vault.Storage.
func (s Calls) Load(ctx context.Context, key string) ([]byte, error) {
	return call(ctx, s, func(storage certmagic.Storage) ([]byte, error) { return storage.Load(ctx, key) })
}

// Store implements vault.Storage.
func (s Calls) Store(ctx context.Context, key string, value []byte) error {
	_, err := call(ctx, s, func(storage certmagic.Storage) (struct{}, error) { return struct{}{}, storage.Store(ctx, key, value) })
	return err
}

// Delete implements vault.Storage.
func (s Calls) Delete(ctx context.Context, key string) error {
	_, err := call(ctx, s, func(storage certmagic.Storage) (struct{}, error) { return struct{}{}, storage.Delete(ctx, key) })
	return err
}

// Folder returns the folder for data about the tree with an identity.
func Folder(kind, identity string) string {
	sum := sha256.Sum256([]byte(identity))
	return "terraform_registry/" + kind + "/" + hex.EncodeToString(sum[:12])
}
