package fill

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
)

// Files are written under a temporary name and then renamed. renameio does the same
// for paths of the operating system only: a tree is an afero.Fs that does not leave
// its root, and packages are locked while they come in.

// Temporary names begin with a dot, so the index ignores them. Those of packages have
// a suffix of their own, since whether they are in use is known from a lock.
const (
	temporarySuffix = ".tmp"
	packageSuffix   = ".part"
	temporaryText   = 10 // characters of rand.Text
)

// temporaryName returns a unique name beside name.
func temporaryName(name, suffix string) string {
	return path.Join(path.Dir(name), "."+path.Base(name)+"."+rand.Text()[:temporaryText]+suffix)
}

// isTemporary reports whether temporaryName has made a name. Others may have hidden
// files with the same suffix.
func isTemporary(name, suffix string) bool {
	rest, ends := strings.CutSuffix(name, suffix)
	rest, hidden := strings.CutPrefix(rest, ".")
	dot := strings.LastIndexByte(rest, '.')
	return ends && hidden && dot > 0 && len(rest)-dot-1 == temporaryText &&
		strings.Trim(rest[dot+1:], "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") == ""
}

// create makes a file and its folders.
func create(fsys afero.Fs, name string) (afero.File, error) {
	if err := fsys.MkdirAll(path.Dir(name), 0o755); err != nil {
		return nil, err
	}
	return fsys.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
}

// write makes or replaces a small file, as a whole or not at all.
func write(in index.Part, name string, content []byte) (err error) {
	name = path.Join(in.Dir, name)
	temporary := temporaryName(name, temporarySuffix)
	f, err := create(in.Fs, temporary)
	if err != nil {
		return storageError(err)
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = in.Fs.Rename(temporary, name)
	}
	if err != nil {
		in.Fs.Remove(temporary)
		return storageError(err)
	}
	syncFolder(in.Fs, path.Dir(name))
	return nil
}

// syncFolder has a new name survive a crash. Not every file system can do so, and
// nothing but the name is lost without it.
func syncFolder(fsys afero.Fs, dir string) {
	if f, err := fsys.Open(dir); err == nil {
		f.Sync()
		f.Close()
	}
}

// syncEvery is how many bytes are written until the disk is told to begin, so that
// at the end there is not a whole package to wait for.
const syncEvery = 32 << 20

// A temporaryPackage is a package on its way into the tree, under a temporary name.
type temporaryPackage struct {
	afero.File
	in          index.Part
	name        string
	lock        *flock.Flock // nil: the file system has no locks
	reservation *reservation // nil: unbounded
	created     []string     // folders, the innermost first

	unsynced int64
	syncing  chan error // nil: no sync is under way
	failed   error      // of an earlier sync, which a later one does not report
}

// Another instance may take a temporary package for a leftover in the moment before
// it is locked; then it is begun again. After this many attempts the reason is
// another one: its folder is no longer where the tree is.
const maxAttempts = 5

// errReplaced: the tree that was opened is no longer the one on the disk.
var errReplaced = fmt.Errorf("%w: its folder has been replaced meanwhile, try again", ErrNotWritable)

// newTemporaryPackage begins a package that will have the given name. A lock tells
// other instances that the file is no leftover.
func (f *Filler) newTemporaryPackage(in index.Part, name string) (*temporaryPackage, error) {
	for range maxAttempts {
		if f.ctx.Err() != nil {
			return nil, f.ctx.Err()
		}
		p := &temporaryPackage{in: in, name: temporaryName(name, packageSuffix), created: missingFolders(in, path.Dir(name))}
		var err error
		switch p.File, err = create(in.Fs, path.Join(in.Dir, p.name)); {
		case errors.Is(err, fs.ErrNotExist): // the root itself has been removed
			return nil, errReplaced
		case err != nil:
			return nil, storageError(err)
		}
		locked, err := p.tryLock(f.diskPath(p.name))
		if err == nil && locked {
			return p, nil
		}
		p.discard()
		if err != nil {
			return nil, storageError(err)
		}
	}
	return nil, errReplaced
}

// diskPath is the path for the lock of a file; empty if there are no locks.
func (f *Filler) diskPath(name string) string {
	if f.options.Path == nil {
		return ""
	}
	return f.options.Path(name)
}

// tryLock locks the file, unless another instance has locked or removed it.
func (p *temporaryPackage) tryLock(disk string) (locked bool, err error) {
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
	p.lock = lock
	return true, nil
}

// publish gives the package its final name, and returns what is there then.
func (p *temporaryPackage) publish(name string) (os.FileInfo, error) {
	err := p.sync()
	written, statErr := p.File.Stat()
	if err == nil {
		err = statErr
	}
	if closed := p.File.Close(); err == nil {
		err = closed
	}
	from, to := path.Join(p.in.Dir, p.name), path.Join(p.in.Dir, name)
	if err == nil {
		if err = p.in.Fs.MkdirAll(path.Dir(to), 0o755); err == nil {
			err = p.in.Fs.Rename(from, to)
		}
	}
	if err != nil {
		p.discard()
		return nil, storageError(err)
	}
	syncFolder(p.in.Fs, path.Dir(to))
	p.unlock()
	info, err := p.in.Fs.Stat(to)
	if err != nil || !sameFile(info, written) || info.Size() != written.Size() {
		return nil, index.ErrChanged
	}
	return info, nil
}

