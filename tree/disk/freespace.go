package disk

import (
	"errors"
	"io/fs"
	"path/filepath"
)

// FreeSpace returns how many bytes the server may still write to the disk of a directory,
// which need not exist yet. The error wraps errors.ErrUnsupported on systems that have no call
// for it.
func FreeSpace(dir string) (int64, error) {
	for {
		free, err := freeSpaceOn(dir)
		parent := filepath.Dir(dir)
		if !errors.Is(err, fs.ErrNotExist) || parent == dir {
			return free, err
		}
		dir = parent
	}
}
