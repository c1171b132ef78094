package tree

import (
	"context"
	"crypto/rand"
	"io/fs"
	"path"
	"strings"

	"github.com/spf13/afero"
)

// Temporary names begin with a dot, so that scans ignore them. Files that are locked have a
// suffix of their own, since their lock tells whether they are in use.
const (
	temporarySuffix = ".tmp"
	lockedSuffix    = ".part"
	temporaryText   = 10 // characters of rand.Text
)

// TemporaryName returns a unique name beside name, for a folder that is renamed to
// name when it is complete. If that never happens, RemoveTemporaries removes it.
func TemporaryName(name string) string { return temporaryName(name, temporarySuffix) }

// LockedName is TemporaryName for a file that is locked while it arrives.
func LockedName(name string) string { return temporaryName(name, lockedSuffix) }

func temporaryName(name, suffix string) string {
	return path.Join(path.Dir(name), "."+path.Base(name)+"."+rand.Text()[:temporaryText]+suffix)
}

// IsTemporary reports whether a file or folder of that name is a temporary one of this
// package. Other programs may have hidden files with the same suffixes.
func IsTemporary(name string) bool {
	return hasTemporaryName(name, temporarySuffix) || IsLockedName(name)
}

// IsLockedName reports whether a name is one of LockedName.
func IsLockedName(name string) bool { return hasTemporaryName(name, lockedSuffix) }

func hasTemporaryName(name, suffix string) bool {
	rest, ends := strings.CutSuffix(name, suffix)
	rest, hidden := strings.CutPrefix(rest, ".")
	dot := strings.LastIndexByte(rest, '.')
	return ends && hidden && dot > 0 && len(rest)-dot-1 == temporaryText &&
		strings.Trim(rest[dot+1:], "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") == ""
}

// A TemporaryFile is an unfinished file in a part of a tree, under a temporary name that
// scans ignore. If the part lies in a Bucket, the file is on the local disk. It ends with
// Rename, Create or Discard, and not with Close. One goroutine uses it at a time, but what has
// been written can be read by ReadAt from others.
type TemporaryFile interface {
	afero.File // errors of Write are StorageErrors

	// SyncAhead is called after the last Write, if Rename or Create is not called at once.
	// All bytes begin to go to the disk, and Rename or Create need not wait for as many.
	SyncAhead()

	// Rename gives the file its final name, a path in its part, once all of it is on the
	// disk, and returns the information about the renamed file. It replaces a file of that
	// name. The error is a StorageError, after which the file is discarded; or ErrChanged if
	// another file has taken the name immediately; or the error of ctx, which also ends
	// sending the file to a Bucket.
	Rename(ctx context.Context, name string) (fs.FileInfo, error)

	// Create is Rename for a name that is free: it never replaces a file, even if another
	// process takes the name at this moment. Then the error is ErrChanged, or ErrReserved if
	// that process has not written anything yet.
	Create(ctx context.Context, name string) (fs.FileInfo, error)

	// Discard removes the file, and the folders that were made for it if they are empty,
	// since clients may name any provider. After Rename or Create it does nothing.
	Discard()
}
