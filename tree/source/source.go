package source

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/bucket"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/disk"
)

// A Source is where a tree lies: in directories of the local disk or of a file system. Equal
// sources are the same tree.
type Source struct {
	Directories Directories
	FS          fs.FS // nil: the local disk
}

// Unwrapped returns the Bucket behind a file system of Caddy's, which is the same value for all
// configurations that have it, or else the file system itself.
func Unwrapped(fsys fs.FS) fs.FS {
	if b, ok := bucket.From(fsys); ok {
		return b
	}
	return fsys
}

// Open opens the tree.
func (s Source) Open() (tree.Tree, error) {
	if s.FS != nil {
		return s.Directories.OpenIn(s.FS)
	}
	return s.Directories.Open()
}

// OpenFolder opens a directory beside the tree, which must exist: of the local disk, or of
// the same file system.
func (s Source) OpenFolder(dir string) (tree.Part, error) {
	if s.FS == nil {
		return disk.Open(dir)
	}
	t, err := Directories{Root: dir}.OpenIn(s.FS)
	return t.Root, err
}

// Covers reports whether a directory lies in the tree: in a part of it or, on the local
// disk, anywhere in its root.
func (s Source) Covers(dir string) bool {
	if s.FS == nil {
		return slices.ContainsFunc(s.Directories.Paths(), func(part string) bool {
			rest, err := filepath.Rel(part, dir)
			return err == nil && filepath.IsLocal(rest)
		})
	}
	parts := s.Directories.partsIn()
	dir = nameIn(dir)
	return slices.ContainsFunc(parts[:], func(part string) bool {
		return dir == part || strings.HasPrefix(dir, part+"/")
	})
}

// Listed returns the tree for scans where a listing costs less than reading each directory,
// and reports whether it does.
func (s Source) Listed() (l *bucket.ListedTree, ok bool) {
	b, ok := s.FS.(bucket.Bucket)
	if !ok {
		return nil, false
	}
	return s.Directories.Listed(b), true
}

// Paths returns where the tree begins on the local disk, if it lies there.
func (s Source) Paths() []string {
	if s.FS != nil {
		return nil
	}
	return s.Directories.Paths()
}

// IsWritable reports whether files can be written to the tree.
func (s Source) IsWritable() bool {
	_, inBucket := s.FS.(bucket.Bucket)
	return s.FS == nil || inBucket
}

// FreeSpace returns how many bytes of providers or modules this machine may still write: to
// the tree, or to temporary files that are sent to a Bucket.
func (s Source) FreeSpace(a address.Address) (int64, error) {
	if s.FS != nil {
		return disk.FreeSpace(os.TempDir())
	}
	return s.Directories.FreeSpace(a)
}

// SignsURLs reports whether the tree lies in an object store, from which others can get files
// without this process, and whether the store can sign URLs for that. A store that does not
// answer at the moment counts as one that can.
func (s Source) SignsURLs(ctx context.Context, life time.Duration) (inStore, signs bool) {
	b, ok := s.FS.(bucket.Bucket)
	if !ok {
		return false, false
	}
	_, err := b.SignedURL(ctx, "modules", life)
	return true, !errors.Is(err, errors.ErrUnsupported)
}
