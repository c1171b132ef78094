package tlog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// A Folder is a Store in a directory of the local disk or of a bucket.
type Folder struct {
	open func() (tree.Part, error)

	mu   sync.Mutex
	part *tree.Part
}

// NewFolder returns the store in a directory, which open opens. It is opened when it is
// needed, and again when another directory has taken its place.
func NewFolder(open func() (tree.Part, error)) *Folder { return &Folder{open: open} }

// maxFile is more than any file of a log has, in bytes.
const maxFile = BundleSize*(MaxLeaf+2) + 1

func (f *Folder) opened() (tree.Part, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.part != nil && f.part.Same() {
		return *f.part, nil
	}
	p, err := f.open()
	if err != nil {
		// A folder that is missing is no log without files: its disk may not be mounted.
		return p, fmt.Errorf("opening the folder of the log: %v", ofLog(tree.StorageError(tree.WithoutPath(err))))
	}
	f.part = &p
	return p, nil
}

// ofLog returns an error of a tree's storage as one of the log's folder: the folder that is
// served, which an operator would look at, has nothing to do with it.
func ofLog(err error) error {
	if errors.Is(err, tree.ErrDiskFull) || errors.Is(err, tree.ErrNotWritable) {
		return folderError{err}
	}
	return err
}

type folderError struct{ error }

func (e folderError) Error() string { return inFolder.Replace(e.error.Error()) }

func (e folderError) Unwrap() error { return e.error }

var inFolder = strings.NewReplacer(
	"the tree cannot be read and written", "the folder of the log cannot be read and written",
	"make room for the tree", "make room for the folder of the log",
)

// Create implements Store.
func (f *Folder) Create(ctx context.Context, name string, content []byte) error {
	p, err := f.opened()
	if err != nil {
		return err
	}
	if err = p.CreateFile(ctx, name, content); errors.Is(err, tree.ErrChanged) {
		return fs.ErrExist
	}
	return ofLog(err)
}

// Read implements Store.
func (f *Folder) Read(_ context.Context, name string) ([]byte, error) {
	p, err := f.opened()
	if err != nil {
		return nil, err
	}
	file, info, err := p.Open(name)
	if err != nil {
		return nil, ofLog(err)
	}
	defer file.Close()
	if err := present(info); err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(file, maxFile))
	switch {
	case err != nil:
		return nil, ofLog(tree.StorageError(err))
	case len(content) == 0: // the size was an older one
		return nil, tree.ErrReserved
	}
	return content, nil
}

// present returns an error for an empty file, which no log has: another instance is about to
// give it its content, or has died before that.
func present(info fs.FileInfo) error {
	switch {
	case tree.Reserved(info):
		return tree.ErrReserved
	case tree.Abandoned(info):
		return fs.ErrNotExist
	}
	return nil
}

// Modified implements Store.
func (f *Folder) Modified(_ context.Context, name string) (t time.Time, err error) {
	p, err := f.opened()
	if err != nil {
		return t, err
	}
	info, err := p.Stat(name)
	if err == nil {
		err = present(info)
	}
	if err != nil {
		return t, ofLog(err)
	}
	return info.ModTime(), nil
}

// List implements Store.
func (f *Folder) List(_ context.Context, dir string) (names []string, err error) {
	p, err := f.opened()
	if err != nil {
		return nil, err
	}
	entries, err := p.Entries(dir)
	for _, e := range entries {
		if !e.IsDir() && !tree.IsTemporary(e.Name) {
			names = append(names, e.Name)
		}
	}
	return names, ofLog(err)
}

// Replace implements Store.
func (f *Folder) Replace(_ context.Context, name string, content []byte) error {
	p, err := f.opened()
	if err != nil {
		return err
	}
	return ofLog(p.WriteFile(name, content))
}

// Remove implements Store.
func (f *Folder) Remove(_ context.Context, name string) error {
	p, err := f.opened()
	if err != nil {
		return err
	}
	return ofLog(tree.StorageError(p.Remove(name)))
}

// depth is more than the depth of the folders of tiles.
const depth = 8

// Sweep implements Store.
func (f *Folder) Sweep(ctx context.Context) error {
	p, err := f.opened()
	if err != nil {
		return err
	}
	p.RemoveTemporaries(ctx, ".", depth)
	return ctx.Err()
}

// Interface guards
var _ Store = (*Folder)(nil)
