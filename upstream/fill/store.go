package fill

import (
	"crypto/rand"
	"os"
	"path"
	"strings"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
)

// Names of files that are not there yet begin with a dot, by which the index
// ignores them. Small files end in one way and packages in another, since
// leftovers of the latter are told by a lock.
const (
	temporarySuffix = ".tmp"
	partSuffix      = ".part"
	temporaryText   = 10 // characters of rand.Text
)

// temporaryName is one beside name that nobody else has.
func temporaryName(name, suffix string) string {
	return path.Join(path.Dir(name), "."+path.Base(name)+"."+rand.Text()[:temporaryText]+suffix)
}

// isTemporary tells a name that temporaryName has made. Others may have files
// that are hidden, too, and end in the same.
func isTemporary(name, suffix string) bool {
	rest, ends := strings.CutSuffix(name, suffix)
	rest, hidden := strings.CutPrefix(rest, ".")
	dot := strings.LastIndexByte(rest, '.')
	return ends && hidden && dot > 0 && len(rest)-dot-1 == temporaryText &&
		strings.Trim(rest[dot+1:], "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") == ""
}

// create makes a file and the folders it lies in.
func create(fsys afero.Fs, name string) (afero.File, error) {
	if err := fsys.MkdirAll(path.Dir(name), 0o755); err != nil {
		return nil, err
	}
	return fsys.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
}

// write makes or replaces a small file, whole or not at all.
func write(in index.Part, name string, content []byte) (err error) {
	name = path.Join(in.Dir, name)
	temporary := temporaryName(name, temporarySuffix)
	f, err := create(in.Fs, temporary)
	if err != nil {
		return storageError(err)
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = in.Fs.Rename(temporary, name)
	}
	if err != nil {
		in.Fs.Remove(temporary)
		return storageError(err)
	}
	syncFolder(in.Fs, path.Dir(name))
	return nil
}

// syncFolder has a new name outlive a crash. Not every file system can, and none
// loses more by it than the name.
func syncFolder(fsys afero.Fs, dir string) {
	if f, err := fsys.Open(dir); err == nil {
		f.Sync()
		f.Close()
	}
}
