// Package source opens trees: it knows where one lies, and which storage that is.
package source

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/bucket"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/disk"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/iofs"
)

// Directories locate a tree. Relative directories lie under Root, and an empty directory has
// its default name there.
type Directories struct {
	Root, Providers, Modules, Keys string
}

// Open opens the tree on the local disk. Parts that lie under Root share its boundary, so a
// symlink may lead from one part to another but not out of Root; a part elsewhere has its
// own boundary. A missing root is an error, and so is a missing part elsewhere; a missing
// part under the root is empty.
func (d Directories) Open() (tree.Tree, error) { return d.open(disk.Open) }

// OpenReadOnly is Open for a tree that is not written to. Nothing written would be lost: all
// that is missing is empty.
func (d Directories) OpenReadOnly() (tree.Tree, error) { return d.open(disk.OpenReadOnly) }

// parts returns the directories of providers, modules and keys.
func (d Directories) parts() [3]string {
	return [3]string{cmp.Or(d.Providers, "providers"), cmp.Or(d.Modules, "modules"), cmp.Or(d.Keys, "keys")}
}

// open opens the tree by open, which opens a directory of the local disk.
func (d Directories) open(open func(dir string) (tree.Part, error)) (t tree.Tree, err error) {
	if t.Root, err = open(d.Root); err != nil {
		return tree.Tree{}, fmt.Errorf("opening the root: %w", tree.WithoutPath(err))
	}
	names, parts := Directories{}.parts(), []*tree.Part{&t.Providers, &t.Modules, &t.Keys}
	for i, dir := range d.parts() {
		if !filepath.IsAbs(dir) {
			*parts[i] = t.Root.Sub(filepath.ToSlash(dir))
		} else if *parts[i], err = open(dir); err != nil { // even if it is missing: files written elsewhere would be lost
			return tree.Tree{}, fmt.Errorf("opening %s: %w", names[i], tree.WithoutPath(err))
		}
	}
	return t, nil
}

// Paths returns where the tree begins on the local disk: the root, and its parts. Symlinks
// may lead to them, and they need not exist yet.
func (d Directories) Paths() []string {
	paths := []string{d.Root}
	for _, dir := range d.parts() {
		paths = append(paths, diskPaths{}.join(d.Root, dir))
	}
	return paths
}

// OpenIn opens the tree on a file system that has slash-separated paths and no absolute
// paths.
func (d Directories) OpenIn(fsys fs.FS) (tree.Tree, error) {
	if b, ok := fsys.(bucket.Bucket); ok {
		return d.treeOf(bucket.NewFolder(b)), nil // an empty root does not exist there, which is no mistake
	}
	info, err := fs.Stat(fsys, nameIn(d.Root))
	if err != nil {
		return tree.Tree{}, fmt.Errorf("opening the root: %w", tree.WithoutPath(err))
	}
	if !info.IsDir() {
		return tree.Tree{}, errors.New("opening the root: it is not a directory")
	}
	return d.treeOf(iofs.NewFolder(fsys)), nil
}

// nameIn returns a directory as a name of fs.FS.
func nameIn(dir string) string { return path.Clean(strings.Trim(filepath.ToSlash(dir), "/")) }

// partsIn returns the parts as names of fs.FS: providers, modules and keys.
func (d Directories) partsIn() (names [3]string) {
	for i, dir := range d.parts() {
		names[i] = fileSystemPaths{}.join(nameIn(d.Root), filepath.ToSlash(dir))
	}
	return names
}

// treeOf returns the tree in a storage whose names are names of fs.FS.
func (d Directories) treeOf(s tree.Storage) tree.Tree {
	part := func(dir string) tree.Part { return tree.Part{Storage: s.Sub(dir)} }
	parts := d.partsIn()
	return tree.Tree{Providers: part(parts[0]), Modules: part(parts[1]), Keys: part(parts[2]), Root: part(nameIn(d.Root))}
}

// Listed returns the tree in these directories of a Bucket, for scans. Nothing is listed
// before the first Open.
func (d Directories) Listed(b bucket.Bucket) *bucket.ListedTree {
	return bucket.NewListedTree(b, d.treeOf(bucket.NewFolder(b)))
}

// FreeSpace returns how many bytes of providers or modules the server may still write to the
// disk of the directory, which need not exist yet. The error wraps errors.ErrUnsupported on
// systems that have no call for it.
func (d Directories) FreeSpace(a address.Address) (int64, error) {
	if a.IsModule() {
		return disk.FreeSpace(d.Paths()[2])
	}
	return disk.FreeSpace(d.Paths()[1])
}
