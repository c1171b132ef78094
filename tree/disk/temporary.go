package disk

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"runtime"
	"syscall"
	"time"

	"github.com/gofrs/flock"
	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// Files are written under a temporary name and then renamed. renameio does the same, but
// only for paths of the operating system: a tree is an afero.Fs that does not leave its
// root, and large files are locked while they arrive.

// syncEvery is how many bytes are written before the disk is told to begin, so that the last
// sync does not have to write a whole package.
const syncEvery = 32 << 20

// A temporaryFile is a tree.TemporaryFile on a disk.
type temporaryFile struct {
	afero.File
	disk    Folder
	name    string       // in the part
	lock    *flock.Flock // nil: the file system has no locks
	created []string     // folders, the innermost first
	ended   bool

	unsynced int64
	syncing  chan error // nil: no sync is under way
	failed   error      // of an earlier sync, which a later one does not report
}

// maxAttempts is how often creating a temporary file is tried. Another instance may take the
// file for a leftover in the moment before it is locked, and may discard its folder in the
// moment after it was made; then creation starts over. After this many attempts there is
// another reason: the folder is no longer in the tree.
const maxAttempts = 5

// NewTemporary implements tree.Storage.
func (d Folder) NewTemporary(ctx context.Context, name string) (tree.TemporaryFile, error) {
	var made []string
	for range maxAttempts {
		if err := ctx.Err(); err != nil {
			d.removeEmpty(made)
			return nil, err
		}
		further, err := d.makeFolder(path.Dir(name))
		made = append(further, made...)
		t := &temporaryFile{disk: d, name: tree.LockedName(name), created: made}
		if err == nil {
			t.File, err = d.Fs.OpenFile(d.path(t.name), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
		}
		switch {
		case errors.Is(err, fs.ErrNotExist): // another instance has discarded the folder, or the root is gone
			continue
		case err != nil:
			d.removeEmpty(made)
			return nil, tree.StorageError(err)
		}
		locked, err := t.tryLock()
		if err == nil && locked {
			err = d.adopt(t.name)
		}
		if err == nil && locked {
			return t, nil
		}
		t.Discard()
		if err != nil {
			return nil, tree.StorageError(err)
		}
		made = nil
	}
	d.removeEmpty(made)
	return nil, tree.ErrReplaced
}

// removeEmpty removes folders that were made for a file, the innermost first, unless they have
// other files by now.
func (d Folder) removeEmpty(folders []string) {
	for _, dir := range folders {
		tree.Part{Storage: d}.RemoveIfEmpty(dir)
	}
}

// lockPath is the path for the lock of a file; empty if there are no locks. Windows
// does not rename a file that is locked.
func (d Folder) lockPath(name string) string {
	if d.Disk == "" || runtime.GOOS == "windows" {
		return ""
	}
	return d.diskPath(name)
}

// tryLock locks the file, unless another instance has locked or removed it. Only a file system
// without locks does without: after any other failure the file could be taken for a leftover
// while it arrives.
func (t *temporaryFile) tryLock() (locked bool, err error) {
	disk := t.disk.lockPath(t.name)
	if disk == "" {
		return true, nil
	}
	lock := flock.New(disk, flock.SetFlag(os.O_RDWR))
	switch locked, err = lock.TryLock(); {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil && hasNoLocks(err):
		return true, nil
	case err != nil:
		return false, err
	case !locked:
		return false, nil
	}
	if _, err := os.Stat(disk); errors.Is(err, fs.ErrNotExist) {
		lock.Close()
		return false, nil
	}
	t.lock = lock
	return true, nil
}

// Write implements io.Writer. Its errors are StorageErrors.
func (t *temporaryFile) Write(b []byte) (int, error) {
	n, err := t.File.Write(b)
	if t.unsynced += int64(n); t.unsynced >= syncEvery {
		t.syncAhead()
	}
	return n, tree.StorageError(err)
}

// syncAhead syncs the written bytes in the background, unless a sync is under way.
func (t *temporaryFile) syncAhead() {
	if t.syncing != nil {
		select {
		case t.failed = <-t.syncing:
			t.syncing = nil
		default:
			return
		}
	}
	t.SyncAhead()
}

// SyncAhead implements tree.TemporaryFile. If a sync is under way, the next one follows it.
func (t *temporaryFile) SyncAhead() {
	if t.failed != nil {
		return
	}
	before, done := t.syncing, make(chan error, 1)
	t.unsynced, t.syncing = 0, done
	go func() {
		if before != nil {
			if err := <-before; err != nil {
				done <- err
				return
			}
		}
		done <- t.File.Sync()
	}()
}

// sync waits until everything is on the disk.
func (t *temporaryFile) sync() error {
	if t.syncing == nil || t.unsynced > 0 {
		t.SyncAhead()
	}
	if t.failed == nil {
		t.failed, t.syncing = <-t.syncing, nil
	}
	return t.failed
}

// Rename implements tree.TemporaryFile.
func (t *temporaryFile) Rename(_ context.Context, name string) (fs.FileInfo, error) {
	return t.giveName(name, t.disk.Move)
}

// Create implements tree.TemporaryFile.
func (t *temporaryFile) Create(_ context.Context, name string) (fs.FileInfo, error) {
	return t.giveName(name, t.disk.place)
}

// giveName finishes a file on a disk by place or move.
func (t *temporaryFile) giveName(name string, give func(from, to string) error) (fs.FileInfo, error) {
	err := t.sync()
	written, statErr := t.File.Stat()
	if err == nil {
		err = statErr
	}
	if closed := t.File.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = give(t.name, name)
	}
	if err != nil {
		t.Discard()
		if errors.Is(err, fs.ErrExist) {
			return nil, tree.ErrChanged
		}
		return nil, tree.StorageError(err)
	}
	t.ended = true
	t.disk.syncFolder(path.Dir(name))
	t.unlock()
	info, err := t.disk.Stat(name)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, tree.StorageError(err)
	case err != nil || !sameFile(info, written) || info.Size() != written.Size():
		return nil, tree.ErrChanged
	}
	return info, nil
}

