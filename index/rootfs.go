package index

import (
	"os"
	"time"

	"github.com/spf13/afero"
)

// rootFs is the local disk below one directory as an afero.Fs. os.Root follows
// symlinks inside that directory and refuses those that leave it, also when
// they are exchanged between a check and an open.
type rootFs struct{ root *os.Root }

func (r rootFs) Name() string { return "root" }

func (r rootFs) Create(name string) (afero.File, error) { return file(r.root.Create(name)) }

func (r rootFs) Open(name string) (afero.File, error) { return file(r.root.Open(name)) }

func (r rootFs) OpenFile(name string, flag int, perm os.FileMode) (afero.File, error) {
	return file(r.root.OpenFile(name, flag, perm))
}

func (r rootFs) Mkdir(name string, perm os.FileMode) error    { return r.root.Mkdir(name, perm) }
func (r rootFs) MkdirAll(name string, perm os.FileMode) error { return r.root.MkdirAll(name, perm) }
func (r rootFs) Remove(name string) error                     { return r.root.Remove(name) }
func (r rootFs) RemoveAll(name string) error                  { return r.root.RemoveAll(name) }
func (r rootFs) Rename(from, to string) error                 { return r.root.Rename(from, to) }
func (r rootFs) Stat(name string) (os.FileInfo, error)        { return r.root.Stat(name) }
func (r rootFs) Chmod(name string, mode os.FileMode) error    { return r.root.Chmod(name, mode) }
func (r rootFs) Chown(name string, uid, gid int) error        { return r.root.Chown(name, uid, gid) }

func (r rootFs) Chtimes(name string, atime, mtime time.Time) error {
	return r.root.Chtimes(name, atime, mtime)
}

// file keeps a nil *os.File from becoming a non-nil afero.File.
func file(f *os.File, err error) (afero.File, error) {
	if err != nil {
		return nil, err
	}
	return f, nil
}

var _ afero.Fs = rootFs{}
