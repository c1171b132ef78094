package tree

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// openBeneath opens a file or directory below dir for reading, with the rules of os.Root:
// symlinks are followed inside dir, and symlinks that leave it or are absolute are refused.
// It takes a single system call, where os.Root needs two for each directory in the name. It
// returns nil whenever that fails, even because the kernel is older than 5.6 or a sandbox
// forbids the call. os.Root then says why.
func openBeneath(dir *os.File, name string) *os.File {
	if dir == nil {
		return nil
	}
	fd, err := unix.Openat2(int(dir.Fd()), name, &unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS,
	})
	runtime.KeepAlive(dir)
	if err != nil {
		return nil
	}
	return os.NewFile(uintptr(fd), name)
}
