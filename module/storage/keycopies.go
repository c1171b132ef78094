package storage

import (
	"context"
	"errors"
	"io/fs"
	"net/url"
	"path"

	"github.com/caddyserver/certmagic"

	"github.com/caddy-terraform/caddy-terraform-registry/index/keys"
)

// KeyCopies are the copies of a tree's keys files: a folder in Caddy's storage, with a value
// for each namespace.
type KeyCopies struct {
	Calls
	folder string
}

// maxKeyCopyCalls limits the calls that wait for a storage that hangs.
const maxKeyCopyCalls = 16

// NewKeyCopies returns the copies for the tree with an identity.
func NewKeyCopies(storage func() (certmagic.Storage, error), identity string) KeyCopies {
	return KeyCopies{NewCalls(storage, maxKeyCopyCalls), Folder("keys", identity)}
}

// key returns the key for a namespace. It is not a path, since a hostname may have a
// port.
func (c KeyCopies) key(namespace string) string {
	return path.Join(c.folder, url.QueryEscape(namespace)+".json")
}

// Load implements keys.Copies.
func (c KeyCopies) Load(ctx context.Context, namespace string) ([]byte, error) {
	return c.Calls.Load(ctx, c.key(namespace))
}

// Store implements keys.Copies.
func (c KeyCopies) Store(ctx context.Context, namespace string, copied []byte) error {
	return c.Calls.Store(ctx, c.key(namespace), copied)
}

// Delete implements keys.Copies.
func (c KeyCopies) Delete(ctx context.Context, namespace string) error {
	if err := c.Calls.Delete(ctx, c.key(namespace)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Interface guards
var _ keys.Copies = KeyCopies{}
