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
	return c.storageCalls.Load(ctx, c.key(namespace))
}

// Store implements keys.Copies.
func (c keyCopies) Store(ctx context.Context, namespace string, copied []byte) error {
	return c.storageCalls.Store(ctx, c.key(namespace), copied)
}

// Delete implements keys.Copies.
func (c keyCopies) Delete(ctx context.Context, namespace string) error {
	if err := c.storageCalls.Delete(ctx, c.key(namespace)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// keyCopies returns the copies of a tree's keys in the storage of the app's
// configuration.
func (a *App) keyCopies(t servedTree) keyCopies {
	return newKeyCopies(a.storageOf(), t.identity())
}

// storageOf returns a function for the storage of the app's configuration.
func (a *App) storageOf() func() (certmagic.Storage, error) {
	return func() (certmagic.Storage, error) { return a.ctx.Storage(), nil }
}

// Interface guards
var _ keys.Copies = keyCopies{}
