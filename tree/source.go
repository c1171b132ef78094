package tree

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// A Source is where a tree lies: in directories of the local disk or of a file system. Equal
// sources are the same tree.
type Source struct {
	Directories Directories
	FS          fs.FS // nil: the local disk
}

// Open opens the tree.
func (s Source) Open() (Tree, error) {
	if s.FS != nil {
		return s.Directories.OpenIn(s.FS)
	}
	return s.Directories.Open()
}

// OpenFolder opens a directory beside the tree, which must exist: of the local disk, or of
// the same file system.
func (s Source) OpenFolder(dir string) (Part, error) {
	if s.FS == nil {
		return openPart(dir)
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
	t, dir := s.Directories.on(nil), nameIn(dir)
	return slices.ContainsFunc([]Part{t.Providers, t.Modules, t.Keys}, func(p Part) bool {
		return dir == p.Dir || strings.HasPrefix(dir, p.Dir+"/")
	})
}

// Listed returns the tree for scans where a listing costs less than reading each directory,
// and otherwise nil.
func (s Source) Listed() *ListedTree {
	if b, ok := s.FS.(Bucket); ok {
		return s.Directories.Listed(b)
	}
	return nil
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
	_, inBucket := s.FS.(Bucket)
	return s.FS == nil || inBucket
}

// FreeSpace returns how many bytes of providers or modules this machine may still write: to
// the tree, or to temporary files that are sent to a Bucket.
func (s Source) FreeSpace(a address.Address) (int64, error) {
	if s.FS != nil {
		return freeSpace(os.TempDir())
	}
	return s.Directories.FreeSpace(a)
}

// SignsURLs reports whether the tree lies in an object store, from which others can get files
// without this process, and whether the store can sign URLs for that. A store that does not
// answer at the moment counts as one that can.
func (s Source) SignsURLs(ctx context.Context, life time.Duration) (inStore, signs bool) {
	b, ok := s.FS.(Bucket)
	if !ok {
		return false, false
	}
	_, err := b.SignedURL(ctx, "modules", life)
	return true, !errors.Is(err, errors.ErrUnsupported)
}

// openFor is how long an opened tree is shared. An open tree holds a descriptor until the
// garbage collector closes it. A tree for each request would hold as many descriptors as
// there are requests until then.
const openFor = time.Second

// An Opener opens a tree again and again. It is safe for concurrent use.
type Opener struct {
	open func() (Tree, error)

	mutex   sync.Mutex
	last    Tree
	expires time.Time // zero: last is not open
}

// NewOpener returns an Opener that opens its tree by open.
func NewOpener(open func() (Tree, error)) *Opener { return &Opener{open: open} }

// Tree returns the tree for one piece of work; the caller must not keep it for longer. An
// Opener notices that the root was replaced by a rename after a second, or when Forget is
// called. The error is the error of opening the tree.
func (o *Opener) Tree() (Tree, error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	now := time.Now()
	if now.Before(o.expires) {
		return o.last, nil
	}
	files, err := o.open()
	if err != nil {
		o.last, o.expires = Tree{}, time.Time{}
		return files, err
	}
	o.last, o.expires = files, now.Add(openFor)
	return files, nil
}

// Forget makes the next Tree open the tree again.
func (o *Opener) Forget() {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.last, o.expires = Tree{}, time.Time{}
}
