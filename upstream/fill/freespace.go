package fill

import (
	"errors"
	"io/fs"
	"path/filepath"
)

// FreeSpace returns how many bytes the server may still write to the disk that a
// directory is on, or will be on if it does not exist yet. The error wraps
// errors.ErrUnsupported on systems that cannot be asked.
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
