//go:build linux || darwin

package disk

import "golang.org/x/sys/unix"

// freeSpaceOn is like FreeSpace, for a directory that exists.
func freeSpaceOn(dir string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * int64(s.Bsize), nil
}
