package pull

import (
	"context"
	"fmt"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A transparency log has on record which packages were offered here.

// checkRecord returns ErrConflict for a package that is on record with other bytes: it was
// offered here before, and the origin has replaced it.
func (f *Filler) checkRecord(a address.Address, version string, on address.Platform, h1 string, sum wire.SHA256) error {
	if f.options.Replaces == nil {
		return nil
	}
	since := f.options.Replaces(a, version, on, h1, sum)
	if since.IsZero() {
		return nil
	}
	return fmt.Errorf("%w: version %s is on record with other bytes since %s", ErrConflict, version, since.UTC().Format(time.RFC3339))
}

// recordPatience is how long a package waits until it is on record.
const recordPatience = 5 * time.Second

// awaitRecord waits recordPatience at most until a package in the tree is on record. It returns
// ErrNotOnRecord for a package that must be on record before it is handed out, and is not.
func (f *Filler) awaitRecord(a address.Address, version string, on address.Platform) error {
	if f.options.Await == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(f.ctx, recordPatience)
	defer cancel()
	if !f.options.Await(ctx, a, version, on) {
		return ErrNotOnRecord
	}
	return nil
}
