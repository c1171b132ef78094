package tree

import (
	"os"

	"golang.org/x/sys/unix"
)

// renameExclusive renames what has a name in one folder to a name in another one, unless
// something has that.
func renameExclusive(fromDir *os.File, from string, toDir *os.File, to string) error {
	return unix.RenameatxNp(int(fromDir.Fd()), from, int(toDir.Fd()), to, unix.RENAME_EXCL)
}
