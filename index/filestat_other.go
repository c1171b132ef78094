//go:build !unix

package index

import (
	"io/fs"
	"time"
)

// identity is not known here; size and time have to do.
func identity(fs.FileInfo) (inode uint64, changed time.Time) { return 0, time.Time{} }

// networkFileSystem is not known here; the periodic scan finds what raises no
// event.
func networkFileSystem(string) string { return "" }
