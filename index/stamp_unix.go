//go:build unix

package index

import (
	"io/fs"
	"syscall"
	"time"
)

// identity tells a file that was replaced or rewritten from one that was not,
// also when the new one has the old one's size and time: the inode changes with
// the one, the time of the last change to the inode with the other.
func identity(info fs.FileInfo) (inode uint64, changed time.Time) {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return s.Ino, changeTime(s)
	}
	return 0, time.Time{}
}
