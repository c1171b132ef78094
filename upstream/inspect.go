package upstream

import (
	"archive/zip"
	"errors"
	"io"
	"slices"
	"strings"

	"golang.org/x/mod/sumdb/dirhash"
)

// Limits of what is read of a package that nobody has vouched for byte by byte:
// those of the index.
const (
	maxDirectory = 4 << 20
	maxEntries   = 50_000
	freeUnpacked = 256 << 20
	maxRatio     = 100
)

var errNoProvider = errors.New("it is not a zip with the provider at its root")

// inspect looks whether clients could use a package, as the index will: what it
// would withhold is not worth keeping. The files in it are read only to compare
// them with hashes, any of which will do; without any they are not.
func inspect(f io.ReaderAt, size int64, typ string, h1 []string) error {
	directory := &bounded{ReaderAt: f, left: maxDirectory}
	z, err := zip.NewReader(directory, size)
	if err != nil || len(z.File) > maxEntries || !slices.ContainsFunc(z.File, func(f *zip.File) bool { return isProvider(f.Name, typ) }) {
		return errNoProvider
	}
	if len(h1) == 0 {
		return nil
	}
	directory.left = 1<<63 - 1
	files := make(map[string]*zip.File, len(z.File))
	names := make([]string, len(z.File))
	var unpacked uint64
	for i, file := range z.File {
		names[i], files[file.Name] = file.Name, file
		unpacked += file.UncompressedSize64
		if limit := uint64(max(freeUnpacked, maxRatio*size)); file.UncompressedSize64 > limit || unpacked > limit {
			return errNoProvider
		}
	}
	sum, err := dirhash.Hash1(names, func(name string) (io.ReadCloser, error) { return files[name].Open() })
	if err != nil {
		return errNoProvider
	}
	if !slices.Contains(h1, sum) {
		return ErrBadChecksum
	}
	return nil
}

// isProvider tells the file that clients look for in a package.
func isProvider(name, typ string) bool {
	rest, ok := strings.CutPrefix(strings.TrimPrefix(name, "./"), "terraform-provider-"+typ)
	return ok && !strings.Contains(rest, "/") && (rest == "" || rest[0] == '_' || rest[0] == '.')
}

// A bounded reader ends where a zip's directory would be too large to be kept
// in memory.
type bounded struct {
	io.ReaderAt
	left int64
}

func (b *bounded) ReadAt(p []byte, offset int64) (int, error) {
	if b.left -= int64(len(p)); b.left < 0 {
		return 0, errNoProvider
	}
	return b.ReaderAt.ReadAt(p, offset)
}
