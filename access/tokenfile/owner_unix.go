//go:build unix

package tokenfile

import (
	"io/fs"
	"os"
	"syscall"
)

// copyOwner gives the temporary file the owner and the group that info has.
func copyOwner(temporary *os.File, info fs.FileInfo) error {
	old, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	now, err := temporary.Stat()
	if err != nil {
		return err
	}
	if is, ok := now.Sys().(*syscall.Stat_t); ok && is.Uid == old.Uid && is.Gid == old.Gid {
		return nil
	}
	return temporary.Chown(int(old.Uid), int(old.Gid))
}
