package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// ReplaceFile gives a file of a user its content: after a crash there is the old file or the new
// one. The new one can be read by its owner alone, unless prepare changes that before it takes its
// place. prepare may be nil.
//
// google/renameio is not used as it is not available on Windows, and does not sync the directory.
func ReplaceFile(name string, content []byte, prepare func(*os.File) error) error {
	err := RewriteFile(name, func(fresh *os.File) error {
		_, err := fresh.Write(content)
		if err == nil && prepare != nil {
			err = prepare(fresh)
		}
		if err == nil {
			err = fresh.Sync()
		}
		return err
	})
	if err != nil {
		return err
	}
	// A revoked token must not come back after a power failure. Not every system can sync a
	// directory.
	if d, err := os.Open(filepath.Dir(name)); err == nil {
		_ = d.Sync()
		d.Close()
	}
	return nil
}

// RewriteFile is ReplaceFile for a file that may be lost, or damaged, when the power fails: it syncs
// nothing.
func RewriteFile(name string, write func(*os.File) error) error {
	temporary, err := os.CreateTemp(filepath.Dir(name), temporaryOf(name)) // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name()) // fails after the rename, as it should
	if err := errors.Join(write(temporary), temporary.Close()); err != nil {
		return err
	}
	return os.Rename(temporary.Name(), name)
}

// temporaryOf is the pattern for the names of temporary files that take the place of a file.
func temporaryOf(name string) string { return "." + filepath.Base(name) + "-*" }

// RemoveTemporariesOf removes the temporary files that a crash has left of writing a file.
func RemoveTemporariesOf(name string) {
	left, _ := filepath.Glob(filepath.Join(filepath.Dir(name), temporaryOf(name)))
	for _, name := range left {
		// A recent file may be in use by another process.
		if info, err := os.Stat(name); err == nil && time.Since(info.ModTime()) > time.Hour {
			os.Remove(name)
		}
	}
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
