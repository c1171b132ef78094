package archive

import (
	"archive/zip"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// Limits of reading an archive. Providers and modules have a few files and unpack to a few
// times their size; these limits are far above that but finite.
const (
	maxEntries   = 50_000
	maxDirectory = 4 << 20   // bytes of a zip's central directory, or of all names in a tar
	maxUnpacked  = 16 << 30  // bytes of all files in an archive
	freeUnpacked = 256 << 20 // bytes any archive may unpack to…
	maxRatio     = 100       // …and beyond that, times its own size
)

// maxUnpackedFrom returns how many bytes an archive of that size may unpack to.
func maxUnpackedFrom(size int64) int64 {
	return min(maxUnpacked, max(freeUnpacked, maxRatio*size))
}

// OpenZip reads the directory of a zip, unless it would take much memory. The error is a
// *PackageError if the zip is at fault, and otherwise an error of ctx or of the file.
func OpenZip(ctx context.Context, f io.ReaderAt, size int64) (*zip.Reader, error) {
	z, err := readDirectory(ctx, f, size)
	return z, asPackageError(err)
}

func readDirectory(ctx context.Context, f io.ReaderAt, size int64) (*zip.Reader, error) {
	bounded := &boundedReaderAt{ctx: ctx, r: f, bounded: true, left: maxDirectory}
	z, err := zip.NewReader(bounded, size)
	if err != nil {
		return nil, archiveFinding(ctx, err)
	}
	bounded.bounded = false // from here on, the sizes in the directory are the bound
	if len(z.File) > maxEntries {
		return nil, tree.Findingf(tree.TooLarge, "the zip has more than %d entries", maxEntries)
	}
	return z, nil
}

// openZip reads a zip's directory, and refuses a zip that would unpack without
// bound or outside of its folder.
func openZip(ctx context.Context, f io.ReaderAt, size int64) (*zip.Reader, error) {
	z, err := readDirectory(ctx, f, size)
	if err != nil {
		return nil, err
	}
	var unpacked uint64
	for _, member := range z.File {
		if f := checkEntry(member.Name); f != nil {
			return nil, f
		}
		unpacked += min(member.UncompressedSize64, maxUnpacked)
		if unpacked > uint64(maxUnpackedFrom(size)) {
			return nil, tree.Findingf(tree.TooLarge, "the zip would unpack to more than %d bytes", maxUnpackedFrom(size))
		}
	}
	return z, nil
}

// checkEntry refuses the names of entries that go-getter refuses, with which clients unpack,
// and names that are not valid on every system. go-getter takes a backslash for a separator;
// on most systems it is part of the name.
func checkEntry(name string) *tree.Finding {
	separator := func(r rune) bool { return r == '/' || r == '\\' }
	switch {
	case path.IsAbs(name) || slices.Contains(strings.FieldsFunc(name, separator), ".."):
		return tree.Findingf(tree.BadArchive, "it has an entry %.200q that leaves its folder, which clients refuse", name)
	case name == "" || strings.ContainsAny(name, "\\\x00\n"):
		return tree.Findingf(tree.BadArchive, "it has an entry %.200q, which not every client can unpack: rename it", name)
	}
	return nil
}

// archiveFinding turns an error of reading an archive into the finding that the archive is
// broken, unless the scan was ended or the disk failed.
func archiveFinding(ctx context.Context, err error) error {
	var f *tree.Finding
	var disk *fs.PathError
	if ctx.Err() != nil || errors.As(err, &f) || errors.As(err, &disk) {
		return err
	}
	return tree.Findingf(tree.BadArchive, "the archive cannot be read to its end: copy it again (%v)", err)
}

// A boundedReaderAt ends with ctx and, while it is bounded, after left bytes, since a zip's
// directory is read into memory as a whole.
type boundedReaderAt struct {
	ctx     context.Context
	r       io.ReaderAt
	bounded bool
	left    int64
}

func (b *boundedReaderAt) ReadAt(p []byte, offset int64) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	if offset < 0 { // a directory may claim such an offset, which not every file handles well
		return 0, zip.ErrFormat
	}
	if b.bounded {
		if b.left -= int64(len(p)); b.left < 0 {
			return 0, tree.Findingf(tree.TooLarge, "the zip's directory is larger than %d bytes", maxDirectory)
		}
	}
	n, err := b.r.ReadAt(p, offset)
	// The end of a zip64 claims a number of entries, and archive/zip allocates memory
	// for all of them before it has read one.
	if n == 56 && string(p[:4]) == "PK\x06\x06" && binary.LittleEndian.Uint64(p[32:]) > maxEntries {
		return 0, tree.Findingf(tree.TooLarge, "the zip has more than %d entries", maxEntries)
	}
	return n, err
}
