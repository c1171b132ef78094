package disk

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"syscall"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// Creating a file or folder in a tree never replaces one that has been copied or published
// there meanwhile. Creation itself fails if the name is taken, whatever was seen before. It
// needs no lock: a lock can be lost, and a program that copies files takes none. There are
// three ways, and the first one that the file system supports is used:
//
//   1. A rename that replaces nothing. A watcher sees one event, and the change time of the
//      file changes once.
//   2. For a file, a hard link. NFS supports hard links, but not this rename.
//   3. For a file, a reservation: an empty file is created if there is none, and the rename
//      replaces it only while it is still empty.
//
// A process that dies in the third way leaves the reservation. An empty file is never
// offered, and after tree.ReservedFor it is treated as left over. So is an empty folder, which a
// person may have made to copy files into it.

// An exclusiveRenamer is a file system that can rename a file or folder without replacing
// anything. If the new name is taken, the error wraps fs.ErrExist.
type exclusiveRenamer interface {
	RenameExclusive(from, to string) error
}

// A linker is a file system that can give a file another name. If the name is taken, the
// error wraps fs.ErrExist.
type linker interface {
	Link(from, to string) error
}

// place gives a file its name in the part, and makes the folder of the name. The error wraps
// fs.ErrExist if the name is taken, and is tree.ErrReserved if it may be taken in a moment.
func (d Folder) place(from, to string) error {
	if _, err := d.makeFolder(path.Dir(to)); err != nil {
		return err
	}
	err := d.placeFile(from, to)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	present, statErr := d.Stat(to)
	switch {
	case statErr != nil:
		return err
	case d.isSameFile(from, present): // the answer to an earlier attempt was lost
		return d.Fs.Remove(d.path(from))
	case present.Mode().IsRegular() && tree.Reserved(present):
		return tree.ErrReserved
	case !tree.Abandoned(present):
		return err
	}
	if err := d.removeAbandonedFile(to); err != nil {
		return err
	}
	return d.placeFile(from, to)
}

// makeFolder makes a folder and its parents. It returns the folders that it has made, the
// innermost first, and none that another process has made meanwhile. An error because a file
// has the name of one of them does not wrap fs.ErrExist: that file is not the one that the
// caller creates.
func (d Folder) makeFolder(dir string) (made []string, err error) {
	exists, err := d.isFolder(dir)
	if exists || err != nil {
		return nil, err
	}
	if dir == "." { // the part's own folder may be one of several that are missing
		if err := d.Fs.MkdirAll(d.path(dir), 0o755); err != nil {
			return nil, err
		}
		return nil, d.adopt(dir)
	}
	if made, err = d.makeFolder(path.Dir(dir)); err != nil {
		return made, err
	}
	err = d.Fs.Mkdir(d.path(dir), 0o755)
	if err == nil {
		return append([]string{dir}, made...), d.adopt(dir)
	}
	if errors.Is(err, fs.ErrExist) {
		var foundErr error
		if exists, foundErr = d.isFolder(dir); exists || foundErr != nil {
			err = foundErr
		}
	}
	return made, err
}

// isFolder reports whether there is a folder. The error is tree.ErrNoFolder or tree.ErrLeadsNowhere if
// none can be made because of something that has its name, or the name of one of its parents.
func (d Folder) isFolder(dir string) (bool, error) {
	switch info, err := d.Stat(dir); {
	case errors.Is(err, syscall.ENOTDIR):
		return false, tree.ErrNoFolder
	case errors.Is(err, fs.ErrNotExist):
		return false, d.LeadsNowhere(dir)
	case err != nil:
		return false, err
	case !info.IsDir():
		return false, tree.ErrNoFolder
	}
	return true, nil
}

// placeFile tries each way in order. An operation that fails because of the disk fails in
// the last way too.
func (d Folder) placeFile(from, to string) error {
	oldName, newName := d.path(from), d.path(to)
	if fsys, ok := d.Fs.(exclusiveRenamer); ok {
		if err := fsys.RenameExclusive(oldName, newName); err == nil || errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	if fsys, ok := d.Fs.(linker); ok {
		err := fsys.Link(oldName, newName)
		if err == nil {
			d.Fs.Remove(oldName) // or RemoveTemporaries does
		}
		if err == nil || errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return d.placeReserved(from, to)
}

// placeReserved reserves the name, and renames the file over the reservation.
func (d Folder) placeReserved(from, to string) error {
	f, err := d.Fs.OpenFile(d.path(to), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	reserved, err := f.Stat()
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	now, err := d.Stat(to)
	if err == nil && (now.Size() > 0 || !sameFile(now, reserved)) {
		return &fs.PathError{Op: "create", Path: to, Err: fs.ErrExist}
	}
	if err == nil {
		err = d.Fs.Rename(d.path(from), d.path(to))
	}
	if err != nil {
		d.removeAbandonedFile(to)
	}
	return err
}

// removeAbandonedFile removes an empty file. It takes the name away from the file before it
// looks at the size once more, so that a file that has taken its place meanwhile stays.
func (d Folder) removeAbandonedFile(name string) error {
	aside := tree.TemporaryName(name)
	if err := d.Fs.Rename(d.path(name), d.path(aside)); err != nil {
		return err
	}
	if info, err := d.Stat(aside); err == nil && info.Mode().IsRegular() && info.Size() == 0 {
		return d.Fs.Remove(d.path(aside))
	}
	if err := d.placeFile(aside, name); err != nil {
		return err
	}
	return &fs.PathError{Op: "create", Path: name, Err: fs.ErrExist}
}

// isSameFile reports whether name is another name of the file.
func (d Folder) isSameFile(name string, file fs.FileInfo) bool {
	info, err := d.Stat(name)
	return err == nil && info.Sys() != nil && os.SameFile(info, file)
}

// placeFolder is place for a folder, which appears as a whole.
func (d Folder) placeFolder(from, to string) error {
	if _, err := d.makeFolder(path.Dir(to)); err != nil {
		return err
	}
	err := d.renameFolderExclusive(from, to)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	present, statErr := d.Stat(to)
	if statErr != nil || !present.IsDir() {
		return err
	}
	names, listErr := d.ReadNames(to)
	switch {
	case listErr != nil && !errors.Is(listErr, fs.ErrNotExist), len(names) > 0:
		return err
	case time.Since(present.ModTime()) < tree.ReservedFor:
		return tree.ErrReserved
	}
	// This fails if the folder is no longer empty.
	if err := d.Fs.Remove(d.path(to)); err != nil {
		return &fs.PathError{Op: "remove", Path: to, Err: fs.ErrExist}
	}
	return d.renameFolderExclusive(from, to)
}

// renameFolderExclusive needs no reservation: no system renames a folder over a folder with
// files in it, and os.Root does not even rename it over an empty one.
func (d Folder) renameFolderExclusive(from, to string) error {
	oldName, newName := d.path(from), d.path(to)
	if fsys, ok := d.Fs.(exclusiveRenamer); ok {
		if err := fsys.RenameExclusive(oldName, newName); err == nil || errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	if _, err := d.Stat(to); err == nil { // some file systems in memory do not check
		return &fs.PathError{Op: "rename", Path: to, Err: fs.ErrExist}
	}
	return d.Fs.Rename(oldName, newName)
}
