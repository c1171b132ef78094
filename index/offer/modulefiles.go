package offer

import (
	"context"
	"fmt"
	"io"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/archive"
	"github.com/caddy-terraform/caddy-terraform-registry/index/content"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// EachFile calls visit with the files of a module's package whose names are
// wanted. It is not complete if the package unpacks to more than is read.
func (v *ModuleVersion) EachFile(ctx context.Context, t *tree.Tree, wants func(name string) bool, visit func(name string, r io.Reader) error) (complete bool, err error) {
	defer func() {
		if err != nil && ctx.Err() == nil {
			err = tree.WithoutPath(err)
		}
	}()
	if v.Archive.IsFolder() {
		return true, archive.WalkFolder(ctx, v.Archive.part(t), v.Archive.made.packed, wants, visit)
	}
	f, err := v.Archive.Open(t)
	if err != nil {
		return false, err
	}
	defer f.Close()
	complete, err = v.Archive.walk(ctx, f.ReadSeekCloser, wants, visit)
	if err != nil {
		return false, err
	}
	return complete, f.Unchanged()
}

// EachModuleFile is like Snapshot.EachModuleFile for the package that a file has been
// opened of, which the snapshot may not have yet. It reads f from where it is.
func (f *File) EachModuleFile(ctx context.Context, r io.Reader, wants func(name string) bool, visit func(name string, r io.Reader) error) error {
	return RequireWhole(f.walk(ctx, r, wants, visit))
}

// walk calls visit with the wanted files of a module's package, whose bytes r has.
func (f *File) walk(ctx context.Context, r io.Reader, wants func(name string) bool, visit func(name string, r io.Reader) error) (complete bool, err error) {
	return archive.WalkModule(ctx, r, f.Size, address.ModuleFormatOf(f.Name), content.MaxUnpacked, wants, visit)
}

// RequireWhole returns the error of a package that was not read to its end.
func RequireWhole(complete bool, err error) error {
	if err == nil && !complete {
		return fmt.Errorf("the package unpacks to more than %d bytes", content.MaxUnpacked)
	}
	return err
}
