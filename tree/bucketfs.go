package tree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/afero"
)

// bucketFs implements afero.Fs on a Bucket.
type bucketFs struct {
	afero.FromIOFS
	bucket Bucket
}

func newBucketFs(b Bucket) bucketFs { return bucketFs{afero.FromIOFS{FS: b}, b} }

// Name implements afero.Fs.
func (b bucketFs) Name() string { return "bucket" }

// Stat implements afero.Fs with a single request.
func (b bucketFs) Stat(name string) (os.FileInfo, error) {
	info, err := b.bucket.Stat(name)
	return info, StoreError(err)
}

// Open implements afero.Fs.
func (b bucketFs) Open(name string) (afero.File, error) {
	f, err := b.FromIOFS.Open(name)
	return f, StoreError(err)
}

// readDirectory returns the entries of a directory. One request lists a thousand names.
func (b bucketFs) readDirectory(dir string) ([]fs.FileInfo, error) {
	entries, err := b.bucket.ReadDir(dir)
	if err != nil {
		return nil, StoreError(err)
	}
	infos := make([]fs.FileInfo, len(entries))
	for i, e := range entries {
		if infos[i], err = e.Info(); err != nil {
			return nil, StoreError(err)
		}
	}
	return infos, nil
}

// Bucket returns the Bucket that the part lies in, or nil if it lies elsewhere.
func (p Part) Bucket() Bucket {
	switch b := p.Fs.(type) {
	case bucketFs:
		return b.bucket
	case listedFs:
		return b.bucket
	}
	return nil
}

// StoreError classifies an error of a Bucket. It returns the store's statements about a file
// unchanged: that it exists, that it does not exist, or that it may not be read. Everything
// else becomes an ErrStore.
func StoreError(err error) error {
	switch {
	case err == nil, err == io.EOF:
		return err
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrExist), errors.Is(err, fs.ErrPermission), errors.Is(err, context.Canceled), errors.Is(err, ErrStore):
		return err
	}
	return fmt.Errorf("%w: %w", ErrStore, WithoutPath(err))
}

// An object is an open file of a Bucket. It remembers that reading failed: code that reads
// an archive would take an error, or an early end, for damage of the archive.
type object struct {
	afero.File
	rest   int64 // bytes that Read has not returned yet
	failed error
}

// Read implements io.Reader.
func (o *object) Read(p []byte) (int, error) {
	n, err := o.File.Read(p)
	if o.rest -= int64(n); err == io.EOF && o.rest > 0 {
		err = io.ErrUnexpectedEOF
	}
	return n, o.note(err)
}

// Seek implements io.Seeker.
func (o *object) Seek(offset int64, whence int) (int64, error) {
	at, err := o.File.Seek(offset, whence)
	if info, statErr := o.File.Stat(); statErr == nil {
		o.rest = info.Size() - at
	}
	return at, o.note(err)
}

// ReadAt implements io.ReaderAt.
func (o *object) ReadAt(p []byte, offset int64) (int, error) {
	n, err := o.File.ReadAt(p, offset)
	return n, o.note(err)
}

func (o *object) note(err error) error {
	if err = StoreError(err); err != nil && err != io.EOF {
		o.failed = err
	}
	return err
}

// ReadFailure returns the error that reading a file in a Bucket failed with, if any.
func ReadFailure(f afero.File) error {
	if o, ok := f.(*object); ok {
		return o.failed
	}
	return nil
}

var (
	_ afero.Fs  = bucketFs{}
	_ fs.StatFS = Bucket(nil)
)
