//go:build unix

package watch

import (
	"os"
	"syscall"
)

// directoryAt returns the directory that a name leads to; the zero directory if there is none.
func directoryAt(name string) directory {
	info, err := os.Stat(name)
	if err != nil {
		return directory{}
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return directory{}
	}
	return directory{device: uint64(s.Dev), inode: uint64(s.Ino)}
}
