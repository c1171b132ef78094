package treetest

import (
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"github.com/spf13/afero"
	"github.com/spf13/afero/mem"
)

// Fs returns the bucket as a file system for the test itself: its operations are not counted
// and do not fail.
func (b *Bucket) Fs() afero.Fs { return bucketFs{afero.NewMemMapFs(), b} }

// A bucketFs has the part of an afero.Fs that tests need.
type bucketFs struct {
	afero.Fs // the rest
	bucket   *Bucket
}

func (f bucketFs) MkdirAll(string, os.FileMode) error { return nil }

func (f bucketFs) Open(name string) (afero.File, error) { return f.OpenFile(name, os.O_RDONLY, 0) }

func (f bucketFs) OpenFile(name string, flag int, _ os.FileMode) (afero.File, error) {
	o, ok := f.bucket.get(name)
	if !ok && flag&os.O_CREATE == 0 {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	file := mem.NewFileHandle(mem.CreateFile(path.Base(name)))
	if flag&os.O_TRUNC == 0 {
		file.Write(o.content)
		file.Seek(0, io.SeekStart)
	}
	if flag == os.O_RDONLY {
		return file, nil
	}
	return &writtenObject{file, f.bucket, name}, nil
}

func (f bucketFs) Stat(name string) (os.FileInfo, error) {
	if o, ok := f.bucket.get(name); ok {
		return o.info(name), nil
	}
	return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
}

func (f bucketFs) Chtimes(name string, _, at time.Time) error {
	o, _ := f.bucket.get(name)
	f.bucket.Put(name, string(o.content), at)
	return nil
}

func (f bucketFs) RemoveAll(name string) error {
	f.bucket.mutex.Lock()
	defer f.bucket.mutex.Unlock()
	for key := range f.bucket.objects {
		if key == name || strings.HasPrefix(key, name+"/") {
			delete(f.bucket.objects, key)
		}
	}
	return nil
}

// A writtenObject enters its bucket when it is closed.
type writtenObject struct {
	*mem.File
	bucket *Bucket
	name   string
}

func (o *writtenObject) Close() error {
	o.Seek(0, io.SeekStart)
	content, err := io.ReadAll(o.File)
	o.bucket.Put(o.name, string(content), time.Now())
	return err
}
