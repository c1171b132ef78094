package iofs

import (
	"errors"
	"io"
	"io/fs"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// A seekFile adds ReadAt to a file that can only seek, like the files of object stores.
// There every seek is a request, so a seekFile does not seek to continue a read or to return
// the size. It serves one reader at a time.
type seekFile struct {
	afero.File
	size   int64
	offset int64 // of File; -1 if it is not known
	next   int64 // where Read begins
}

// withReadAt returns f itself if it has ReadAt, or if it cannot seek either.
func withReadAt(f afero.File, size int64) afero.File {
	if _, err := f.ReadAt(nil, 0); err == nil || errors.Is(err, io.EOF) {
		return f
	}
	offset, err := f.Seek(0, io.SeekCurrent)
	if err != nil {
		return f
	}
	return &seekFile{File: f, size: size, offset: offset, next: offset}
}

// Seek implements io.Seeker. The next read seeks in File.
func (f *seekFile) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += f.next
	case io.SeekEnd:
		offset += f.size
	}
	if offset < 0 {
		return 0, fs.ErrInvalid
	}
	f.next = offset
	return offset, nil
}

// Read implements io.Reader.
func (f *seekFile) Read(p []byte) (int, error) {
	n, err := f.readFrom(p, f.next)
	f.next += int64(n)
	return n, err
}

// ReadAt implements io.ReaderAt for one reader at a time.
func (f *seekFile) ReadAt(p []byte, offset int64) (int, error) {
	return tree.ReadAcross(p, offset, f.readFrom)
}

func (f *seekFile) readFrom(p []byte, offset int64) (int, error) {
	if offset != f.offset {
		f.offset = -1
		if _, err := f.File.Seek(offset, io.SeekStart); err != nil {
			return 0, err
		}
		f.offset = offset
	}
	n, err := f.File.Read(p)
	f.offset += int64(n)
	return n, err
}
