package fill

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"

	"github.com/gofrs/flock"
	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
)

// A part is a package on its way into the tree, under a name that nobody else
// has and nobody is served.
type part struct {
	afero.File
	in   index.Part
	name string
	lock *flock.Flock // nil: there are no locks here
	room *room        // nil: any amount
	made []string     // folders that were not there before, the innermost first

	unsynced int64
	syncing  chan error // nil: nothing is being synced
	failed   error      // of an earlier sync, which the next one does not tell
}

// syncEvery is how much is written until the disk is told to begin with it, so
// that in the end there is not a whole package to wait for.
const syncEvery = 32 << 20

// A part is begun again when another instance has taken it for a leftover in the
// moment in which it was not locked. More often than this it is not that: its
// file is in a folder that is no longer where the tree is.
const maxBegins = 5

// errReplaced: the tree that was opened is not the one on the disk any more.
var errReplaced = fmt.Errorf("%w: its folder has been replaced meanwhile, try again", ErrNotWritable)

// newPart begins a package that will be called name. The lock of its file tells
// other instances that it is no leftover.
func (f *Filler) newPart(in index.Part, name string) (*part, error) {
	for range maxBegins {
		if f.ctx.Err() != nil {
			return nil, f.ctx.Err()
		}
		p := &part{in: in, name: temporaryName(name, partSuffix), made: missing(in, path.Dir(name))}
		var err error
		switch p.File, err = create(in.Fs, path.Join(in.Dir, p.name)); {
		case errors.Is(err, fs.ErrNotExist): // folders are made, but not in one that has been removed
			return nil, errReplaced
		case err != nil:
			return nil, storageError(err)
		}
		taken, err := p.tryLock(f.diskPath(p.name))
		if err == nil && taken {
			return p, nil
		}
		p.discard()
		if err != nil {
			return nil, storageError(err)
		}
	}
	return nil, errReplaced
}

// diskPath is where the locks of files are to be had; empty if nowhere.
func (f *Filler) diskPath(name string) string {
	if f.options.Path == nil {
		return ""
	}
	return f.options.Path(name)
}

// tryLock locks the file; not taken when another has it, or has removed it.
func (p *part) tryLock(disk string) (taken bool, err error) {
	if disk == "" {
		return true, nil
	}
	lock := flock.New(disk, flock.SetFlag(os.O_RDWR))
	switch taken, err = lock.TryLock(); {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return true, nil // a file system without locks
	case !taken:
		return false, nil
	}
	if _, err := os.Stat(disk); errors.Is(err, fs.ErrNotExist) {
		lock.Close()
		return false, nil
	}
	p.lock = lock
	return true, nil
}

// publish gives the part its name, for good, and returns what it then is.
func (p *part) publish(name string) (os.FileInfo, error) {
	err := p.sync()
	written, unknown := p.File.Stat()
	if err == nil {
		err = unknown
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

// missing are those of a folder and the ones it is in that are not there.
func missing(in index.Part, dir string) (folders []string) {
	for ; dir != "."; dir = path.Dir(dir) {
		if _, err := in.Fs.Stat(path.Join(in.Dir, dir)); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		folders = append(folders, dir)
	}
	return folders
}

// discard removes the part, and the folders that were made for it if nothing else
// has come into them: clients may ask for any provider.
func (p *part) discard() {
	p.File.Close()
	p.in.Fs.Remove(path.Join(p.in.Dir, p.name))
	p.unlock()
	for _, dir := range p.made {
		dir = path.Join(p.in.Dir, dir)
		if entries, err := afero.ReadDir(p.in.Fs, dir); err != nil || len(entries) > 0 {
			return
		}
		p.in.Fs.Remove(dir)
	}
}

func (p *part) unlock() {
	if p.lock != nil {
		p.lock.Close()
	}
}

// Write tells what the disk refuses.
func (p *part) Write(b []byte) (int, error) {
	if p.room != nil {
		if err := p.room.take(int64(len(b))); err != nil {
			return 0, err
		}
	}
	n, err := p.File.Write(b)
	if p.unsynced += int64(n); p.unsynced >= syncEvery {
		p.syncAhead()
	}
	return n, storageError(err)
}

// Expect says how large the part will be, before it comes in.
func (p *part) Expect(size int64) error {
	if p.room == nil {
		return nil
	}
	return p.room.expect(size)
}

// syncAhead syncs in the background what is written, unless that is going on.
func (p *part) syncAhead() {
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
func (p *part) sync() error {
	if p.syncing != nil && p.failed == nil {
		p.failed = <-p.syncing
	}
	if p.failed != nil {
		return p.failed
	}
	return p.File.Sync()
}
