package cli

import (
	"context"

	"github.com/caddyserver/caddy/v2"
)

// LockDefaultStorage waits for a lock in the default storage, or for the end of ctx. A server
// with this storage, run by the same user, then does not do the same thing at the same time. Any
// other server may.
func LockDefaultStorage(ctx context.Context, name string) (unlock func(), err error) {
	if err := caddy.DefaultStorage.Lock(ctx, name); err != nil {
		return nil, err
	}
	return func() { caddy.DefaultStorage.Unlock(context.WithoutCancel(ctx), name) }, nil
}
