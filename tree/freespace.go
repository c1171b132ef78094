package tree

import (
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// FreeSpace returns how many bytes of providers or modules the server may still write to the
// disk of the directory, which need not exist yet. The error wraps errors.ErrUnsupported on
// systems that have no call for it.
func (d Directories) FreeSpace(a address.Address) (int64, error) {
	if a.IsModule() {
		return freeSpace(d.Paths()[2])
	}
	return freeSpace(d.Paths()[1])
}

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
