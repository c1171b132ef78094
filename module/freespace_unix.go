//go:build linux || darwin

package module

import "golang.org/x/sys/unix"

// freeSpaceOn returns how many bytes the server may still write to the disk that a
// folder is on.
func freeSpaceOn(dir string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * int64(s.Bsize), nil
}
