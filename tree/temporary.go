package tree

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path"
	"runtime"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"github.com/spf13/afero"
)

// Files are written under a temporary name and then renamed. renameio does the same, but
// only for paths of the operating system: a tree is an afero.Fs that does not leave its
// root, and large files are locked while they arrive.

// Temporary names begin with a dot, so that scans ignore them. Files that are locked have a
// suffix of their own, since their lock tells whether they are in use.
const (
	temporarySuffix = ".tmp"
	lockedSuffix    = ".part"
	temporaryText   = 10 // characters of rand.Text
)

// TemporaryName returns a unique name beside name, for a folder that is renamed to
// name when it is complete. If that never happens, RemoveTemporaries removes it.
func TemporaryName(name string) string { return temporaryName(name, temporarySuffix) }

func temporaryName(name, suffix string) string {
	return path.Join(path.Dir(name), "."+path.Base(name)+"."+rand.Text()[:temporaryText]+suffix)
}

// IsTemporary reports whether a file or folder of that name is a temporary one of this
// package. Other programs may have hidden files with the same suffixes.
func IsTemporary(name string) bool {
	return hasTemporaryName(name, temporarySuffix) || hasTemporaryName(name, lockedSuffix)
}

func hasTemporaryName(name, suffix string) bool {
	rest, ends := strings.CutSuffix(name, suffix)
	rest, hidden := strings.CutPrefix(rest, ".")
	dot := strings.LastIndexByte(rest, '.')
	return ends && hidden && dot > 0 && len(rest)-dot-1 == temporaryText &&
		strings.Trim(rest[dot+1:], "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") == ""
}