// sameFile is os.SameFile, for file systems that can tell files apart.
func sameFile(a, b fs.FileInfo) bool { return a.Sys() == nil || os.SameFile(a, b) }

// Discard implements tree.TemporaryFile.
func (t *temporaryFile) Discard() {
	if t.ended {
		return
	}
	t.ended = true
	t.File.Close()
	t.disk.Remove(t.name)
	t.unlock()
	t.disk.removeEmpty(t.created)
}

func (t *temporaryFile) unlock() {
	if t.lock != nil {
		t.lock.Close()
	}
}

// abandonedAfter is the age after which a temporary file is certainly a leftover. A lock
// tells whether a file is in use only where all machines see it, which NFS and FUSE do not
// promise. While a file arrives, each piece of it updates its time; where there are no
// locks, the upload of a client that pauses for longer is removed.
const abandonedAfter = time.Hour

// RemoveTemporaries implements tree.Storage.
func (d Folder) RemoveTemporaries(ctx context.Context, dir string, depth int) (removed int) {
	infos, _ := d.ReadDir(dir) // the next call looks again at a folder that cannot be read now
	for _, e := range infos {
		name := path.Join(dir, e.Name())
		isLocked := tree.IsLockedName(e.Name())
		isUnlocked := tree.IsTemporary(e.Name()) && !isLocked
		gone := false
		switch {
		case ctx.Err() != nil:
			return removed
		case e.IsDir() && isUnlocked:
			gone = abandoned(e) && d.RemoveAll(name) == nil
		case e.IsDir() && depth > 0:
			removed += d.RemoveTemporaries(ctx, name, depth-1)
		case !e.Mode().IsRegular() || !isLocked && !isUnlocked || !abandoned(e):
		case isLocked:
			gone = d.removeUnlocked(name)
		default:
			gone = d.Remove(name) == nil
		}
		if gone {
			removed++
		}
	}
	return removed
}

// hasNoLocks reports whether locking failed because the file system has no locks. After any
// other failure, another instance may hold the lock.
func hasNoLocks(err error) bool {
	return errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.ENOLCK)
}

// removeUnlocked removes a temporaryFile that no instance has locked.
func (d Folder) removeUnlocked(name string) (removed bool) {
	if disk := d.lockPath(name); disk != "" {
		lock := flock.New(disk, flock.SetFlag(os.O_RDWR))
		locked, err := lock.TryLock()
		if !locked && (err == nil || !hasNoLocks(err)) {
			return false
		}
		defer lock.Close()
	}
	return d.Remove(name) == nil
}

func abandoned(info fs.FileInfo) bool { return time.Since(info.ModTime()) >= abandonedAfter }
