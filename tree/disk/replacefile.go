package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// ReplaceFile gives a file of a user its content: after a crash there is the old file or the new
// one. The new one can be read by its owner alone, unless prepare changes that before it takes its
// place. prepare may be nil.
//
// google/renameio is not used as it is not available on Windows, and does not sync the directory.
func ReplaceFile(name string, content []byte, prepare func(*os.File) error) error {
	dir := filepath.Dir(name)
	temporary, err := os.CreateTemp(dir, "."+filepath.Base(name)+"-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name()) // fails after the rename, as it should
	_, err = temporary.Write(content)
	if err == nil && prepare != nil {
		err = prepare(temporary)
	}
	if err == nil {
		err = temporary.Sync()
	}
	if closed := temporary.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(temporary.Name(), name)
	}
	if err != nil {
		return err
	}
	// A revoked token must not come back after a power failure. Not every system can sync a
	// directory.
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync()
		d.Close()
	}
	return nil
}

// LinkTarget returns the name of the file that a symbolic link leads to, and whether there is no such
// file. For a file that is no link, or is missing, it is the file's own name.
func LinkTarget(name string) (target string, dangling bool, err error) {
	found, err := filepath.EvalSymlinks(name)
	if !errors.Is(err, fs.ErrNotExist) {
		return found, false, err
	}
	switch info, err := os.Lstat(name); {
	case errors.Is(err, fs.ErrNotExist):
		return name, false, nil
	case err != nil || info.Mode().Type() != fs.ModeSymlink:
		return name, false, err
	}
	target, err = os.Readlink(name)
	if err == nil && !filepath.IsAbs(target) {
		target = filepath.Join(filepath.Dir(name), target)
	}
	return target, true, err
}
