package module

import (
	"context"
	"errors"
	"io/fs"
	"net/url"
	"path"

	"github.com/caddyserver/certmagic"

	"github.com/caddy-terraform/caddy-terraform-registry/index/keys"
)

// keyCopies are the copies of a tree's keys files: a folder in Caddy's storage, with a value
// for each namespace.
type keyCopies struct {
	storageCalls
	folder string
}

// maxKeyCopyCalls limits the calls that wait for a storage that hangs.
const maxKeyCopyCalls = 16

func newKeyCopies(storage func() (certmagic.Storage, error), identity string) keyCopies {
	return keyCopies{newStorageCalls(storage, maxKeyCopyCalls), treeFolder("keys", identity)}
}

// key returns the key for a namespace. It is not a path, since a hostname may have a
// port.
func (c keyCopies) key(namespace string) string {
	return path.Join(c.folder, url.QueryEscape(namespace)+".json")
}

// Load implements keys.Copies.
func (c keyCopies) Load(ctx context.Context, namespace string) ([]byte, error) {
	return call(ctx, c.storageCalls, func(storage certmagic.Storage) ([]byte, error) {
		return storage.Load(ctx, c.key(namespace))
	})
}

// Store implements keys.Copies.
func (c keyCopies) Store(ctx context.Context, namespace string, copied []byte) error {
	_, err := call(ctx, c.storageCalls, func(storage certmagic.Storage) (struct{}, error) {
		return struct{}{}, storage.Store(ctx, c.key(namespace), copied)
	})
	return err
}

// Delete implements keys.Copies.
func (c keyCopies) Delete(ctx context.Context, namespace string) error {
	_, err := call(ctx, c.storageCalls, func(storage certmagic.Storage) (struct{}, error) {
		err := storage.Delete(ctx, c.key(namespace))
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return struct{}{}, err
	})
	return err
}

// keyCopies returns the copies of a tree's keys in the storage of the app's
// configuration.
func (a *App) keyCopies(t servedTree) keyCopies {
	return newKeyCopies(func() (certmagic.Storage, error) { return a.ctx.Storage(), nil }, t.identity())
}

// Interface guards
var _ keys.Copies = keyCopies{}
