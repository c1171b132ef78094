package index

import (
	"os"
	"time"

	"github.com/spf13/afero"
)

// rootFs is the local disk below one directory as an afero.Fs. os.Root follows
// symlinks inside that directory and refuses those that leave it, even if they are
// exchanged between a check and an open. It also refuses all absolute symlinks:
// those that stay inside are followed by inside (rootlinks.go).
type rootFs struct{ root *os.Root }

func (r rootFs) Name() string { return "root" }

func (r rootFs) Create(name string) (afero.File, error) {
	return file(inside(r, name, r.root.Create))
}

func (r rootFs) Open(name string) (afero.File, error) {
	return file(inside(r, name, r.root.Open))
}

func (r rootFs) OpenFile(name string, flag int, perm os.FileMode) (afero.File, error) {
	return file(inside(r, name, func(name string) (*os.File, error) { return r.root.OpenFile(name, flag, perm) }))
}

func (r rootFs) Stat(name string) (os.FileInfo, error) { return inside(r, name, r.root.Stat) }

func (r rootFs) Mkdir(name string, perm os.FileMode) error {
	return r.do(name, func(name string) error { return r.root.Mkdir(name, perm) })
}

func (r rootFs) MkdirAll(name string, perm os.FileMode) error {
	return r.do(name, func(name string) error { return r.root.MkdirAll(name, perm) })
}

func (r rootFs) Chmod(name string, mode os.FileMode) error {
	return r.do(name, func(name string) error { return r.root.Chmod(name, mode) })
}

func (r rootFs) Chown(name string, uid, gid int) error {
	return r.do(name, func(name string) error { return r.root.Chown(name, uid, gid) })
}

func (r rootFs) Chtimes(name string, atime, mtime time.Time) error {
	return r.do(name, func(name string) error { return r.root.Chtimes(name, atime, mtime) })
}

// These act on the name itself: a symlink at its end is not followed.

func (r rootFs) Remove(name string) error {
	return r.doInParent(name, r.root.Remove)
}

func (r rootFs) RemoveAll(name string) error {
	return r.doInParent(name, r.root.RemoveAll)
}

func (r rootFs) Rename(from, to string) error {
	return r.doInParent(from, func(from string) error {
		return r.doInParent(to, func(to string) error { return r.root.Rename(from, to) })
	})
}

// file keeps a nil *os.File from becoming a non-nil afero.File.
func file(f *os.File, err error) (afero.File, error) {
	if err != nil {
		return nil, err
	}
	return f, nil
}

var _ afero.Fs = rootFs{}
