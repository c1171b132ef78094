package tree

import (
	"os"
	"strings"

	"github.com/spf13/afero"
)

// Observed returns the part with the same files. It calls note with each error of opening or
// reading them, and with the path in the part: a scan may take such an error for a property
// of the file. In a Bucket the error of a scan is ErrStore itself, and nothing is noted.
func (p Part) Observed(note func(name string, err error)) Part {
	if p.Bucket() == nil {
		dir := p.Dir
		p.Fs = observedFs{p.Fs, func(name string, err error) {
			if err != nil {
				note(strings.TrimPrefix(strings.TrimPrefix(name, dir), "/"), err)
			}
		}}
	}
	return p
}

// An observedFs notes failures to read its files.
type observedFs struct {
	afero.Fs
	note func(name string, err error)
}

func (o observedFs) Open(name string) (afero.File, error) {
	f, err := o.Fs.Open(name)
	if err != nil {
		o.note(name, err)
		return nil, err
	}
	return observedFile{f, o.note, name}, nil
}

func (o observedFs) Stat(name string) (os.FileInfo, error) {
	info, err := o.Fs.Stat(name)
	o.note(name, err)
	return info, err
}

// An observedFile is an open file of an observedFs.
type observedFile struct {
	afero.File
	note func(name string, err error)
	name string
}

func (f observedFile) Read(p []byte) (int, error) {
	n, err := f.File.Read(p)
	f.note(f.name, err)
	return n, err
}

func (f observedFile) ReadAt(p []byte, offset int64) (int, error) {
	n, err := f.File.ReadAt(p, offset)
	f.note(f.name, err)
	return n, err
}

func (f observedFile) Readdir(count int) ([]os.FileInfo, error) {
	infos, err := f.File.Readdir(count)
	f.note(f.name, err)
	return infos, err
}

func (f observedFile) Stat() (os.FileInfo, error) {
	info, err := f.File.Stat()
	f.note(f.name, err)
	return info, err
}
