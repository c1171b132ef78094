package access

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// replaceTokens replaces a file at once: after a crash there is the old file or
// the new one. Info is that of the old one, whose owner and mode stay; nil if
// there is none.
func replaceTokens(path string, content []byte, info fs.FileInfo) error {
	dir := filepath.Dir(path)
	temporary, err := os.CreateTemp(dir, "."+filepath.Base(path)+"-*") // which only the owner may read
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name()) // it is gone by then if all went well
	if err := writeTokens(temporary, content, info); err != nil {
		return err
	}
	if err := os.Rename(temporary.Name(), path); err != nil {
		return err
	}
	// So that a revoked token does not come back with a power failure. Not every
	// system can do that with a directory.
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync()
		d.Close()
	}
	return nil
}

func writeTokens(temporary *os.File, content []byte, info fs.FileInfo) error {
	_, err := temporary.Write(content)
	if err == nil && info != nil {
		err = keepTokensAccess(temporary, info)
	}
	if err == nil {
		err = temporary.Sync()
	}
	if closed := temporary.Close(); err == nil {
		err = closed
	}
	return err
}

// keepTokensAccess gives the file the owner and the mode of the one it replaces.
// The owner comes first, so that nobody else may read it in between. A server
// that could not read its tokens any more would be worse than no edit.
func keepTokensAccess(temporary *os.File, info fs.FileInfo) error {
	if err := keepTokensOwner(temporary, info); err != nil {
		return fmt.Errorf("the file would no longer belong to its owner, edit it as the owner: %w", err)
	}
	return temporary.Chmod(info.Mode().Perm())
}
