package fill

import (
	"bytes"
	"io"
	"os"
	"path"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A Filled file is one of a release that is verified and there, though the index
// may not have seen it yet.
type Filled struct {
	// Name is the last part of its URL.
	Name string

	// Version and Platform, OS_ARCH, of what it is of; Platform is empty for what
	// vouches for all packages of a version.
	Version, Platform string

	Size   int64
	SHA256 wire.SHA256

	H1      []string // of the files in a package, "h1:…"
	tree    *trees   // not its root: that would stay open as long as the file is known
	path    string   // in the tree's providers
	modTime time.Time
	info    os.FileInfo
	content []byte // of what is not a package
}

// Open opens the file as it was verified. The error is index.ErrChanged when it
// is not that one any more.
func (f *Filled) Open() (io.ReadSeekCloser, error) {
	if f.content != nil {
		return inMemory{bytes.NewReader(f.content)}, nil
	}
	tree, err := f.tree.get()
	if err != nil {
		return nil, index.ErrChanged
	}
	file, err := tree.Providers.Fs.Open(path.Join(tree.Providers.Dir, f.path))
	if err != nil {
		return nil, index.ErrChanged
	}
	if info, err := file.Stat(); err != nil || !f.is(info) {
		file.Close()
		return nil, index.ErrChanged
	}
	return file, nil
}

// is tells whether a file is the one that was verified.
func (f *Filled) is(info os.FileInfo) bool {
	return info.Size() == f.Size && info.ModTime().Equal(f.modTime) && sameFile(info, f.info)
}

// sameFile is as os.SameFile, where the file system tells files apart.
func sameFile(a, b os.FileInfo) bool { return a.Sys() == nil || os.SameFile(a, b) }

// there tells whether the file still is.
func (f *Filled) there() bool {
	tree, err := f.tree.get()
	if err != nil {
		return false
	}
	info, err := tree.Providers.Fs.Stat(path.Join(tree.Providers.Dir, f.path))
	return err == nil && f.is(info)
}

type inMemory struct{ *bytes.Reader }

func (inMemory) Close() error { return nil }
