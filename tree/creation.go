package tree

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"time"
)

// What comes into a tree never replaces what has been copied or published there meanwhile:
// creation fails if the name is taken, whatever was looked at before. That needs no lock,
// since a lock can be lost and a copy takes none. Of the ways to do it, the first is used
// that the file system has:
//
//  1. a rename that replaces nothing. A watcher sees one event, and the change time of the
//     file changes once.
//  2. for a file, a second name. NFS has it, and no such rename.
//  3. for a file, the name is reserved by an empty file, which is made if there is none,
//     and renamed over only while it is still empty.
//
// A process that dies in the third way leaves the reservation. It is not offered, since
// nothing is in it, and after reservedFor it is taken for the leftover that it is. So is an
// empty folder, which somebody may have made to copy into it.

// An exclusiveRenamer is a file system that renames a file or folder, unless something has
// the new name: then the error wraps fs.ErrExist.
type exclusiveRenamer interface {
	RenameExclusive(from, to string) error
}

// A linker is a file system that gives a file another name, unless something has it: then
// the error wraps fs.ErrExist.
type linker interface {
	Link(from, to string) error
}

// reservedFor is how long an empty file or folder may be one that somebody is about to
// write to. A network file system may show a file as empty until its client has sent
// something of it.
const reservedFor = 5 * time.Minute

// ErrReserved: somebody is about to write a file or folder of that name. It is an
// ErrNotWritable, and over a moment later.
var ErrReserved error = notWritable("a file of this name is being written: try again in a moment")

// Reserved reports whether a file may be one that somebody is about to write to. It is
// empty, and has not been so for long.
func Reserved(file fs.FileInfo) bool {
	return file.Size() == 0 && time.Since(file.ModTime()) < reservedFor
}

// Abandoned reports whether an empty file is what a process has left that died before it
// wrote to it, or a copy that was interrupted as early. There is nothing to be kept.
func Abandoned(file fs.FileInfo) bool {
	return file.Mode().IsRegular() && file.Size() == 0 && !Reserved(file)
}

// place gives a file its name in the part, and makes the folder of that. The error wraps
// fs.ErrExist if the name is taken, and is ErrReserved if it may be so in a moment.
func (p Part) place(from, to string) error {
	if err := p.makeFolder(path.Dir(to)); err != nil {
		return err
	}
	err := p.placeFile(from, to)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	present, statErr := p.Lookup(to)
	switch {
	case statErr != nil:
		return err
	case p.isSameFile(from, present): // the answer to an earlier attempt has been lost
		return p.Fs.Remove(path.Join(p.Dir, from))
	case present.Mode().IsRegular() && Reserved(present):
		return ErrReserved
	case !Abandoned(present):
		return err
	}
	if err := p.removeAbandonedFile(to); err != nil {
		return err
	}
	return p.placeFile(from, to)
}

// makeFolder makes a folder and those that it lies in. What is in the way of one of them is
// not what the caller is about to create.
func (p Part) makeFolder(dir string) error {
	err := p.Fs.MkdirAll(path.Join(p.Dir, dir), 0o755)
	switch {
	case !errors.Is(err, fs.ErrExist):
		return err
	case p.leadsNowhere(dir):
		return errLeadsNowhere
	}
	return errNoFolder
}

// placeFile tries each way in turn. What fails because of the disk fails in the last one
// too.
func (p Part) placeFile(from, to string) error {
	oldName, newName := path.Join(p.Dir, from), path.Join(p.Dir, to)
	if fsys, ok := p.Fs.(exclusiveRenamer); ok {
		if err := fsys.RenameExclusive(oldName, newName); err == nil || errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	if fsys, ok := p.Fs.(linker); ok {
		err := fsys.Link(oldName, newName)
		if err == nil {
			p.Fs.Remove(oldName) // or RemoveTemporaries does
		}
		if err == nil || errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return p.placeReserved(from, to)
}

// placeReserved reserves the name, and renames over the reservation.
func (p Part) placeReserved(from, to string) error {
	f, err := p.Fs.OpenFile(path.Join(p.Dir, to), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
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
	now, err := p.Lookup(to)
	if err == nil && (now.Size() > 0 || !sameFile(now, reserved)) {
		return &fs.PathError{Op: "create", Path: to, Err: fs.ErrExist}
	}
	if err == nil {
		err = p.Fs.Rename(path.Join(p.Dir, from), path.Join(p.Dir, to))
	}
	if err != nil {
		p.removeAbandonedFile(to)
	}
	return err
}

// removeAbandonedFile removes an empty file. Whatever has come into its place stays: the
// name is taken away from it before it is looked at once more.
func (p Part) removeAbandonedFile(name string) error {
	aside := TemporaryName(name)
	if err := p.Fs.Rename(path.Join(p.Dir, name), path.Join(p.Dir, aside)); err != nil {
		return err
	}
	if info, err := p.Lookup(aside); err == nil && info.Mode().IsRegular() && info.Size() == 0 {
		return p.Fs.Remove(path.Join(p.Dir, aside))
	}
	if err := p.placeFile(aside, name); err != nil {
		return err
	}
	return &fs.PathError{Op: "create", Path: name, Err: fs.ErrExist}
}

// isSameFile reports whether a name is another one of a file.
func (p Part) isSameFile(name string, file fs.FileInfo) bool {
	info, err := p.Lookup(name)
	return err == nil && info.Sys() != nil && os.SameFile(info, file)
}

// placeFolder is place for a folder, which comes to its place whole.
func (p Part) placeFolder(from, to string) error {
	if err := p.makeFolder(path.Dir(to)); err != nil {
		return err
	}
	err := p.renameFolderExclusive(from, to)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	present, statErr := p.Lookup(to)
	if statErr != nil || !present.IsDir() {
		return err
	}
	entries, listErr := p.ReadDir(to)
	switch {
	case listErr != nil || len(entries) > 0:
		return err
	case time.Since(present.ModTime()) < reservedFor:
		return ErrReserved
	}
	// It fails if something has come into the folder meanwhile.
	if err := p.Fs.Remove(path.Join(p.Dir, to)); err != nil {
		return &fs.PathError{Op: "remove", Path: to, Err: fs.ErrExist}
	}
	return p.renameFolderExclusive(from, to)
}

// renameFolderExclusive needs no reservation: no system renames a folder over one that has
// something in it, and os.Root none over an empty one.
func (p Part) renameFolderExclusive(from, to string) error {
	oldName, newName := path.Join(p.Dir, from), path.Join(p.Dir, to)
	if fsys, ok := p.Fs.(exclusiveRenamer); ok {
		if err := fsys.RenameExclusive(oldName, newName); err == nil || errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	if _, err := p.Lookup(to); err == nil { // some file systems in memory do not look
		return &fs.PathError{Op: "rename", Path: to, Err: fs.ErrExist}
	}
	return p.Fs.Rename(oldName, newName)
}
