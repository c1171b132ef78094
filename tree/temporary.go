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

// Files are written under a temporary name and then renamed. renameio does the same
// for paths of the operating system only: a tree is an afero.Fs that does not leave
// its root, and large files are locked while they come in.

// Temporary names begin with a dot, so that scans ignore them. Those of files that are
// locked have a suffix of their own, since whether they are in use is known from the
// lock.
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

// IsTemporary reports whether a file or folder of that name is on its way into a tree
// by this package. Others may have hidden files with the same suffixes.
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

// WriteFile makes or replaces a small file, as a whole or not at all. A file that it
// replaces keeps its mode. The error is one of StorageError.
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

// SyncFolder has the names in a folder survive a crash. Not every file system can do
// so, and nothing but the names is lost without it.
func (p Part) SyncFolder(dir string) {
	if p.Bucket() != nil {
		return
	}
	if f, err := p.Fs.Open(path.Join(p.Dir, dir)); err == nil {
		f.Sync()
		f.Close()
	}
}

// syncEvery is how many bytes are written until the disk is told to begin, so that
// at the end there is not a whole package to wait for.
const syncEvery = 32 << 20

// A TemporaryFile is a file on its way into a part of a tree, under a temporary name that
// scans ignore, or on the local disk if the tree is in a Bucket. It ends with Rename,
// Create or Discard, and not with Close. One goroutine uses it at a time.
type TemporaryFile struct {
	afero.File
	part    Part
	bucket  Bucket       // that it is for; nil: the file is in the part already
	name    string       // in the part; for a Bucket on the local disk, empty if it has none there
	lock    *flock.Flock // nil: the file system has no locks
	created []string     // folders, the innermost first
	ended   bool

	unsynced int64
	syncing  chan error // nil: no sync is under way
	failed   error      // of an earlier sync, which a later one does not report
}

// Another instance may take a temporary file for a leftover in the moment before it is
// locked, and its folder may be discarded in the moment after it was made; then it is
// begun again. After this many attempts the reason is another one: its folder is no
// longer where the tree is.
const maxAttempts = 5

// NewTemporary begins a file that will have the given name, a path in the part, and
// makes the folders that are missing. On the local disk a lock tells other instances
// that the file is no leftover, however slowly it comes in. The error is ErrReplaced, one of StorageError, or that
// of ctx.
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
		case errors.Is(err, fs.ErrNotExist): // another one has discarded the folder, or the root is gone
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

// missingFolders returns those of a folder and its parents that do not exist.
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

// Write returns errors of StorageError.
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

// syncAhead syncs in the background what is written, unless a sync is under way.
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

// Rename gives the file its final name, a path in its part, once all of it is on the
// disk, and returns what is there then. It replaces a file of that name. The error is
// one of StorageError, after which the file is discarded, or ErrChanged if another
// file has taken the name at once, or that of ctx, which ends sending it to a Bucket.
func (t *TemporaryFile) Rename(ctx context.Context, name string) (fs.FileInfo, error) {
	if t.bucket != nil {
		return t.put(ctx, t.bucket.Replace, name)
	}
	return t.giveName(name, t.part.replace)
}

// Create is Rename for a name that is free: it never replaces a file, also where another
// process takes the name at this moment. Then the error is ErrChanged, or ErrReserved if
// that process has not written anything yet.
func (t *TemporaryFile) Create(ctx context.Context, name string) (fs.FileInfo, error) {
	if t.bucket != nil {
		return t.put(ctx, t.bucket.Create, name)
	}
	return t.giveName(name, t.part.place)
}

// giveName ends the file on a disk by one of place and replace.
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

// replace gives a file its name, and makes the folder of that.
func (p Part) replace(from, to string) error {
	if err := p.makeFolder(path.Dir(to)); err != nil {
		return err
	}
	return p.Fs.Rename(path.Join(p.Dir, from), path.Join(p.Dir, to))
}

// sameFile is os.SameFile, where the file system tells files apart.
func sameFile(a, b fs.FileInfo) bool { return a.Sys() == nil || os.SameFile(a, b) }

// Discard removes the file, and the folders that were made for it if they are empty:
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

// abandonedAfter is how long nothing has been written to a temporary file when it is
// certainly a leftover. Its lock says so only where all machines see it, which NFS and file
// systems of user space do not promise. While a file comes in, each piece of it moves its
// time; a client that pauses for longer has its upload removed where there are no locks.
const abandonedAfter = time.Hour

// RemoveTemporaries removes what instances that were killed have left in a folder and
// those in it, so many levels deep, and returns how much there was. What has been written
// to lately stays, and so does what is locked. A Bucket has nothing of the kind.
func (p Part) RemoveTemporaries(ctx context.Context, dir string, depth int) (removed int) {
	if p.Bucket() != nil {
		return 0
	}
	entries, _ := p.ReadDir(dir) // what cannot be read now is looked at the next time
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