// create makes a new file and its folders.
func (p Part) create(name string, mode fs.FileMode) (afero.File, error) {
	if err := p.Fs.MkdirAll(path.Join(p.Dir, path.Dir(name)), 0o755); err != nil {
		return nil, err
	}
	return p.Fs.OpenFile(path.Join(p.Dir, name), os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
}

// WriteFile creates or replaces a small file, as a whole or not at all. A replacement keeps
// the mode of the file. The error is a StorageError.
func (p Part) WriteFile(name string, content []byte) error {
	if b := p.Bucket(); b != nil {
		return replace(b, path.Join(p.Dir, name), content)
	}
	mode := fs.FileMode(0o644)
	switch info, err := p.Lookup(name); {
	case err == nil:
		mode = cmp.Or(info.Mode().Perm(), mode)
	case !errors.Is(err, fs.ErrNotExist):
		return StorageError(err)
	}
	temporary := TemporaryName(name)
	f, err := p.create(temporary, mode)
	if err != nil {
		return StorageError(err)
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = p.Fs.Rename(path.Join(p.Dir, temporary), path.Join(p.Dir, name))
	}
	if err != nil {
		p.Fs.Remove(path.Join(p.Dir, temporary))
		return StorageError(err)
	}
	p.SyncFolder(path.Dir(name))
	return nil
}

// SyncFolder makes the names in a folder survive a crash. Not every file system can do so;
// without it, only the names are lost.
func (p Part) SyncFolder(dir string) {
	if p.Bucket() != nil {
		return
	}
	if f, err := p.Fs.Open(path.Join(p.Dir, dir)); err == nil {
		f.Sync()
		f.Close()
	}
}

// syncEvery is how many bytes are written before the disk is told to begin, so that the last
// sync does not have to write a whole package.
const syncEvery = 32 << 20

// A TemporaryFile is an unfinished file in a part of a tree, under a temporary name that
// scans ignore. If the part lies in a Bucket, the file is on the local disk. It ends with
// Rename, Create or Discard, and not with Close. One goroutine uses it at a time.
type TemporaryFile struct {
	afero.File
	part    Part
	bucket  Bucket       // the Bucket to put the file into; nil: the file is in the part already
	name    string       // in the part, or on the local disk for a Bucket; empty if the file has no name
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

// NewTemporary begins a file that will have the given name, a path in the part, and makes
// the folders that are missing. On the local disk a lock tells other instances that the file
// is no leftover, however slowly it arrives. The error is ErrReplaced, a StorageError, or
// the error of ctx.
func (p Part) NewTemporary(ctx context.Context, name string) (*TemporaryFile, error) {
	if p.Bucket() != nil {
		return p.newSpool()
	}
	for range maxAttempts {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		t := &TemporaryFile{part: p, name: temporaryName(name, lockedSuffix), created: p.missingFolders(path.Dir(name))}
		var err error
		switch t.File, err = p.create(t.name, 0o644); {
		case errors.Is(err, fs.ErrNotExist): // another instance has discarded the folder, or the root is gone
			continue
		case err != nil:
			return nil, StorageError(err)
		}
		locked, err := t.tryLock()
		if err == nil && locked {
			return t, nil
		}
		t.Discard()
		if err != nil {
			return nil, StorageError(err)
		}
	}
	return nil, ErrReplaced
}

// missingFolders returns which of a folder and its parents do not exist.
func (p Part) missingFolders(dir string) (folders []string) {
	for ; dir != "."; dir = path.Dir(dir) {
		if _, err := p.Lookup(dir); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		folders = append(folders, dir)
	}
	return folders
}

// lockPath is the path for the lock of a file; empty if there are no locks. Windows
// does not rename a file that is locked.
func (p Part) lockPath(name string) string {
	if p.Disk == "" || runtime.GOOS == "windows" {
		return ""
	}
	return p.DiskPath(name)
}

// tryLock locks the file, unless another instance has locked or removed it.
func (t *TemporaryFile) tryLock() (locked bool, err error) {
	disk := t.part.lockPath(t.name)
	if disk == "" {
		return true, nil
	}
	lock := flock.New(disk, flock.SetFlag(os.O_RDWR))
	switch locked, err = lock.TryLock(); {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return true, nil // a file system without locks
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
func (t *TemporaryFile) Write(b []byte) (int, error) {
	n, err := t.File.Write(b)
	if t.bucket != nil {
		return n, spoolError(err)
	}
	if t.unsynced += int64(n); t.unsynced >= syncEvery {
		t.syncAhead()
	}
	return n, StorageError(err)
}

// syncAhead syncs the written bytes in the background, unless a sync is under way.
func (t *TemporaryFile) syncAhead() {
	if t.syncing != nil {
		select {
		case t.failed = <-t.syncing:
		default:
			return
		}
	}
	if t.failed != nil {
		return
	}
	t.unsynced = 0
	t.syncing = make(chan error, 1)
	go func(done chan<- error) { done <- t.File.Sync() }(t.syncing)
}

// sync waits until everything is on the disk.
func (t *TemporaryFile) sync() error {
	if t.syncing != nil && t.failed == nil {
		t.failed = <-t.syncing
	}
	if t.failed != nil {
		return t.failed
	}
	return t.File.Sync()
}

// Rename gives the file its final name, a path in its part, once all of it is on the disk,
// and returns the information about the renamed file. It replaces a file of that name. The
// error is a StorageError, after which the file is discarded; or ErrChanged if another file
// has taken the name immediately; or the error of ctx, which also ends sending the file to a
// Bucket.
func (t *TemporaryFile) Rename(ctx context.Context, name string) (fs.FileInfo, error) {
	if t.bucket != nil {
		return t.put(ctx, t.bucket.Replace, name)
	}
	return t.giveName(name, t.part.replace)
}

// Create is Rename for a name that is free: it never replaces a file, even if another
// process takes the name at this moment. Then the error is ErrChanged, or ErrReserved if
// that process has not written anything yet.
func (t *TemporaryFile) Create(ctx context.Context, name string) (fs.FileInfo, error) {
	if t.bucket != nil {
		return t.put(ctx, t.bucket.Create, name)
	}
	return t.giveName(name, t.part.place)
}

// giveName finishes a file on a disk by place or replace.
func (t *TemporaryFile) giveName(name string, give func(from, to string) error) (fs.FileInfo, error) {
	err := t.sync()
	written, statErr := t.File.Stat()
	if err == nil {
		err = statErr
	}
	if closed := t.File.Close(); err == nil {
		err = closed
	}
	p := t.part
	if err == nil {
		err = give(t.name, name)
	}
	if err != nil {
		t.Discard()
		if errors.Is(err, fs.ErrExist) {
			return nil, ErrChanged
		}
		return nil, StorageError(err)
	}
	t.ended = true
	p.SyncFolder(path.Dir(name))
	t.unlock()
	info, err := p.Lookup(name)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, StorageError(err)
	case err != nil || !sameFile(info, written) || info.Size() != written.Size():
		return nil, ErrChanged
	}
	return info, nil
}

// replace gives a file its name, and makes the folder of the name.
func (p Part) replace(from, to string) error {
	if err := p.makeFolder(path.Dir(to)); err != nil {
		return err
	}
	return p.Fs.Rename(path.Join(p.Dir, from), path.Join(p.Dir, to))
}

// sameFile is os.SameFile, for file systems that can tell files apart.
func sameFile(a, b fs.FileInfo) bool { return a.Sys() == nil || os.SameFile(a, b) }

// Discard removes the file, and the folders that were made for it if they are empty, since
// clients may name any provider. After Rename it does nothing.
func (t *TemporaryFile) Discard() {
	if t.ended {
		return
	}
	t.ended = true
	if t.bucket != nil {
		t.discardSpool()
		return
	}
	p := t.part
	t.File.Close()
	p.Fs.Remove(path.Join(p.Dir, t.name))
	t.unlock()
	for _, dir := range t.created {
		p.RemoveIfEmpty(dir)
	}
}

func (t *TemporaryFile) unlock() {
	if t.lock != nil {
		t.lock.Close()
	}
}

// abandonedAfter is the age after which a temporary file is certainly a leftover. A lock
// tells whether a file is in use only where all machines see it, which NFS and FUSE do not
// promise. While a file arrives, each piece of it updates its time; where there are no
// locks, the upload of a client that pauses for longer is removed.
const abandonedAfter = time.Hour

// RemoveTemporaries removes the temporary files that killed instances have left in a folder
// and in its subfolders down to depth, and returns their number. It keeps files that are
// locked or were written to recently. A Bucket has no temporary files.
func (p Part) RemoveTemporaries(ctx context.Context, dir string, depth int) (removed int) {
	if p.Bucket() != nil {
		return 0
	}
	entries, _ := p.ReadDir(dir) // the next call looks again at a folder that cannot be read now
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		isUnlocked, isLocked := hasTemporaryName(e.Name(), temporarySuffix), hasTemporaryName(e.Name(), lockedSuffix)
		gone := false
		switch {
		case ctx.Err() != nil:
			return removed
		case e.IsDir() && isUnlocked:
			gone = abandoned(e) && p.Fs.RemoveAll(path.Join(p.Dir, name)) == nil
		case e.IsDir() && depth > 0:
			removed += p.RemoveTemporaries(ctx, name, depth-1)
		case !e.Mode().IsRegular() || !isLocked && !isUnlocked || !abandoned(e):
		case isLocked:
			gone = p.removeUnlocked(name)
		default:
			gone = p.Fs.Remove(path.Join(p.Dir, name)) == nil
		}
		if gone {
			removed++
		}
	}
	return removed
}

// removeUnlocked removes a TemporaryFile that no instance has locked.
func (p Part) removeUnlocked(name string) (removed bool) {
	if disk := p.lockPath(name); disk != "" {
		lock := flock.New(disk, flock.SetFlag(os.O_RDWR))
		locked, err := lock.TryLock()
		if err == nil && !locked {
			return false
		}
		defer lock.Close()
	}
	return p.Fs.Remove(path.Join(p.Dir, name)) == nil
}

func abandoned(info fs.FileInfo) bool { return time.Since(info.ModTime()) >= abandonedAfter }
