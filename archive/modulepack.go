package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
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
// *PackageError if a scan would withhold the module wherever it lies. Any other error is an error
// of ctx, of the folder, or of reading a file in it.
func PackModule(ctx context.Context, dir string) (*PackedModule, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the folder: %w", tree.WithoutPath(err))
	}
	path, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	return packModule(ctx, disk.NewPart(root, path))
}

func packModule(ctx context.Context, part tree.Part) (*PackedModule, error) {
	m, bad := FindModule(part, ".", func(string) {})
	if bad != nil {
		return nil, unpackedError(bad)
	}
	d, err := m.Read(ctx, unpaced)
	if err != nil {
		if ctx.Err() == nil {
			err = tree.AsFinding(err)
		}
		return nil, unpackedError(err)
	}
	return &PackedModule{
		Size: d.Size, SHA256: d.SHA256, LeftOut: m.LeftOut(), Doubts: m.Doubts(d),
		part: part, packing: m.packing,
	}, nil
}

// unpackedError returns a finding about the module as a *PackageError. A file that could not be
// read says nothing about the module: here, the user packs their own files.
func unpackedError(err error) error {
	var bad *tree.Finding
	if !errors.As(err, &bad) || bad.ReadError() == nil {
		return asPackageError(err)
	}
	failed := bad.ReadError()
	if at, ok := errors.AsType[*fs.PathError](failed); ok && at.Path != "." {
		return fmt.Errorf("%q in it cannot be read: %w", at.Path, at.Err)
	}
	return fmt.Errorf("it cannot be read: %w", tree.WithoutPath(failed))
}

// Open opens the package. Reading fails with ErrChanged if a file in the folder has changed
// since it was packed.
func (m *PackedModule) Open() io.ReadSeekCloser { return m.packing.Open(m.part) }
