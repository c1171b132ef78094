//go:build unix

package access

import (
	"io/fs"
	"os"
	"syscall"
)

func keepTokensOwner(temporary *os.File, info fs.FileInfo) error {
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
