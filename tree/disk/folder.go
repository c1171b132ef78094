// Package disk has parts of a tree on the local disk.
package disk

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"syscall"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// A Folder is a part on the local disk, or on another file system that has folders and a
// rename, such as one in memory: Dir on Fs, with slashes.
//
// It is not an afero.BasePathFs. That wraps every file, and net/http sends only an
// *os.File by sendfile; it wraps path errors in one another, so that the path on the
// server would reach reports; and it has no root ".".
type Folder struct {
	Fs  afero.Fs
	Dir string

	Disk string // where Fs begins on the local disk, if it is there
}

var (
	_ tree.Storage = Folder{}
	_ tree.Local   = Folder{}
)

// NewPart returns a part that is a directory of the local disk, whose path is disk.
func NewPart(root *os.Root, disk string) tree.Part {
	return tree.Part{Storage: Folder{Fs: newRootFs(root), Dir: ".", Disk: disk}}
}

// Open opens a directory of the local disk. A symlink may lead to other places in it, and not
// out of it.
func Open(dir string) (tree.Part, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return tree.Part{}, err
	}
	return NewPart(root, dir), nil
}

// OpenReadOnly is Open for a directory that is not written to. One that does not exist is
// empty.
func OpenReadOnly(dir string) (tree.Part, error) {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) { // it is no symlink to nothing
			return tree.Part{}, nil
		}
	}
	if err != nil {
		return tree.Part{}, err
	}
	return tree.Part{Storage: Folder{Fs: afero.NewReadOnlyFs(newRootFs(root)), Dir: ".", Disk: dir}}, nil
}

// PathOf returns the path of a name in a part. ok is false if the part does not lie on the
// local disk.
func PathOf(p tree.Part, name string) (string, bool) {
	d, ok := p.Storage.(Folder)
	if !ok || d.Disk == "" {
		return "", false
	}
	return d.diskPath(name), true
}

// BeginOf returns the path where the file system of a part begins. ok is as of PathOf.
func BeginOf(p tree.Part) (string, bool) {
	d, ok := p.Storage.(Folder)
	return d.Disk, ok && d.Disk != ""
}

func (d Folder) diskPath(name string) string {
	return filepath.Join(d.Disk, filepath.FromSlash(d.path(name)))
}

// path returns a path in the part as a name in its file system.
func (d Folder) path(name string) string { return path.Join(d.Dir, name) }

// Sub implements tree.Storage.
func (d Folder) Sub(dir string) tree.Storage {
	d.Dir = d.path(dir)
	return d
}

// Path implements tree.Storage.
func (d Folder) Path() string { return d.diskPath(".") }

// Stat implements tree.Storage.
func (d Folder) Stat(name string) (fs.FileInfo, error) { return d.Fs.Stat(d.path(name)) }

// Open implements tree.Storage. It refuses all but regular files without opening them, since
// opening a named pipe would wait for its writer.
func (d Folder) Open(name string) (afero.File, fs.FileInfo, error) {
	info, err := d.Stat(name)
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, tree.ErrNotRegular
	}
	f, err := d.Fs.Open(d.path(name))
	if err != nil {
		return nil, nil, err
	}
	info, err = f.Stat() // the file may have been replaced since
	if err == nil && !info.Mode().IsRegular() {
		err = tree.ErrNotRegular
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// List implements tree.Storage. The names may share memory.
func (d Folder) List(dir string) ([]fs.FileInfo, error) {
	if dir == "." { // all others come from a listing that says they are directories
		if info, err := d.Stat(dir); err == nil && !info.IsDir() {
			return nil, tree.ErrNoDirectory
		}
	}
	f, err := d.Fs.Open(d.path(dir))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	infos, err := readEntries(f)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return infos, err
}

// ReadDir implements tree.Storage.
func (d Folder) ReadDir(dir string) ([]fs.FileInfo, error) {
	f, err := d.openFolder(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readEntries(f)
}

// ReadNames implements tree.Storage.
func (d Folder) ReadNames(dir string) ([]string, error) {
	f, err := d.openFolder(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}

// openFolder opens a folder. It refuses anything else without opening it, as Open does.
func (d Folder) openFolder(dir string) (afero.File, error) {
	info, err := d.Stat(dir)
	switch {
	case errors.Is(err, syscall.ENOTDIR), err == nil && !info.IsDir():
		return nil, tree.ErrNoFolder
	case err != nil:
		return nil, err
	}
	return d.Fs.Open(d.path(dir))
}

// Walk implements tree.Storage.
func (d Folder) Walk(ctx context.Context, dir string, visit func(name string, info fs.FileInfo)) error {
	return tree.WalkFolders(ctx, d, dir, visit)
}

// Same implements tree.Local. Another directory may have taken the place of the part, as when
// a root is exchanged by a rename or a symlink.
func (d Folder) Same() bool {
	if d.Disk == "" {
		return true
	}
	opened, err := d.Stat(".")
	now, nowErr := os.Stat(d.diskPath("."))
	if err != nil || nowErr != nil {
		// What is done in a part that cannot be looked at fails with an error that tells why.
		return err != nil && nowErr != nil && errors.Is(err, fs.ErrNotExist) == errors.Is(nowErr, fs.ErrNotExist)
	}
	return os.SameFile(opened, now)
}

// LeadsNowhere implements tree.Local.
func (d Folder) LeadsNowhere(name string) error {
	if d.Disk == "" {
		return nil
	}
	name = d.path(name)
	for dir := name; dir != "."; dir = path.Dir(dir) {
		info, err := os.Lstat(filepath.Join(d.Disk, filepath.FromSlash(dir)))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return tree.StorageError(err)
		case info.Mode()&fs.ModeSymlink == 0:
			return nil
		case dir == name:
			return tree.ErrLeadsNowhere
		}
		if _, err = d.Fs.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			return tree.ErrLeadsNowhere
		}
		return tree.StorageError(err)
	}
	return nil
}

// KeepsInodes implements tree.Local. Network file systems make them up, and may later make up
// others.
func (d Folder) KeepsInodes(name string) bool {
	return d.Disk == "" || NetworkFileSystem(d.diskPath(name)) == ""
}

// KeepsChanges implements tree.Local. Only local file systems keep the time of a folder:
// others make one up.
func (d Folder) KeepsChanges(dir string) bool { return d.Disk != "" && d.KeepsInodes(dir) }
