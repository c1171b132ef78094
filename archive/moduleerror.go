package archive

import (
	"context"
	"errors"
	"fmt"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// AsModuleError returns why a module in the tree could not be read: the error of ctx, an error
// of the storage, ErrChanged while the module is being written, or a *PackageError.
func AsModuleError(ctx context.Context, err error) error {
	var bad *tree.Finding
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case !errors.As(err, &bad):
		return tree.StorageError(err)
	}
	switch bad.Reason {
	case tree.BeingWritten:
		return tree.ErrChanged
	case tree.Unreadable, tree.Exhausted, tree.StoreFailed:
		return fmt.Errorf("%w: %s", tree.ErrNotWritable, bad.Detail)
	}
	return asPackageError(err)
}
