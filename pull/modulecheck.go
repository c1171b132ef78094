package pull

import (
	"context"
	"fmt"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// CheckModule asks the origin for the present content of a version of a module in the
// tree. It returns ErrConflict if it differs from the fetched content. It fetches
// nothing: if the origin names neither a commit nor a checksum, or does not answer,
// there is nothing to compare.
func (f *Filler) CheckModule(ctx context.Context, a address.Address, version string) error {
	w, err := f.moduleRequest(a, version)
	if err != nil {
		return err
	}
	_, in, dir, err := f.folder(a)
	if err != nil {
		return err
	}
	before, err := f.readSource(in, dir, w.version)
	if before == nil || before.Pending { // it may belong to another package
		return err
	}
	s, err := f.locate(ctx, w)
	if err != nil {
		return nil
	}
	named := newSourceRecord(s, s.NamedContent(), wire.SHA256{})
	if named.Commit+named.Archive == "" {
		return nil
	}
	if named.Folder != before.Folder ||
		named.Commit != "" && before.Commit != "" && named.Commit != before.Commit ||
		named.Archive != "" && before.Archive != "" && named.Archive != before.Archive {
		return fmt.Errorf("%w: it was %s when it was fetched, and is now %s: what is in the tree stays", ErrConflict, before.identity(), named.identity())
	}
	return nil
}
