package tree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"

	"golang.org/x/sync/errgroup"
)

// A Bucket has no directories, no rename, and no half-written files. New content is spooled
// to the local disk first, so that it can be checked, and then put under its name as a
// whole.

// bucketWorkers is how many files of a directory are copied or removed at once. Each of them
// waits for the store.
const bucketWorkers = 16

// Mkdir implements afero.Fs. A directory exists as soon as there is a file below it.
func (bucketFs) Mkdir(string, os.FileMode) error { return nil }

// MkdirAll implements afero.Fs like Mkdir.
func (bucketFs) MkdirAll(string, os.FileMode) error { return nil }

// Remove implements afero.Fs for a file. Removing a file that does not exist is no error.
func (b bucketFs) Remove(name string) error {
	return StoreError(b.bucket.Remove(context.Background(), name))
}

// RemoveAll implements afero.Fs.
func (b bucketFs) RemoveAll(name string) error {
	files, err := b.below(context.Background(), name)
	if err != nil {
		return err
	}
	for i := range files {
		files[i] = path.Join(name, files[i])
	}
	return b.removeFiles(context.Background(), append(files, name))
}

// Rename implements afero.Fs for a file, which has both names for a moment.
func (b bucketFs) Rename(from, to string) error {
	err := b.bucket.Copy(context.Background(), from, to)
	if err == nil {
		err = b.bucket.Remove(context.Background(), from)
	}
	return StoreError(err)
}

// below returns the files below a directory, by their paths in it.
func (b bucketFs) below(ctx context.Context, dir string) (names []string, err error) {
	err = b.bucket.Files(ctx, dir, func(name string, _ fs.FileInfo) error {
		names = append(names, name[len(dir)+1:])
		return nil
	})
	return names, StoreError(err)
}

func (b bucketFs) removeFiles(ctx context.Context, names []string) error {
	return inBucket(ctx, names, b.bucket.Remove)
}

// inBucket calls do for each of the names, several at once.
func inBucket(ctx context.Context, names []string, do func(ctx context.Context, name string) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(bucketWorkers)
	for _, name := range names {
		g.Go(func() error { return do(ctx, name) })
	}
	return StoreError(g.Wait())
}

// replace puts a small file into a Bucket.
func replace(b Bucket, name string, content []byte) error {
	_, err := b.Replace(context.Background(), name, bytes.NewReader(content))
	return StorageError(StoreError(err))
}

// newSpool begins a TemporaryFile for a Bucket: a file in the system's temporary directory.
// Where the system allows it, the file never has a name, so that a killed process leaves
// nothing behind.
func (p Part) newSpool() (*TemporaryFile, error) {
	f, err := os.CreateTemp("", "terraform-registry-upload-")
	if err != nil {
		return nil, spoolError(err)
	}
	t := &TemporaryFile{File: f, part: p, bucket: p.Bucket()}
	if os.Remove(f.Name()) != nil {
		t.name = f.Name()
	}
	return t, nil
}

// spoolError is StorageError for a file that is not in the tree.
func spoolError(err error) error {
	if err = StorageError(err); errors.Is(err, ErrDiskFull) {
		return fmt.Errorf("%w: make room for temporary files", ErrDiskFull)
	}
	return err
}

// put sends a spooled file to the store, by Create or Replace.
func (t *TemporaryFile) put(ctx context.Context, write func(context.Context, string, io.Reader) (fs.FileInfo, error), name string) (fs.FileInfo, error) {
	defer t.Discard()
	info, err := t.File.Stat()
	if err != nil {
		return nil, spoolError(err)
	}
	stored, err := write(ctx, path.Join(t.part.Dir, name), io.NewSectionReader(t.File, 0, info.Size()))
	switch {
	case errors.Is(err, fs.ErrExist), err == nil && stored.Size() != info.Size():
		return nil, ErrChanged
	case err != nil && ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, StorageError(StoreError(err))
	}
	return stored, nil
}

// discardSpool removes a spooled file.
func (t *TemporaryFile) discardSpool() {
	t.File.Close()
	if t.name != "" {
		os.Remove(t.name)
	}
}
