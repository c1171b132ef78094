//go:build !unix

package tokenfile

import (
	"io/fs"
	"os"
)

// copyOwner does nothing: a file inherits its permissions from its directory.
func copyOwner(*os.File, fs.FileInfo) error { return nil }
