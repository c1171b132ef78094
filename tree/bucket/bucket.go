// Package bucket has parts of a tree in an object store.
package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// A Bucket is a file system whose files are the objects of an object store, such as
// `caddy.fs.blob`. Its methods only use types of the standard library, so that a file system
// can implement it without importing this package.
//
// Names are names of fs.FS. A directory exists if there is a file below it. The fs.FileInfo
// of a file has a method ETag() string, which identifies its content. An open file supports
// seeking and reading at an offset. It stays the file that was opened: if another file
// replaces it, reading fails. An error wraps fs.ErrNotExist or fs.ErrExist only if the store
// said so; every other error is a failure of the store.
//
// The fs.FileInfo that Stat returns may have a method ContentEncoding() string: the encoding
// that the store's header names if others get the file from it. The Bucket's own readers get
// the bytes as they are stored.
type Bucket interface {
	fs.StatFS
	fs.ReadDirFS

	// Files calls visit for every file below a directory, in the order of their names, and
	// stops at the first error of visit. One request to the store lists a thousand files,
	// however many directories they lie in. A directory without files is no error.
	Files(ctx context.Context, dir string, visit func(name string, info fs.FileInfo) error) error

	// Create writes a file that must not exist. If it exists, even because another instance
	// was faster, the store refuses and the error wraps fs.ErrExist. The file appears whole
	// or not at all.
	Create(ctx context.Context, name string, content io.Reader) (fs.FileInfo, error)

	// Replace is Create for a file that may exist already.
	Replace(ctx context.Context, name string, content io.Reader) (fs.FileInfo, error)

	// Copy has the store copy a file. An existing file of the new name is replaced.
	Copy(ctx context.Context, from, to string) error

	// Remove removes a file. Removing a file that does not exist is no error.
	Remove(ctx context.Context, name string) error

	// SignedURL returns a URL at which anyone can GET a file from the store during its life.
	// The error wraps errors.ErrUnsupported if the store has no such URLs.
	SignedURL(ctx context.Context, name string, life time.Duration) (string, error)
}

// From returns the Bucket behind a file system, if there is one. Caddy hides the Bucket
// behind a wrapper whose only method is Open; the file of the root directory that Open
// returns knows its file system.
func From(fsys fs.FS) (Bucket, bool) {
	if b, ok := fsys.(Bucket); ok {
		return b, true
	}
	root, err := fsys.Open(".")
	if err != nil {
		return nil, false
	}
	defer root.Close()
	of, ok := root.(interface{ FileSystem() fs.FS })
	if !ok {
		return nil, false
	}
	b, ok := of.FileSystem().(Bucket)
	return b, ok
}

// storeError classifies an error of a Bucket. It returns the store's statements about a file
// unchanged: that it exists, that it does not exist, or that it may not be read. Everything
// else becomes a tree.ErrStore.
func storeError(err error) error {
	switch {
	case err == nil, err == io.EOF:
		return err
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrExist), errors.Is(err, fs.ErrPermission), errors.Is(err, context.Canceled), errors.Is(err, tree.ErrStore):
		return err
	}
	return fmt.Errorf("%w: %w", tree.ErrStore, tree.WithoutPath(err))
}

// An object is an open file of a Bucket. It remembers that reading failed: code that reads
// an archive would take an error, or an early end, for damage of the archive.
type object struct {
	afero.File
	rest   int64 // bytes that Read has not returned yet
	failed error
}

// Read implements io.Reader.
func (o *object) Read(p []byte) (int, error) {
	n, err := o.File.Read(p)
	if o.rest -= int64(n); err == io.EOF && o.rest > 0 {
		err = io.ErrUnexpectedEOF
	}
	return n, o.note(err)
}

// Seek implements io.Seeker.
func (o *object) Seek(offset int64, whence int) (int64, error) {
	at, err := o.File.Seek(offset, whence)
	if info, statErr := o.File.Stat(); statErr == nil {
		o.rest = info.Size() - at
	}
	return at, o.note(err)
}

// ReadAt implements io.ReaderAt.
func (o *object) ReadAt(p []byte, offset int64) (int, error) {
	n, err := o.File.ReadAt(p, offset)
	return n, o.note(err)
}

// Failure returns the error that reading the file failed with, for tree.ReadFailure.
func (o *object) Failure() error { return o.failed }

func (o *object) note(err error) error {
	if err = storeError(err); err != nil && err != io.EOF {
		o.failed = err
	}
	return err
}
