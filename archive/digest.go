package archive

import (
	"io"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A Digest says what a file has in it, or why it is not offered.
type Digest struct {
	SHA256   wire.SHA256
	H1       string // of a package: Go's dirhash of its files, "h1:…"
	Size     int64
	Checksum uint32 // of a module folder: the CRC-32 of its tar
	Bad      *tree.Finding

	// Content is a small document itself. Of a package it is what else reading it told: see
	// PackageDetailOf, ModuleFolderIn, DoubtsOf and Summary.
	Content []byte
}

// Paced returns f, which calls wait before each read: reading can be paused.
func Paced(f afero.File, wait func()) afero.File { return pacedFile{f, wait} }

type pacedFile struct {
	afero.File
	wait func()
}

func (f pacedFile) Read(p []byte) (int, error) {
	f.wait()
	return f.File.Read(p)
}

func (f pacedFile) ReadAt(p []byte, offset int64) (int, error) {
	f.wait()
	return f.File.ReadAt(p, offset)
}

// A pacedReaderAt does the same for a folder that is packed.
type pacedReaderAt struct {
	io.ReaderAt
	wait func()
}

func (r pacedReaderAt) ReadAt(p []byte, offset int64) (int, error) {
	r.wait()
	return r.ReaderAt.ReadAt(p, offset)
}

// unpaced is for folders that are read for themselves.
func unpaced() {}
