package module

import (
	"errors"
	"io/fs"
	"path/filepath"
)

// FreeSpace returns how many bytes the process may still write to the disk of a
// folder, which need not exist yet. The error is errors.ErrUnsupported where the
// system does not tell.
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
