//go:build !unix

package tree

import (
	"io/fs"
	"time"
)

// identity is not known here; size and time have to do.
func identity(fs.FileInfo) (inode uint64, changed time.Time) { return 0, time.Time{} }

// NetworkFileSystem is not known here; the periodic scan finds what raises no
// event.
func NetworkFileSystem(string) string { return "" }
