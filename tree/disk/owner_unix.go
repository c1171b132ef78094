//go:build unix

package disk

import (
	"io/fs"
	"syscall"
)

// Owner returns the owner and the group of a file. ok is false if they are not known.
func Owner(info fs.FileInfo) (uid, gid int, ok bool) {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, false
	}
	return int(s.Uid), int(s.Gid), true
}
