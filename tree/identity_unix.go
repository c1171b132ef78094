//go:build unix && !linux && !darwin && !freebsd && !netbsd

package tree

import (
	"io/fs"
	"syscall"
	"time"
)

// identity returns the inode of a file. The field for its change time has another name on
// each of these systems; the inode and the modification time must suffice.
func identity(info fs.FileInfo) (inode uint64, changed time.Time) {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(s.Ino), time.Time{}
	}
	return 0, time.Time{}
}
