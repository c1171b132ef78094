package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// A spooledFile is a TemporaryFile for a Bucket: a file in the system's temporary directory.
// Where the system allows it, the file never has a name, so that a killed process leaves
// nothing behind.
type spooledFile struct {
	afero.File
	to    Folder
	named bool
}

// NewTemporary implements tree.Storage.
func (d Folder) NewTemporary(context.Context, string) (tree.TemporaryFile, error) {
	f, err := os.CreateTemp("", "terraform-registry-upload-")
	if err != nil {
		return nil, spoolError(err)
	}
	return &spooledFile{f, d, os.Remove(f.Name()) != nil}, nil
}

// spoolError is tree.StorageError for a file that is not in the tree.
func spoolError(err error) error {
	if err = tree.StorageError(err); errors.Is(err, tree.ErrDiskFull) {
		return fmt.Errorf("%w: make room for temporary files", tree.ErrDiskFull)
	}
	return err
}

// Write implements tree.TemporaryFile.
func (f *spooledFile) Write(b []byte) (int, error) {
	n, err := f.File.Write(b)
	return n, spoolError(err)
}

// SyncAhead implements tree.TemporaryFile: the disk is not where the file will be.
func (f *spooledFile) SyncAhead() {}

// Rename implements tree.TemporaryFile.
func (f *spooledFile) Rename(ctx context.Context, name string) (fs.FileInfo, error) {
	return f.put(ctx, f.to.bucket.Replace, name)
}

// Create implements tree.TemporaryFile.
func (f *spooledFile) Create(ctx context.Context, name string) (fs.FileInfo, error) {
	return f.put(ctx, f.to.bucket.Create, name)
}

// put sends the file to the store, by Create or Replace.
func (f *spooledFile) put(ctx context.Context, write func(context.Context, string, io.Reader) (fs.FileInfo, error), name string) (fs.FileInfo, error) {
	defer f.Discard()
	info, err := f.File.Stat()
	if err != nil {
		return nil, spoolError(err)
	}
	stored, err := write(ctx, f.to.path(name), io.NewSectionReader(f.File, 0, info.Size()))
	switch {
	case errors.Is(err, fs.ErrExist), err == nil && stored.Size() != info.Size():
		return nil, tree.ErrChanged
	case err != nil && ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, tree.StorageError(storeError(err))
	}
	return stored, nil
}

// Discard implements tree.TemporaryFile.
func (f *spooledFile) Discard() {
	f.File.Close()
	if f.named {
		os.Remove(f.Name())
	}
}
