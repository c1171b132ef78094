package tree

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/afero"
	"golang.org/x/sync/errgroup"
)

// A disk is a part on the local disk, or on another file system that has folders and a
// rename.
type disk struct{ Part }

// path returns a path in the part as a name in its file system.
func (d disk) path(name string) string { return path.Join(d.Dir, name) }

func (d disk) readDirectory(dir string) ([]fs.FileInfo, error) {
	f, err := d.openFolder(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readEntries(f)
}

func (d disk) readNames(dir string) ([]string, error) {
	f, err := d.openFolder(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}

// openFolder opens a folder. It refuses anything else without opening it, as Open does.
func (d disk) openFolder(dir string) (afero.File, error) {
	info, err := d.Lookup(dir)
	switch {
	case errors.Is(err, syscall.ENOTDIR), err == nil && !info.IsDir():
		return nil, errNoFolder
	case err != nil:
		return nil, err
	}
	return d.Fs.Open(d.path(dir))
}

// walk has nothing to visit in a file, or in a folder that is removed meanwhile.
func (d disk) walk(ctx context.Context, dir string, visit func(name string, info fs.FileInfo)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	infos, err := d.readDirectory(dir)
	if err = d.absence(dir, err); errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNoFolder) {
		return nil
	}
	slices.SortFunc(infos, func(a, b fs.FileInfo) int { return strings.Compare(a.Name(), b.Name()) })
	for _, info := range infos {
		name := path.Join(dir, info.Name())
		if !info.IsDir() {
			visit(name, info)
		} else if failed := d.walk(ctx, name, visit); err == nil {
			err = failed
		}
	}
	return err
}

// create makes a new file and its folders.
func (d disk) create(name string, mode fs.FileMode) (afero.File, error) {
	if _, err := d.makeFolder(path.Dir(name)); err != nil {
		return nil, err
	}
	return d.Fs.OpenFile(d.path(name), os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
}

// writeNew writes a file that nothing reads before it is renamed.
func (d disk) writeNew(name string, content []byte, mode fs.FileMode) error {
	f, err := d.create(name, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	return cmp.Or(err, f.Close())
}

func (d disk) write(name string, content []byte) error {
	mode := fs.FileMode(0o644)
	switch info, err := d.Lookup(name); {
	case err == nil:
		mode = cmp.Or(info.Mode().Perm(), mode)
	case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR): // what lies in its way, create says
		return err
	}
	temporary := TemporaryName(name)
	err := d.writeNew(temporary, content, mode)
	if err == nil {
		err = d.Fs.Rename(d.path(temporary), d.path(name))
	}
	if err != nil {
		d.Fs.Remove(d.path(temporary))
		return err
	}
	d.syncFolder(path.Dir(name))
	return nil
}

// syncFolder makes the names in a folder survive a crash. Not every file system can do so;
// without it, only the names are lost.
func (d disk) syncFolder(dir string) {
	if f, err := d.Fs.Open(d.path(dir)); err == nil {
		f.Sync()
		f.Close()
	}
}

// move gives a file or a folder its name, and makes the folder of the name.
func (d disk) move(from, to string) error {
	if _, err := d.makeFolder(path.Dir(to)); err != nil {
		return err
	}
	return d.Fs.Rename(d.path(from), d.path(to))
}

func (d disk) remove(name string) error    { return d.Fs.Remove(d.path(name)) }
func (d disk) removeAll(name string) error { return d.Fs.RemoveAll(d.path(name)) }

func (d disk) removeIfEmpty(dir string) (removed bool) {
	names, err := d.names(dir)
	return err == nil && len(names) == 0 && d.remove(dir) == nil
}

// install renames the folder, so that its files are the same files as before.
func (d disk) install(_ context.Context, from, to, _ string) (copied map[string]fs.FileInfo, err error) {
	d.syncFolder(from)
	switch err := d.placeFolder(from, to); {
	case errors.Is(err, fs.ErrExist): // another writer was faster
		return nil, ErrInTheWay
	case err != nil:
		return nil, StorageError(err)
	}
	d.syncFolder(path.Dir(to))
	return nil, nil
}

func (d disk) installDocuments(ctx context.Context, documents map[string][]byte, to, last string) error {
	hidden := TemporaryName(to)
	err := StorageError(d.writeFolder(documents, hidden))
	if err == nil {
		_, err = d.install(ctx, hidden, to, last)
	}
	if err != nil {
		d.removeAll(hidden)
	}
	return err
}

// folderWorkers is how many files of a folder are written at once. Each waits for the disk.
const folderWorkers = 8

func (d disk) writeFolder(documents map[string][]byte, dir string) error {
	var g errgroup.Group
	g.SetLimit(folderWorkers)
	for name, content := range documents {
		g.Go(func() error { return d.writeNew(path.Join(dir, name), content, 0o644) })
	}
	return g.Wait()
}

func (d disk) replaceFolder(_ context.Context, documents map[string][]byte, dir, aside string) error {
	fresh, old := aside+".new", aside+".old"
	err := d.removeAll(fresh) // of a process that was killed
	if err == nil {
		err = d.writeFolder(documents, fresh)
	}
	if err == nil {
		err = d.removeAll(old)
	}
	if err != nil {
		d.removeAll(fresh)
		return err
	}
	exists, err := d.Exists(dir)
	if err == nil && exists {
		err = d.move(dir, old)
	}
	if err != nil {
		return err
	}
	if err := d.move(fresh, dir); err != nil {
		d.move(old, dir) // if that fails too, the same call still puts the new content there
		return err
	}
	d.syncFolder(path.Dir(dir))
	d.removeAll(old)
	return nil
}

func (d disk) removeFolder(_ context.Context, dir, _ string) error {
	hidden := TemporaryName(dir)
	err := d.Fs.Rename(d.path(dir), d.path(hidden))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	return d.removeAll(hidden)
}

// removeUnfinished has nothing to do: a folder appears at once, and an incomplete upload
// is a copy of a Bucket's folder that an operator has made.
func (disk) removeUnfinished(context.Context, string, string, []byte) error { return nil }
