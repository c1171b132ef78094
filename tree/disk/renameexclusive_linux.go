package disk

import (
	"os"

	"golang.org/x/sys/unix"
)

// renameExclusive renames a file or folder from one folder to another, unless the new name
// is taken. NFS and some FUSE file systems do not support it.
func renameExclusive(fromDir *os.File, from string, toDir *os.File, to string) error {
	return retried(func() error {
		return unix.Renameat2(int(fromDir.Fd()), from, int(toDir.Fd()), to, unix.RENAME_NOREPLACE)
	})
}
