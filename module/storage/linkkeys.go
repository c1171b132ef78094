package storage

import (
	"context"

	"github.com/caddyserver/certmagic"
)

// LinkKeysName is the key of the keys of signed links in Caddy's storage.
const LinkKeysName = "terraform_registry/link_keys.json"

// A LinkKeys keeps the keys of signed links in Caddy's storage.
type LinkKeys struct{ Storage certmagic.Storage }

// Load implements access.LinkKeyStore.
func (k LinkKeys) Load(ctx context.Context) ([]byte, error) {
	return k.Storage.Load(ctx, LinkKeysName)
}

// Store implements access.LinkKeyStore.
func (k LinkKeys) Store(ctx context.Context, document []byte) error {
	return k.Storage.Store(ctx, LinkKeysName, document)
}

// Lock implements access.LinkKeyStore.
func (k LinkKeys) Lock(ctx context.Context) error {
	return k.Storage.Lock(ctx, LinkKeysName)
}

// Unlock implements access.LinkKeyStore.
func (k LinkKeys) Unlock(ctx context.Context) error {
	return k.Storage.Unlock(ctx, LinkKeysName)
}
