package treetest

import (
	"io/fs"
	"sync/atomic"

	"github.com/spf13/afero"
)

// A CountedFs counts the bytes that are read from its files.
type CountedFs struct {
	afero.Fs
	Read *atomic.Int64
}

// Open implements afero.Fs.
func (c CountedFs) Open(name string) (afero.File, error) {
	f, err := c.Fs.Open(name)
	return CountedFile{f, c.Read}, err
}

// OpenFile implements afero.Fs.
func (c CountedFs) OpenFile(name string, flag int, mode fs.FileMode) (afero.File, error) {
	f, err := c.Fs.OpenFile(name, flag, mode)
	return CountedFile{f, c.Read}, err
}

// A CountedFile counts the bytes that are read from it.
type CountedFile struct {
	afero.File
	Bytes *atomic.Int64
}

func (f CountedFile) Read(p []byte) (int, error) {
	n, err := f.File.Read(p)
	f.Bytes.Add(int64(n))
	return n, err
}

// ReadAt implements afero.File.
func (f CountedFile) ReadAt(p []byte, offset int64) (int, error) {
	n, err := f.File.ReadAt(p, offset)
	f.Bytes.Add(int64(n))
	return n, err
}
