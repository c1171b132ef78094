package module

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/certmagic"
)

// A closingStorage is a storage of files that answers no more when its configuration has ended, as a
// database whose client is closed then. Caddy cleans up the modules of a configuration in any
// order: here, the storage is always the first.
type closingStorage struct {
	Root string `json:"root"`

	files certmagic.FileStorage
	ctx   context.Context

	// before is called before each call of a method with a key. It may fail or hang. Nil: nothing is called.
	before atomic.Pointer[func(method, key string) error]
}

var errStorageClosed = errors.New("the client is closed")

func init() { caddy.RegisterModule(new(closingStorage)) }

// closingIn returns the configuration of a closingStorage in a folder.
func closingIn(root string) map[string]any { return map[string]any{"module": "closing", "root": root} }

// before sets what is called before each call of the storage of an app, which is a closingStorage.
func before(a *App, do func(method, key string) error) {
	a.ctx.Storage().(*closingStorage).before.Store(&do)
}

func (*closingStorage) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "caddy.storage.closing", New: func() caddy.Module { return new(closingStorage) }}
}

func (s *closingStorage) Provision(ctx caddy.Context) error {
	s.ctx, s.files.Path = ctx, s.Root
	return nil
}

func (s *closingStorage) CertMagicStorage() (certmagic.Storage, error) { return s, nil }

// begin begins a call.
func (s *closingStorage) begin(method, key string) error {
	if do := s.before.Load(); do != nil {
		if err := (*do)(method, key); err != nil {
			return err
		}
	}
	if s.ctx.Err() != nil {
		return errStorageClosed
	}
	return nil
}

// Lock fails when the storage is closed, also while it waits.
func (s *closingStorage) Lock(ctx context.Context, name string) error {
	if err := s.begin("Lock", name); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.ctx, func() { cancel(errStorageClosed) })()
	if err := s.files.Lock(ctx, name); err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	return nil
}

func (s *closingStorage) Unlock(ctx context.Context, name string) error {
	if err := s.begin("Unlock", name); err != nil {
		return err
	}
	return s.files.Unlock(ctx, name)
}

func (s *closingStorage) Store(ctx context.Context, key string, value []byte) error {
	if err := s.begin("Store", key); err != nil {
		return err
	}
	return s.files.Store(ctx, key, value)
}

func (s *closingStorage) Load(ctx context.Context, key string) ([]byte, error) {
	if err := s.begin("Load", key); err != nil {
		return nil, err
	}
	return s.files.Load(ctx, key)
}

func (s *closingStorage) Delete(ctx context.Context, key string) error {
	if err := s.begin("Delete", key); err != nil {
		return err
	}
	return s.files.Delete(ctx, key)
}

func (s *closingStorage) Exists(ctx context.Context, key string) bool {
	return s.begin("Exists", key) == nil && s.files.Exists(ctx, key)
}

func (s *closingStorage) List(ctx context.Context, folder string, recursive bool) ([]string, error) {
	if err := s.begin("List", folder); err != nil {
		return nil, err
	}
	return s.files.List(ctx, folder, recursive)
}

func (s *closingStorage) Stat(ctx context.Context, key string) (certmagic.KeyInfo, error) {
	if err := s.begin("Stat", key); err != nil {
		return certmagic.KeyInfo{}, err
	}
	return s.files.Stat(ctx, key)
}

// Interface guards
var (
	_ caddy.Provisioner      = (*closingStorage)(nil)
	_ caddy.StorageConverter = (*closingStorage)(nil)
	_ certmagic.Storage      = (*closingStorage)(nil)
)
