package disk

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"syscall"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// create makes a new file and its folders.
func (d Folder) create(name string, mode fs.FileMode) (afero.File, error) {
	if _, err := d.makeFolder(path.Dir(name)); err != nil {
		return nil, err
	}
	f, err := d.Fs.OpenFile(d.path(name), os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return nil, err
	}
	if err := d.adopt(name); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// writeNew writes a file that nothing reads before it is renamed.
func (d Folder) writeNew(name string, content []byte, mode fs.FileMode) error {
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

// Write implements tree.Storage.
func (d Folder) Write(name string, content []byte) error {
	mode := fs.FileMode(0o644)
	old, err := d.Stat(name)
	switch {
	case err == nil:
		mode = cmp.Or(old.Mode().Perm(), mode)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR): // what lies in its way, create says
		old = nil
	default:
		return err
	}
	temporary := tree.TemporaryName(name)
	err = d.writeNew(temporary, content, mode)
	if err == nil && old != nil {
		err = d.permit(temporary, old, mode)
	}
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
func (d Folder) syncFolder(dir string) {
	if f, err := d.Fs.Open(d.path(dir)); err == nil {
		f.Sync()
		f.Close()
	}
}

// Move implements tree.Storage. It makes the folder of the name.
func (d Folder) Move(from, to string) error {
	if _, err := d.makeFolder(path.Dir(to)); err != nil {
		return err
	}
	return d.Fs.Rename(d.path(from), d.path(to))
}

// Remove implements tree.Storage.
func (d Folder) Remove(name string) error { return d.Fs.Remove(d.path(name)) }

// RemoveAll implements tree.Storage.
func (d Folder) RemoveAll(name string) error { return d.Fs.RemoveAll(d.path(name)) }

// Install implements tree.Storage. It renames the folder, so that its files are the same files
// as before.
func (d Folder) Install(_ context.Context, from, to, _ string) (copied map[string]fs.FileInfo, err error) {
	d.syncFolder(from)
	switch err := d.placeFolder(from, to); {
	case errors.Is(err, fs.ErrExist): // another writer was faster
		return nil, tree.ErrInTheWay
	case err != nil:
		return nil, tree.StorageError(err)
	}
	d.syncFolder(path.Dir(to))
	return nil, nil
}

// InstallDocuments implements tree.Storage.
func (d Folder) InstallDocuments(ctx context.Context, documents map[string][]byte, to, last string) error {
	hidden := tree.TemporaryName(to)
	err := tree.StorageError(d.writeFolder(ctx, tree.DocumentsOf(documents), hidden))
	if err == nil {
		_, err = d.Install(ctx, hidden, to, last)
	}
	if err != nil {
		d.RemoveAll(hidden)
	}
	return err
}

func (d Folder) writeFolder(ctx context.Context, documents tree.Documents, dir string) error {
	inFolders := tree.Documents(func(visit func(string, []byte) error) error {
		return documents(func(name string, content []byte) error {
			// Before the file, which gets the owner of its folder.
			if _, err := d.makeFolder(path.Dir(path.Join(dir, name))); err != nil {
				return err
			}
			return visit(name, content)
		})
	})
	return inFolders.InParallel(ctx, func(name string, content []byte) error {
		return d.writeNew(path.Join(dir, name), content, 0o644)
	})
}

// ReplaceFolder implements tree.Storage.
func (d Folder) ReplaceFolder(ctx context.Context, documents tree.Documents, dir, aside string) error {
	fresh, old := aside+".new", aside+".old"
	err := d.RemoveAll(fresh) // of a process that was killed
	if err == nil {
		err = d.writeFolder(ctx, documents, fresh)
	}
	if err == nil {
		err = d.RemoveAll(old)
	}
	if err != nil {
		d.RemoveAll(fresh)
		return err
	}
	exists, err := tree.Part{Storage: d}.Exists(dir)
	if err == nil && exists {
		err = d.Move(dir, old)
	}
	if err != nil {
		return err
	}
	if err := d.Move(fresh, dir); err != nil {
		d.Move(old, dir) // if that fails too, the same call still puts the new content there
		return err
	}
	d.syncFolder(path.Dir(dir))
	d.RemoveAll(old)
	return nil
}

// RemoveFolder implements tree.Storage.
func (d Folder) RemoveFolder(_ context.Context, dir, _ string) error {
	hidden := tree.TemporaryName(dir)
	err := d.Fs.Rename(d.path(dir), d.path(hidden))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	return d.RemoveAll(hidden)
}

// RemoveUnfinished implements tree.Storage. It has nothing to do: a folder appears at once, and
// an incomplete upload is a copy of a Bucket's folder that an operator has made.
func (Folder) RemoveUnfinished(context.Context, string, string, []byte) error { return nil }
