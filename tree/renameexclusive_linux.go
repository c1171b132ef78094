package tree

import (
	"os"

	"golang.org/x/sys/unix"
)

// renameExclusive renames what has a name in one folder to a name in another one, unless
// something has that. NFS, and some file systems of user space, have no such rename.
func renameExclusive(fromDir *os.File, from string, toDir *os.File, to string) error {
	return retried(func() error {
		return unix.Renameat2(int(fromDir.Fd()), from, int(toDir.Fd()), to, unix.RENAME_NOREPLACE)
	})
}
