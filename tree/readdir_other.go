//go:build !linux

package tree

import (
	"io/fs"

	"github.com/spf13/afero"
)

// readEntries is Readdir for all entries of a directory. Their names may share memory.
func readEntries(f afero.File) ([]fs.FileInfo, error) { return f.Readdir(-1) }
