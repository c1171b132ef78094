// Package scratch has folders for files that are needed for a moment. A module is fetched with all files of
// its repository, which may be far more than the files that are kept. They are stored outside of the tree,
// among the temporary files of the system.
package scratch

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

const (
	prefix    = "terraform-registry-module-"
	lockName  = "lock"  // locked for as long as the scratch folder is in use
	filesName = "files" // of the module
)

// unlocked is the age at which a scratch folder without a lock is certainly a
// leftover, and not a folder that is being made.
const unlocked = time.Hour

// A Folder is a scratch folder, until it is removed.
type Folder struct {
	dir  string
	lock *flock.Flock
}

// New makes a scratch folder.
func New() (*Folder, error) {
	dir, err := os.MkdirTemp("", prefix)
	if err != nil {
		return nil, tree.StorageError(err)
	}
	s := &Folder{dir: dir, lock: flock.New(filepath.Join(dir, lockName))}
	if _, err = s.lock.TryLock(); errors.Is(err, errors.ErrUnsupported) {
		err = nil
	}
	if err == nil {
		err = os.Mkdir(s.Files(), 0o700)
	}
	if err != nil {
		s.Remove()
		return nil, tree.StorageError(err)
	}
	return s, nil
}

// Files returns the path of the folder for the files, which is empty at first.
func (s *Folder) Files() string { return filepath.Join(s.dir, filesName) }

// Remove removes the folder with everything in it.
func (s *Folder) Remove() {
	s.lock.Close()
	removeWritable(s.dir)
}

// removeWritable removes a folder with everything in it. Fetched files may include
// read-only folders.
func removeWritable(dir string) error {
	err := os.RemoveAll(dir)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			os.Chmod(name, 0o700)
		}
		return nil
	})
	return os.RemoveAll(dir)
}

// RemoveUnused removes the scratch folders of killed processes, and returns their
// number. Folders in use are locked.
func RemoveUnused(ctx context.Context) (removed int) {
	entries, _ := os.ReadDir(os.TempDir())
	for _, e := range entries {
		if ctx.Err() != nil {
			break
		}
		if e.IsDir() && strings.HasPrefix(e.Name(), prefix) && removeIfUnused(filepath.Join(os.TempDir(), e.Name()), e) {
			removed++
		}
	}
	return removed
}

func removeIfUnused(dir string, e fs.DirEntry) (removed bool) {
	name := filepath.Join(dir, lockName)
	if _, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) { // its process may be about to make the lock
		info, err := e.Info()
		return err == nil && time.Since(info.ModTime()) >= unlocked && removeWritable(dir) == nil
	}
	lock := flock.New(name, flock.SetFlag(os.O_RDWR))
	locked, err := lock.TryLock()
	lock.Close()
	return err == nil && locked && removeWritable(dir) == nil
}
