package tree

import (
	"io/fs"

	"github.com/spf13/afero"
)

// Observed returns the part with the same files. It calls note with each error of opening or
// reading them, and with the path in the part: a scan may take such an error for a property
// of the file. In an object store the error of a scan is ErrStore itself, and nothing is noted.
func (p Part) Observed(note func(name string, err error)) Part {
	if _, inStore := p.Storage.(Signer); !inStore {
		p.noted = note
	}
	return p
}

// note notes an error of a file system, and not a Finding.
func (p Part) note(name string, err error) {
	if _, found := err.(*Finding); p.noted != nil && err != nil && !found {
		p.noted(name, err)
	}
}

// An observedFile is an open file of a part that is observed.
type observedFile struct {
	afero.File
	noted func(name string, err error)
	name  string
}

func (f observedFile) Read(p []byte) (int, error) {
	n, err := f.File.Read(p)
	f.note(err)
	return n, err
}

func (f observedFile) ReadAt(p []byte, offset int64) (int, error) {
	n, err := f.File.ReadAt(p, offset)
	f.note(err)
	return n, err
}

func (f observedFile) Stat() (fs.FileInfo, error) {
	info, err := f.File.Stat()
	f.note(err)
	return info, err
}

func (f observedFile) note(err error) {
	if err != nil {
		f.noted(f.name, err)
	}
}