// sameFile is os.SameFile, where the file system tells files apart.
func sameFile(a, b os.FileInfo) bool { return a.Sys() == nil || os.SameFile(a, b) }

// missingFolders returns those of a folder and its parents that do not exist.
func missingFolders(in index.Part, dir string) (folders []string) {
	for ; dir != "."; dir = path.Dir(dir) {
		if _, err := in.Fs.Stat(path.Join(in.Dir, dir)); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		folders = append(folders, dir)
	}
	return folders
}

// discard removes the package, and the folders that were made for it if they are
// empty: clients may request any provider.
func (p *temporaryPackage) discard() {
	p.File.Close()
	p.in.Fs.Remove(path.Join(p.in.Dir, p.name))
	p.unlock()
	for _, dir := range p.created {
		dir = path.Join(p.in.Dir, dir)
		if entries, err := afero.ReadDir(p.in.Fs, dir); err != nil || len(entries) > 0 {
			return
		}
		p.in.Fs.Remove(dir)
	}
}

func (p *temporaryPackage) unlock() {
	if p.lock != nil {
		p.lock.Close()
	}
}

// Write returns storage errors.
func (p *temporaryPackage) Write(b []byte) (int, error) {
	if p.reservation != nil {
		if err := p.reservation.use(int64(len(b))); err != nil {
			return 0, err
		}
	}
	n, err := p.File.Write(b)
	if p.unsynced += int64(n); p.unsynced >= syncEvery {
		p.syncAhead()
	}
	return n, storageError(err)
}

// Expect reserves room for the package before it comes in.
func (p *temporaryPackage) Expect(size int64) error {
	if p.reservation == nil {
		return nil
	}
	return p.reservation.expect(size)
}

// syncAhead syncs in the background what is written, unless a sync is under way.
func (p *temporaryPackage) syncAhead() {
	if p.syncing != nil {
		select {
		case p.failed = <-p.syncing:
		default:
			return
		}
	}
	if p.failed != nil {
		return
	}
	p.unsynced = 0
	p.syncing = make(chan error, 1)
	go func(done chan<- error) { done <- p.File.Sync() }(p.syncing)
}

// sync waits until everything is on the disk.
func (p *temporaryPackage) sync() error {
	if p.syncing != nil && p.failed == nil {
		p.failed = <-p.syncing
	}
	if p.failed != nil {
		return p.failed
	}
	return p.File.Sync()
}

// abandonedAfter is how long a temporary file without a lock has not been written
// to when it is certainly a leftover.
const abandonedAfter = time.Hour

// RemoveLeftovers removes the temporary files of instances that were killed, below
// the hostnames that are mirrored, and returns how many there were. It is meant for
// the start and need not be waited for: leftovers are never served.
func (f *Filler) RemoveLeftovers(ctx context.Context) int {
	tree, err := f.tree.get()
	if err != nil {
		return 0
	}
	removed := 0
	for _, in := range []struct {
		index.Part
		depth int // of the files below the hostname
		disk  func(string) string
	}{{tree.Providers, 3, f.diskPath}, {tree.Keys, 0, nil}} {
		hosts, _ := afero.ReadDir(in.Fs, in.Dir)
		for _, host := range hosts {
			h, err := address.ParseHostname(host.Name())
			if _, ours := f.sources[h]; err == nil && ours {
				removed += removeLeftovers(ctx, in.Part, host.Name(), in.depth, in.disk)
			}
		}
	}
	if removed > 0 {
		f.log(slog.LevelInfo, "removed temporary files of interrupted fills", "files", removed)
	}
	return removed
}

func removeLeftovers(ctx context.Context, in index.Part, dir string, depth int, disk func(string) string) (removed int) {
	entries, _ := afero.ReadDir(in.Fs, path.Join(in.Dir, dir))
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		switch {
		case ctx.Err() != nil:
			return removed
		case e.IsDir() && isTemporary(e.Name(), temporarySuffix):
			if time.Since(e.ModTime()) >= abandonedAfter && in.Fs.RemoveAll(path.Join(in.Dir, name)) == nil {
				removed++
			}
		case e.IsDir() && depth > 0:
			removed += removeLeftovers(ctx, in, name, depth-1, disk)
		case !e.Mode().IsRegular():
		case isTemporary(e.Name(), packageSuffix) && disk != nil && disk(name) != "":
			removed += removeUnlocked(in, name, disk(name), e)
		case isTemporary(e.Name(), packageSuffix), isTemporary(e.Name(), temporarySuffix):
			removed += removeAbandoned(in, name, e)
		}
	}
	return removed
}

// removeUnlocked removes a temporary package that no instance is writing.
func removeUnlocked(in index.Part, name, disk string, info fs.FileInfo) int {
	lock := flock.New(disk, flock.SetFlag(os.O_RDWR))
	locked, err := lock.TryLock()
	if err != nil {
		return removeAbandoned(in, name, info)
	}
	defer lock.Close()
	if !locked || in.Fs.Remove(path.Join(in.Dir, name)) != nil {
		return 0
	}
	return 1
}

func removeAbandoned(in index.Part, name string, info fs.FileInfo) int {
	if time.Since(info.ModTime()) < abandonedAfter || in.Fs.Remove(path.Join(in.Dir, name)) != nil {
		return 0
	}
	return 1
}
