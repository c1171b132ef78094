package archive

import (
	"io"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/index/moduledoc"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A Digest has the results of reading a file, or the reason why it is not offered.
type Digest struct {
	SHA256     wire.SHA256
	FileHashes wire.FileHashes // of a package
	Size       int64
	Checksum   uint32 // of a module folder: the CRC-32 of its tar
	Bad        *tree.Finding

	// Content is the content of a small document. Of a package it has further results of
	// reading: see PackageDetailOf, ModuleFolderIn, DoubtsOf and SummaryIn.
	Content []byte
}

// IsOutdated reports whether this release reads more of a package than the digest has.
func (d Digest) IsOutdated(ofModule bool) bool {
	return ofModule && d.Bad == nil && !moduledoc.IsCurrent(SummaryIn(d.Content))
}

// PackageHashes returns the hashes of a provider's package: the hashes of its files, and the hashes of
// the zip's entries where they differ. Clients compare the package with both (checklist 68).
func (d Digest) PackageHashes() []string {
	return wire.ListHashes(d.FileHashes, PackageDetailOf(d.Content).PackedHashes)
}

// Paced returns f with a call of wait before each read, so that reading can be paused.
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

// A pacedReaderAt calls wait before each read of a packed folder.
type pacedReaderAt struct {
	io.ReaderAt
	wait func()
}

func (r pacedReaderAt) ReadAt(p []byte, offset int64) (int, error) {
	r.wait()
	return r.ReaderAt.ReadAt(p, offset)
}

// unpaced is the wait for folders that are read outside of a scan.
func unpaced() {}
