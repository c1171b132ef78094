package tree

import (
	"context"
	"hash/fnv"
	"io"
	"io/fs"
	"time"
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

// BucketOf returns the Bucket behind a file system, if there is one. Caddy hides the Bucket
// behind a wrapper whose only method is Open; the file of the root directory that Open
// returns knows its file system.
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

// contentTag returns a number for the ETag of a file in a Bucket, and zero for any other
// file. It takes the place of the inode of a file on a disk: a file that replaces another
// has a different number.
func contentTag(info fs.FileInfo) uint64 {
	tagged, ok := info.(interface{ ETag() string })
	if !ok {
		return 0
	}
	h := fnv.New64a()
	io.WriteString(h, tagged.ETag())
	return h.Sum64()
}
