package module

import (
	"errors"
	"io/fs"
	"path/filepath"
)

// FreeSpace is freeSpaceOn of a folder that may not be there yet.
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
