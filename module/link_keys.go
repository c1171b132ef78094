package module

import (
	"context"

	"github.com/caddyserver/certmagic"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
)

// linkKeysName is the name of the link keys in Caddy's storage. Instances that
// share the storage share the keys.
const linkKeysName = "terraform_registry/link_keys.json"

// A linkKeyStore keeps the link keys in Caddy's storage.
type linkKeyStore struct{ storage certmagic.Storage }

// Load implements access.LinkKeyStore.
func (s linkKeyStore) Load(ctx context.Context) ([]byte, error) {
	return s.storage.Load(ctx, linkKeysName)
}

// Store implements access.LinkKeyStore.
func (s linkKeyStore) Store(ctx context.Context, document []byte) error {
	return s.storage.Store(ctx, linkKeysName, document)
}

// Lock implements access.LinkKeyStore.
func (s linkKeyStore) Lock(ctx context.Context) error {
	return s.storage.Lock(ctx, linkKeysName)
}

// Unlock implements access.LinkKeyStore.
func (s linkKeyStore) Unlock(ctx context.Context) error {
	return s.storage.Unlock(ctx, linkKeysName)
}

// Interface guards
var _ access.LinkKeyStore = linkKeyStore{}
