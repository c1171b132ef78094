package mapping

import (
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// identify returns the identity of a regular file on a local disk, if it may be mapped.
func identify(f *os.File) (id identity, ok bool) {
	if !addressSpaceIsLarge() {
		return identity{}, false
	}
	err := control(f, func(fd int) error {
		var s unix.Stat_t
		if err := unix.Fstat(fd, &s); err != nil {
			return err
		}
		id = identity{device: uint64(s.Dev), inode: uint64(s.Ino), size: int64(s.Size)}
		ok = s.Mode&unix.S_IFMT == unix.S_IFREG && local(fd)
		return nil
	})
	return id, ok && err == nil
}

// addressSpaceIsLarge reports whether there is room for large files beside the heap.
func addressSpaceIsLarge() bool {
	var limit unix.Rlimit
	return strconv.IntSize == 64 && unix.Getrlimit(unix.RLIMIT_AS, &limit) == nil && limit.Cur == unix.RLIM_INFINITY
}

// local reports whether a file is on a file system that is known to be local, to give each
// file a number of its own, and to map the pages from which it also reads. ZFS copies them, and
// a file on OverlayFS keeps its number when it is copied up, with other pages. Other file systems
// are not mapped, whether they are in the network or not.
func local(fd int) bool {
	var s unix.Statfs_t
	if unix.Fstatfs(fd, &s) != nil {
		return false
	}
	switch uint32(s.Type) { // signed and of another size on some architectures
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC, unix.TMPFS_MAGIC:
		return true
	}
	return false
}

func mapFile(f *os.File, size int64) (b []byte, err error) {
	err = control(f, func(fd int) (err error) {
		b, err = unix.Mmap(fd, 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
		return err
	})
	return b, err
}

func unmap(b []byte) { unix.Munmap(b) } // fails for no mapping of mapFile

// requestPages reads pages into memory and maps them. Linux before 5.14 cannot do that, and
// says so.
func requestPages(b []byte) error { return unix.Madvise(b, unix.MADV_POPULATE_READ) }

// control calls do with the descriptor of a file.
func control(f *os.File, do func(fd int) error) error {
	c, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = c.Control(func(fd uintptr) { failed = do(int(fd)) })
	return errors.Join(err, failed)
}
