//go:build !linux

package disk

import (
	"io/fs"
	"os"

	"github.com/spf13/afero"
)

// openBeneath always fails, since this system has no such call.
func openBeneath(*os.File, string) *os.File { return nil }

// readEntries is Readdir for all entries of a directory. Their names may share memory.
func readEntries(f afero.File) ([]fs.FileInfo, error) { return f.Readdir(-1) }
