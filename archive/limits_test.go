package archive

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/afero"
	"github.com/spf13/afero/mem"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// fileOf returns a file with that content.
func fileOf(content []byte) afero.File {
	data := mem.CreateFile("archive")
	mem.NewFileHandle(data).Write(content)
	return mem.NewReadOnlyFileHandle(data)
}

// digestPackage reads a package of the provider called demo.
func digestPackage(ctx context.Context, f afero.File, size int64) (Digest, error) {
	return ReadPackage(ctx, f, size, "demo", wire.SHA256{})
}

// digestModule reads the package of a module.
func digestModule(ctx context.Context, f afero.File, size int64, format string) (Digest, error) {
	return ReadModule(ctx, f, size, format, wire.SHA256{})
}

func digestOf(content []byte) (Digest, error) {
	return digestPackage(context.Background(), fileOf(content), int64(len(content)))
}

// fast is a compressor that takes little time.
func fast(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestSpeed) }

// zipOf packs entries given as names and contents in turn; a name that ends in
// a slash is a folder.
func zipOf(namesAndContents ...string) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	z.RegisterCompressor(zip.Deflate, fast)
	for i := 0; i < len(namesAndContents); i += 2 {
		h := &zip.FileHeader{Name: namesAndContents[i]}
		if namesAndContents[i+1] != "" {
			h.Method = zip.Deflate
		}
		w, err := z.CreateHeader(h)
		if err != nil {
			panic(err)
		}
		if !strings.HasSuffix(namesAndContents[i], "/") {
			io.WriteString(w, namesAndContents[i+1])
		}
	}
	z.Close()
	return b.Bytes()
}

const binaryName = "terraform-provider-demo_v1.0.0"

// zipOfHeaders packs entries given as headers and contents in turn.
func zipOfHeaders(headersAndContents ...any) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := 0; i < len(headersAndContents); i += 2 {
		w, err := z.CreateHeader(headersAndContents[i].(*zip.FileHeader))
		if err != nil {
			panic(err)
		}
		io.WriteString(w, headersAndContents[i+1].(string))
	}
	z.Close()
	return b.Bytes()
}

// withDirectory replaces a zip's directory and the number of entries in the zip's
// end.
func withDirectory(content, directory []byte, entries int) []byte {
	end := len(content) - 22
	start := int(binary.LittleEndian.Uint32(content[end+16:]))
	out := append(bytes.Clone(content[:start]), directory...)
	out = append(out, content[end:]...)
	e := out[len(out)-22:]
	binary.LittleEndian.PutUint16(e[8:], uint16(entries))
	binary.LittleEndian.PutUint16(e[10:], uint16(entries))
	binary.LittleEndian.PutUint32(e[12:], uint32(len(directory)))
	return out
}

// directoryOf returns a zip's directory.
func directoryOf(content []byte) []byte {
	end := len(content) - 22
	return content[binary.LittleEndian.Uint32(content[end+16:]):end]
}

// declaring packs a file of so many zeros and declares another size.
func declaring(zeros int, declared uint32) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	z.RegisterCompressor(zip.Deflate, fast)
	w, err := z.Create(binaryName)
	if err != nil {
		panic(err)
	}
	io.CopyN(w, zeroReader{}, int64(zeros))
	z.Close()
	content := b.Bytes()
	directory := bytes.Clone(directoryOf(content))
	binary.LittleEndian.PutUint32(directory[24:], declared)
	return withDirectory(content, directory, 1)
}

// zip64End returns the end of a zip64 that claims so many entries.
func zip64End(at int64, entries uint64) []byte {
	var b bytes.Buffer
	put := func(values ...any) {
		for _, v := range values {
			binary.Write(&b, binary.LittleEndian, v)
		}
	}
	put([]byte("PK\x06\x06"), uint64(44), uint16(45), uint16(45), uint32(0), uint32(0), entries, entries, uint64(0), uint64(0))
	put([]byte("PK\x06\x07"), uint32(0), uint64(at), uint32(1))
	put([]byte("PK\x05\x06"), uint16(0), uint16(0), uint16(0xffff), uint16(0xffff), uint32(0), uint32(0xffffffff), uint16(0))
	return b.Bytes()
}

// skipInShort skips a long test that starts no goroutine: a short run looks for data races.
func skipInShort(t *testing.T) {
	if t.Helper(); testing.Short() {
		t.Skip("it takes long with the race detector")
	}
}

