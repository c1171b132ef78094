//go:build darwin || freebsd || netbsd

package tree

import (
	"io/fs"
	"syscall"
	"time"
)

// identity returns the inode of a file and when it last changed, see
// identity_linux.go.
func identity(info fs.FileInfo) (inode uint64, changed time.Time) {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return s.Ino, time.Unix(s.Ctimespec.Unix())
	}
	return 0, time.Time{}
}
