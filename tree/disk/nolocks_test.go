package disk

import (
	"errors"
	"io/fs"
	"syscall"
	"testing"
)

func TestWhatSaysThatAFolderHasNoLocks(t *testing.T) {
	for _, test := range []struct {
		rule string
		err  error
		none bool
	}{
		{"the system has no locks", syscall.ENOSYS, true},
		{"the file system has none", syscall.ENOTSUP, true},
		{"it has none for files", syscall.EOPNOTSUPP, true},
		{"it has none of this kind", syscall.EINVAL, true},
		{"its server has none", syscall.ENOLCK, true},
		{"it has none of what is open for reading", syscall.EBADF, true},
		{"the process has too many open files", &fs.PathError{Op: "open", Path: "/srv", Err: syscall.EMFILE}, false},
		{"the system has too many open files", &fs.PathError{Op: "open", Path: "/srv", Err: syscall.ENFILE}, false},
		{"it was interrupted", syscall.EINTR, false},
		{"the disk fails", syscall.EIO, false},
		{"the folder may not be read", &fs.PathError{Op: "open", Path: "/srv", Err: syscall.EACCES}, false},
		{"another process has the lock", ErrLocked, false},
		{"another error", errors.New("x"), false},
	} {
		if none := folderHasNoLocks(test.err); none != test.none {
			t.Errorf("%s: got %v", test.rule, none)
		}
	}
}
