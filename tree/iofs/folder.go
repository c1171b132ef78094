// Package iofs has parts of a tree on a file system of Caddy's that is only read.
package iofs

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"syscall"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// A Folder is a part on an fs.FS.
type Folder struct {
	tree.ReadOnly
	fsys afero.FromIOFS
	dir  string
}

var _ tree.Storage = Folder{}

// NewFolder returns the root of a file system.
func NewFolder(fsys fs.FS) Folder { return Folder{fsys: afero.FromIOFS{FS: fsys}, dir: "."} }

func (f Folder) path(name string) string { return path.Join(f.dir, name) }

// Sub implements tree.Storage.
func (f Folder) Sub(dir string) tree.Storage {
	f.dir = f.path(dir)
	return f
}

// Path implements tree.Storage.
func (f Folder) Path() string { return f.dir }

// Stat implements tree.Storage.
func (f Folder) Stat(name string) (fs.FileInfo, error) { return f.fsys.Stat(f.path(name)) }

// Open implements tree.Storage. Stat would open the file too, so the file is looked at when it
// is open.
func (f Folder) Open(name string) (afero.File, fs.FileInfo, error) {
	file, err := f.fsys.Open(f.path(name))
	if err != nil {
		return nil, nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = tree.ErrNotRegular
	}
	if err != nil {
		file.Close()
		return nil, nil, err
	}
	return withReadAt(file, info.Size()), info, nil
}

// List implements tree.Storage. A file that is removed or renamed meanwhile is left out: Readdir
// would return its error for the whole folder, which says that there is no such folder.
func (f Folder) List(dir string) ([]fs.FileInfo, error) {
	d, err := f.fsys.FS.Open(f.path(dir))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	if dir == "." { // all others come from a listing that says they are directories
		if info, err := d.Stat(); err == nil && !info.IsDir() {
			return nil, tree.ErrNoDirectory
		}
	}
	readable, ok := d.(fs.ReadDirFile)
	if !ok {
		return nil, tree.ErrNoDirectory
	}
	entries, err := readable.ReadDir(-1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	infos := make([]fs.FileInfo, 0, len(entries))
	for _, e := range entries {
		switch info, err := e.Info(); {
		case err == nil:
			infos = append(infos, info)
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
	}
	return infos, nil
}

// ReadDir implements tree.Storage.
func (f Folder) ReadDir(dir string) ([]fs.FileInfo, error) {
	info, err := f.Stat(dir)
	switch {
	case errors.Is(err, syscall.ENOTDIR), err == nil && !info.IsDir():
		return nil, tree.ErrNoFolder
	case err != nil:
		return nil, err
	}
	return f.List(dir)
}

// ReadNames implements tree.Storage.
func (f Folder) ReadNames(dir string) (names []string, err error) {
	infos, err := f.ReadDir(dir)
	for _, info := range infos {
		names = append(names, info.Name())
	}
	return names, err
}

// Walk implements tree.Storage.
func (f Folder) Walk(ctx context.Context, dir string, visit func(name string, info fs.FileInfo)) error {
	return tree.WalkFolders(ctx, f, dir, visit)
}

// errNotSeekable is the error of a scan on a file system that the registry cannot serve
// from: clients resume downloads, and a zip is read from its end.
var errNotSeekable = errors.New("the files of this file system cannot seek, which serving packages needs: " +
	"use a file system whose files can, as Caddy's file_server needs it too, or copy the tree to the local disk")

// CheckSeeking returns errNotSeekable if a file can be opened and cannot seek. ok reports
// whether it could tell.
func (f Folder) CheckSeeking(name string) (ok bool, err error) {
	file, _, err := f.Open(name)
	if err != nil {
		return false, nil // reading the file will report why
	}
	defer file.Close()
	if _, err := file.Seek(0, io.SeekCurrent); err != nil {
		return true, errNotSeekable
	}
	return true, nil
}
