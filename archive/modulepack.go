package archive

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/disk"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A PackedModule is the package of a module folder, with the bytes that the registry would
// serve if the folder lay in a tree. The bytes are computed whenever they are read.
type PackedModule struct {
	Size   int64 // in bytes
	SHA256 wire.SHA256

	// LeftOut names in short the files in the folder that are not in the package; empty if
	// there are none.
	LeftOut string

	Doubts Doubts // about the package

	part    tree.Part
	packing *packing
}

// PackModule packs a module folder on the local disk as a scan does. The error is a
// *PackageError if a scan would withhold the module. Any other error is an error of ctx or
// of the folder.
func PackModule(ctx context.Context, dir string) (*PackedModule, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the folder: %w", tree.WithoutPath(err))
	}
	path, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	part := disk.NewPart(root, path)
	m, bad := FindModule(part, ".", func(string) {})
	if bad != nil {
		return nil, AsPackageError(bad)
	}
	d, err := m.Read(ctx, unpaced)
	if err != nil {
		if ctx.Err() == nil {
			err = tree.AsFinding(err)
		}
		return nil, AsPackageError(err)
	}
	return &PackedModule{
		Size: d.Size, SHA256: d.SHA256, LeftOut: m.LeftOut(), Doubts: m.Doubts(d),
		part: part, packing: m.packing,
	}, nil
}

// Open opens the package. Reading fails with ErrChanged if a file in the folder has changed
// since it was packed.
func (m *PackedModule) Open() io.ReadSeekCloser { return m.packing.Open(m.part) }
