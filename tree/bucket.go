package tree

import (
	"context"
	"hash/fnv"
	"io"
	"io/fs"
	"time"
)

// A Bucket is a file system whose files are the objects of an object store, as
// `caddy.fs.blob` provides it. Its methods only have types of the standard library, so
// that a file system need not import this package to be one.
//
// Names are those of fs.FS. A directory exists if there is a file below it. The
// fs.FileInfo of a file has a method ETag() string, which identifies its content. An open
// file seeks, reads at an offset, and goes on being the one that was opened: if another
// one replaces it, reading fails. An
// error wraps fs.ErrNotExist or fs.ErrExist only if the store said so; every other one
// is a failure of the store.
type Bucket interface {
	fs.StatFS
	fs.ReadDirFS

	// Files calls visit for every file below a directory, in the order of their names,
	// and ends with its first error. The store is asked once for a thousand files,
	// however many directories they lie in. A directory without files is no error.
	Files(ctx context.Context, dir string, visit func(name string, info fs.FileInfo) error) error

	// Create writes a file that must not exist: if it does, also because another
	// instance is faster, the store refuses and the error wraps fs.ErrExist. The file
	// appears whole or not at all.
	Create(ctx context.Context, name string, content io.Reader) (fs.FileInfo, error)

	// Replace is Create for a file that may exist.
	Replace(ctx context.Context, name string, content io.Reader) (fs.FileInfo, error)

	// Copy has the store copy a file, replacing another one.
	Copy(ctx context.Context, from, to string) error

	// Remove removes a file. That it does not exist is no error.
	Remove(ctx context.Context, name string) error

	// SignedURL returns a URL under which the store gives a file to anyone for so long,
	// by GET only. The error wraps errors.ErrUnsupported if the store has no such URLs.
	SignedURL(ctx context.Context, name string, life time.Duration) (string, error)
}

// BucketOf returns the Bucket behind a file system, if it is one. Caddy hides it behind a
// wrapper that has nothing but Open; through it, the file of the root directory knows
// its file system.
func BucketOf(fsys fs.FS) (Bucket, bool) {
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

// contentTag returns a number for the ETag of a file in a Bucket, zero for any other
// file. It stands where a file on a disk has its inode: a file that replaces another has
// a different one.
func contentTag(info fs.FileInfo) uint64 {
	tagged, ok := info.(interface{ ETag() string })
	if !ok {
		return 0
	}
	h := fnv.New64a()
	io.WriteString(h, tagged.ETag())
	return h.Sum64()
}
