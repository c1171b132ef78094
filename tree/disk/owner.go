package disk

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"syscall"
)

// Servers do not run as root, but people give commands as root. What root makes in a tree gets
// the owner of the folder around it: the server could not read or replace it otherwise, nor make
// anything in it.

// adopt gives a new file or folder to the owner of the folder around it, if the process is root.
func (d Folder) adopt(name string) error {
	in := path.Dir(d.path(name))
	if d.Disk == "" || os.Geteuid() != 0 || in == d.path(name) {
		return nil
	}
	info, err := d.Fs.Stat(in)
	if err != nil {
		return err
	}
	return d.giveTo(info, name)
}

// giveTo gives a file or folder to the owner of another one.
func (d Folder) giveTo(other fs.FileInfo, name string) error {
	uid, gid, ok := Owner(other)
	if !ok || uid == os.Geteuid() && gid == os.Getegid() {
		return nil
	}
	return unlessRefused(d.Fs.Chown(d.path(name), uid, gid))
}

// permit gives a file the owner of the file that it is about to replace, and a mode. The owner
// comes first, so that the mode never opens the file to others. The umask of whoever edits a
// file does not close it to its readers.
func (d Folder) permit(name string, old fs.FileInfo, mode fs.FileMode) error {
	if d.Disk == "" {
		return nil
	}
	if os.Geteuid() == 0 {
		if err := d.giveTo(old, name); err != nil {
			return err
		}
	}
	return unlessRefused(d.Fs.Chmod(d.path(name), mode))
}

// unlessRefused returns nil for the error of a system that does not let this process decide on
// permissions: network file systems take root for nobody, and others keep no permissions.
func unlessRefused(err error) error {
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}
