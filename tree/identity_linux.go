package tree

import (
	"io/fs"
	"syscall"
	"time"
)

// identity returns the inode of a file and its change time. They reveal that a file was
// replaced or rewritten even if the new file has the same size and time: replacing a file
// changes the inode, and rewriting it changes the change time.
func identity(info fs.FileInfo) (inode uint64, changed time.Time) {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return s.Ino, time.Unix(s.Ctim.Unix())
	}
	return 0, time.Time{}
}
