package index

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// Limits of bounded reading. A provider's zip holds a few files and unpacks to
// a few times its size; these bounds are far above and still finite.
const (
	maxEntries   = 50_000
	maxDirectory = 4 << 20   // bytes of a zip's central directory
	maxUnpacked  = 16 << 30  // bytes of all files in an archive
	freeUnpacked = 256 << 20 // bytes any archive may unpack to…
	maxRatio     = 100       // …and beyond that, times its own size
)

// maxUnpackedFrom is what an archive of a size may unpack to.
func maxUnpackedFrom(size int64) int64 {
	return min(maxUnpacked, max(freeUnpacked, maxRatio*size))
}

// digestPackage reads a provider's zip to its end, twice: its bytes for the
// sha256, the files in it for their hashes. Nothing of it stays in memory.
func digestPackage(ctx context.Context, f afero.File, size int64, typ string) (d digest, err error) {
	if d.sha256, err = digestFile(ctx, f); err != nil {
		return d, err
	}
	z, err := openZip(ctx, f, size)
	if err != nil {
		return d, err
	}
	files, err := unpack(z.File)
	if err != nil {
		return d, err
	}
	program := files.program(typ)
	if program == nil {
		return d, found(NoBinary, "there is no file terraform-provider-%s at the root of the zip: pack the provider's binary there", typ)
	}
	detail := packageDetail{program: modeOf(program)}
	var packed string
	if d.h1, packed, err = files.hashes(ctx, z.File); err != nil {
		return d, archiveFinding(ctx, err)
	}
	if packed != d.h1 {
		detail.packedH1 = packed
	}
	d.content = detail.encode()
	return d, nil
}

// digestFile reads f from where it stands to its end.
func digestFile(ctx context.Context, f io.Reader) (sum wire.SHA256, err error) {
	h := sha256.New()
	if _, err := io.Copy(h, contextReader{ctx, f}); err != nil {
		return sum, err
	}
	return wire.SHA256(h.Sum(nil)), nil
}

// openZip reads a zip's directory and refuses what would unpack without bound
// or outside of its folder.
func openZip(ctx context.Context, f io.ReaderAt, size int64) (*zip.Reader, error) {
	bounded := &boundedReaderAt{ctx: ctx, r: f, bounded: true, left: maxDirectory}
	z, err := zip.NewReader(bounded, size)
	if err != nil {
		return nil, archiveFinding(ctx, err)
	}
	bounded.bounded = false // from here on the sizes in the directory are the bound
	if len(z.File) > maxEntries {
		return nil, found(TooLarge, "the zip has more than %d entries", maxEntries)
	}
	var unpacked uint64
	for _, member := range z.File {
		if f := checkEntry(member.Name); f != nil {
			return nil, f
		}
		unpacked += min(member.UncompressedSize64, maxUnpacked)
		if unpacked > uint64(maxUnpackedFrom(size)) {
			return nil, found(TooLarge, "the zip would unpack to more than %d bytes", maxUnpackedFrom(size))
		}
	}
	return z, nil
}

// checkEntry refuses the name of an archive's entry that go-getter, with which
// clients unpack, refuses, or that is no name everywhere. A backslash separates
// folders for go-getter, and is a part of the name on most systems.
func checkEntry(name string) *finding {
	separator := func(r rune) bool { return r == '/' || r == '\\' }
	switch {
	case path.IsAbs(name) || slices.Contains(strings.FieldsFunc(name, separator), ".."):
		return found(BadArchive, "it has an entry %.200q that leaves its folder, which clients refuse", name)
	case name == "" || strings.ContainsAny(name, "\\\x00\n"):
		return found(BadArchive, "it has an entry %.200q, which not every client can unpack: rename it", name)
	}
	return nil
}

// archiveFinding tells an archive that is broken from a scan that was ended
// and from a disk that fails.
func archiveFinding(ctx context.Context, err error) error {
	var f *finding
	var disk *fs.PathError
	if ctx.Err() != nil || errors.As(err, &f) || errors.As(err, &disk) {
		return err
	}
	return found(BadArchive, "the archive cannot be read to its end: copy it again (%v)", err)
}

// boundedReaderAt ends with ctx and, while it is bounded, after so many bytes:
// a zip's directory is read into memory as a whole.
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
	if offset < 0 { // a directory may place an entry there, and not every file takes it well
		return 0, zip.ErrFormat
	}
	if b.bounded {
		if b.left -= int64(len(p)); b.left < 0 {
			return 0, found(TooLarge, "the zip's directory is larger than %d bytes", maxDirectory)
		}
	}
	n, err := b.r.ReadAt(p, offset)
	// A zip64's end says how many entries there are. The reader believes it and
	// makes room for them before it has seen one.
	if n == 56 && string(p[:4]) == "PK\x06\x06" && binary.LittleEndian.Uint64(p[32:]) > maxEntries {
		return 0, found(TooLarge, "the zip has more than %d entries", maxEntries)
	}
	return n, err
}

// contextReader ends a long read with its scan.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, fmt.Errorf("reading ended: %w", err)
	}
	return c.r.Read(p)
}
