package storage

import (
	"context"

	"github.com/caddyserver/certmagic"
)

// LinkKeysName is the key of the keys of signed links in Caddy's storage.
const LinkKeysName = "terraform_registry/link_keys.json"

// maxLinkKeysCalls limits the calls that wait for a storage that hangs.
const maxLinkKeysCalls = 4

// A LinkKeys keeps the keys of signed links in Caddy's storage.
type LinkKeys struct {
	calls Calls
	lock  Lock
}

// NewLinkKeys returns the keys in a storage.
func NewLinkKeys(storage func() (certmagic.Storage, error), lock Lock) LinkKeys {
	return LinkKeys{NewCalls(storage, maxLinkKeysCalls), lock}
}

// Load implements access.LinkKeyStore.
func (k LinkKeys) Load(ctx context.Context) ([]byte, error) {
	return k.calls.Load(ctx, LinkKeysName)
}

// Store implements access.LinkKeyStore.
func (k LinkKeys) Store(ctx context.Context, document []byte) error {
	return k.calls.Store(ctx, LinkKeysName, document)
}

// Lock implements access.LinkKeyStore.
func (k LinkKeys) Lock(ctx context.Context) (unlock func(), err error) {
	return k.lock(ctx, LinkKeysName)
}