func TestZipsThatAreRefused(t *testing.T) {
	skipInShort(t)
	good := zipOf(binaryName, strings.Repeat("a provider\n", 1000))
	damaged := bytes.Clone(good)
	damaged[100] ^= 0xff
	var many []string
	for i := range maxEntries + 1 {
		many = append(many, fmt.Sprint(i), "")
	}
	longNames := []string{binaryName, ""}
	for i := range maxDirectory/60_000 + 1 {
		longNames = append(longNames, fmt.Sprint(i, strings.Repeat("x", 60_000)), "")
	}
	bomb := zipOf(binaryName, strings.Repeat("\x00", 1<<20))
	for _, test := range []struct {
		rule    string
		content []byte
		reason  tree.Reason
		says    string
	}{
		{"cut short", good[:len(good)-1], tree.BadArchive, "copy it again"},
		{"without its beginning", good[10:], tree.BadArchive, "copy it again"},
		{"damaged inside", damaged, tree.BadArchive, "copy it again"},
		{"no zip", []byte("<html>404 not found</html>"), tree.BadArchive, "copy it again"},
		{"one byte", []byte("P"), tree.BadArchive, "copy it again"},
		{"a parent folder", zipOf(binaryName, "x", "../x", ""), tree.BadArchive, "leaves its folder"},
		{"a way back in", zipOf(binaryName, "x", "docs/../x", ""), tree.BadArchive, "leaves its folder"},
		{"a parent folder as Windows writes it", zipOf(binaryName, "x", `..\x`, ""), tree.BadArchive, "leaves its folder"},
		{"an absolute name", zipOf(binaryName, "x", "/etc/passwd", ""), tree.BadArchive, "leaves its folder"},
		{"a folder as Windows writes it", zipOf(binaryName, "x", `docs\x`, ""), tree.BadArchive, "not every client"},
		{"a line feed in a name", zipOf(binaryName, "x", "a\nb", ""), tree.BadArchive, "not every client"},
		{"a NUL in a name", zipOf(binaryName, "x", "a\x00b", ""), tree.BadArchive, "not every client"},
		{"an entry without a name", zipOf(binaryName, "x", "", "y"), tree.BadArchive, "not every client"},
		{"nothing in it", zipOf(), tree.NoBinary, "root of the zip"},
		{"more bytes than it says", declaring(50<<20, 10), tree.BadArchive, "copy it again"},
		{"fewer bytes than it says", declaring(10, 200<<20), tree.BadArchive, "copy it again"},
		{"more bytes than it may unpack to", declaring(10, 1<<31), tree.TooLarge, "would unpack to more than"},
		{"the same bytes many times", withDirectory(bomb, bytes.Repeat(directoryOf(bomb), 1000), 1000), tree.TooLarge, "would unpack to more than"},
		{"more entries than any provider has", zipOf(many...), tree.TooLarge, "more than 50000 entries"},
		{"a directory larger than any provider's", zipOf(longNames...), tree.TooLarge, "directory is larger"},
		{"more entries than it says", withDirectory(good, bytes.Repeat(directoryOf(good), 1<<16+1), 1), tree.TooLarge, ""},
	} {
		t.Run(test.rule, func(t *testing.T) {
			var err error
			used := allocated(func() { _, err = digestOf(test.content) })
			if err == nil {
				t.Fatal("it is accepted")
			}
			if f := tree.AsFinding(err); f.Reason != test.reason || !strings.Contains(f.Detail, test.says) {
				t.Errorf("the finding is %s: %s", f.Reason, f.Detail)
			}
			if used > 32<<20 {
				t.Errorf("refusing it took %d bytes of memory", used)
			}
		})
	}
}

// allocated returns how many bytes f allocated in total, which is at least the most that it
// held at any time.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// sparse is a writer that leaves holes in place of zeros.
type sparse struct {
	*os.File
	at int64
}

func (s *sparse) Write(p []byte) (int, error) {
	at := s.at
	s.at += int64(len(p))
	if bytes.Count(p, []byte{0}) == len(p) {
		return len(p), nil
	}
	return s.File.WriteAt(p, at)
}

type zeroReader struct{}

func (zeroReader) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func sparseFile(t *testing.T) *sparse {
	f, err := os.Create(filepath.Join(t.TempDir(), "a.zip"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return &sparse{File: f}
}

// A zip64 may claim any number of entries, and the size of this one makes the claim
// plausible. Memory for all of them would be a quarter of that size.
func TestZip64ClaimOfManyEntriesNeedsLittleMemory(t *testing.T) {
	const size = 1 << 30
	s := sparseFile(t)
	s.at = size
	if _, err := s.Write(zip64End(size, size/31)); err != nil {
		t.Fatal(err)
	}
	used := allocated(func() {
		_, err := openZip(t.Context(), s.File, s.at)
		if f := tree.AsFinding(err); f.Reason != tree.TooLarge {
			t.Error(err)
		}
	})
	if used > 1<<20 {
		t.Errorf("refusing it took %d bytes of memory", used)
	}
}

// failing is a file on a disk that fails.
type failing struct{ afero.File }

func (failing) ReadAt([]byte, int64) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: "/secret/path", Err: syscall.EIO}
}

func TestADiskErrorIsNotABadArchive(t *testing.T) {
	content := zipOf(binaryName, "x")
	_, err := digestPackage(t.Context(), failing{fileOf(content)}, int64(len(content)))
	f := tree.AsFinding(err)
	if f.Reason != tree.Unreadable || strings.Contains(f.Detail, "/secret/path") {
		t.Errorf("the finding is %s: %s", f.Reason, f.Detail)
	}
}

func TestDigestingEndsWithTheScan(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	content := zipOf(binaryName, "x")
	if _, err := digestPackage(ctx, fileOf(content), int64(len(content))); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	for _, read := range []func() error{
		func() error {
			_, err := readZip(ctx, bytes.NewReader(content), int64(len(content)), walked{})
			return err
		},
		func() error { return tarEntries(ctx, bytes.NewReader(nil), 0, "tar.gz", new(moduleFinder)) },
	} {
		if err := read(); !errors.Is(archiveFinding(ctx, err), context.Canceled) {
			t.Errorf("the error is %v", err)
		}
	}
}
