package blob

import (
	"errors"
	"io"
	"io/fs"
)

// A directory is an open directory. It is listed on the first call of ReadDir.
type directory struct {
	bucket *Bucket
	name   string
	rest   []fs.DirEntry
	listed bool
}

// FileSystem returns the Bucket of the directory. The registry finds the Bucket through
// it, since Caddy hides file systems behind a wrapper that has only Open.
func (d *directory) FileSystem() fs.FS { return d.bucket }

// Stat implements fs.File.
func (d *directory) Stat() (fs.FileInfo, error) { return directoryInfo(d.name), nil }

// Read implements fs.File.
func (d *directory) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.name, Err: errors.New("is a directory")}
}

// Close implements fs.File.
func (d *directory) Close() error { return nil }

// ReadDir implements fs.ReadDirFile.
func (d *directory) ReadDir(n int) ([]fs.DirEntry, error) {
	if !d.listed {
		entries, err := d.bucket.ReadDir(d.name)
		if err != nil {
			return nil, err
		}
		d.rest, d.listed = entries, true
	}
	switch {
	case n <= 0:
		n = len(d.rest)
	case len(d.rest) == 0:
		return nil, io.EOF
	}
	n = min(n, len(d.rest))
	entries := d.rest[:n]
	d.rest = d.rest[n:]
	return entries, nil
}
