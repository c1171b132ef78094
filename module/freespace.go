package module

import (
	"errors"
	"io/fs"
	"path/filepath"
)

// freeSpace is freeSpaceOn of a folder that may not be there yet.
func freeSpace(dir string) (int64, error) {
	for {
		free, err := freeSpaceOn(dir)
		parent := filepath.Dir(dir)
		if !errors.Is(err, fs.ErrNotExist) || parent == dir {
			return free, err
		}
		dir = parent
	}
}
