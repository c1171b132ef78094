package index

import (
	"context"
	"fmt"
	"io"

	"github.com/caddy-terraform/caddy-terraform-registry/archive"
	"github.com/caddy-terraform/caddy-terraform-registry/index/content"
)

// EachModuleFile calls visit with the files of a module's package whose names are
// wanted, in the order in which they are packed: of several with one name, clients have
// the last. Symlinks are left out. The error is ErrChanged when the package is no longer
// the one that was verified, or that of visit.
func (s *Snapshot) EachModuleFile(ctx context.Context, v *ModuleVersion, wants func(name string) bool, visit func(name string, r io.Reader) error) error {
	complete, err := s.eachModuleFile(ctx, v, wants, visit)
	return completely(complete, err)
}

// EachModuleFile is like Snapshot.EachModuleFile for the package that a file has been
// opened of, which the snapshot may not have yet. It reads f from where it is.
func (f *File) EachModuleFile(ctx context.Context, r io.Reader, wants func(name string) bool, visit func(name string, r io.Reader) error) error {
	if f.ContentType == zipType {
		return archive.WalkZip(ctx, r, f.Size, wants, visit)
	}
	complete, err := archive.WalkTarGz(ctx, r, content.MaxUnpacked, wants, visit)
	return completely(complete, err)
}

// completely returns the error of a package that was not read to its end.
func completely(complete bool, err error) error {
	if err == nil && !complete {
		return fmt.Errorf("the package unpacks to more than %d bytes", content.MaxUnpacked)
	}
	return err
}
