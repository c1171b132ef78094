package index

import (
	"archive/zip"
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/afero"
	"github.com/spf13/afero/mem"
	"golang.org/x/mod/sumdb/dirhash"
)

// fileOf is a file with that content.
func fileOf(content []byte) afero.File {
	data := mem.CreateFile("archive")
	mem.NewFileHandle(data).Write(content)
	return mem.NewReadOnlyFileHandle(data)
}

func digestOf(content []byte) (digest, error) {
	return digestPackage(context.Background(), fileOf(content), int64(len(content)), "demo")
}

// zipOf packs entries given as names and contents in turn; a name that ends in
// a slash is a folder.
func zipOf(namesAndContents ...string) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
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

// unpacked is the hash of a zip's files once a client has unpacked them: each
// entry in turn, later ones over earlier ones.
func unpacked(t *testing.T, zipped string) string {
	t.Helper()
	z, err := zip.OpenReader(zipped)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	dir := t.TempDir()
	for _, entry := range z.File {
		name := filepath.Join(dir, filepath.FromSlash(entry.Name))
		if entry.FileInfo().IsDir() {
			if err := os.MkdirAll(name, 0o755); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		r, err := entry.Open()
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	h1, err := dirhash.HashDir(dir, "", dirhash.Hash1)
	if err != nil {
		t.Fatal(err)
	}
	return h1
}

// Clients compute the hash of the zip before they unpack it and that of its
// files afterwards. Lock files have the latter.
func TestH1IsWhatClientsCompute(t *testing.T) {
	folder := &zip.FileHeader{Name: "docs", CreatorVersion: madeOnUnix << 8, ExternalAttrs: 0o40755 << 16}
	for rule, test := range map[string]struct {
		content []byte
		differ  bool
	}{
		"of one file":              {zipOf(binaryName, "x"), false},
		"of files in any order":    {zipOf("z", "1", "a", "2", binaryName, "x"), false},
		"of files in folders":      {zipOf(binaryName, "x", "docs/a.md", "1", "docs/b/c.md", "2"), false},
		"with entries for folders": {zipOf("docs/", "", "docs/a.md", "1", binaryName, "x"), true},
		"with an empty folder":     {zipOf("docs/", "", binaryName, "x"), true},
		"with a folder by mode":    {zipOfHeaders(folder, "", &zip.FileHeader{Name: binaryName}, "x"), true},
		"with the folder itself":   {zipOf("./", "", binaryName, "x"), true},
		"of empty files":           {zipOf(binaryName, "", "README.md", ""), false},
		"of names in Unicode":      {zipOf(binaryName, "x", "übersicht.md", "1"), false},
		"with a name twice":        {zipOf(binaryName, "x", binaryName, "y"), true},
		"with a name thrice":       {zipOf(binaryName, "x", "a", "1", "./"+binaryName, "y", "a", "2", binaryName, "z"), true},
		"with names from here":     {zipOf("./"+binaryName, "x"), true},
		"with two slashes":         {zipOf(binaryName, "x", "docs//a.md", "1"), true},
	} {
		t.Run(rule, func(t *testing.T) {
			name := filepath.Join(t.TempDir(), "a.zip")
			if err := os.WriteFile(name, test.content, 0o644); err != nil {
				t.Fatal(err)
			}
			packed, err := dirhash.HashZip(name, dirhash.Hash1)
			if err != nil {
				t.Fatal(err)
			}
			d, err := digestOf(test.content)
			if want := unpacked(t, name); err != nil || d.h1 != want {
				t.Errorf("of the files it is %q, not %q, %v", d.h1, want, err)
			}
			detail := decodePackageDetail(d.content)
			if !test.differ {
				if detail.packedH1 != "" || d.h1 != packed {
					t.Errorf("of the zip it is %q, not %q", cmp.Or(detail.packedH1, d.h1), packed)
				}
			} else if detail.packedH1 != packed {
				t.Errorf("of the zip it is %q, not %q", detail.packedH1, packed)
			}
			if d.sha256 != sha256Of(test.content) {
				t.Errorf("the sha256 is %s", d.sha256)
			}
		})
	}
}

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

// A client that cannot unpack a zip says so in its own words, or not at all.
func TestZipsThatNobodyCanUnpack(t *testing.T) {
	for rule, content := range map[string][]byte{
		"a file that is a folder":                 zipOf(binaryName, "x", "docs", "1", "docs/a.md", "2"),
		"a folder that is a file":                 zipOf(binaryName, "x", "docs/", "", "docs", "1"),
		"the program is a folder as well":         zipOf(binaryName, "x", binaryName+"/a", "1"),
		"a file in the place of the whole folder": zipOf(binaryName, "x", ".", "1"),
	} {
		if _, err := digestOf(content); err == nil || asFinding(err).reason != BadArchive || !strings.Contains(err.Error(), "a file and a folder") {
			t.Errorf("%s: %v", rule, err)
		}
	}
}

// The names of a zip may be long, and have tens of thousands of folders in them
// each. With time for each of those this test would take minutes.
func TestZipsWithManyFoldersInTheirNames(t *testing.T) {
	files := []string{binaryName, "x"}
	for i := range 60 {
		files = append(files, strconv.Itoa(i)+strings.Repeat("/a", 32_000), "")
	}
	if _, err := digestOf(zipOf(files...)); err != nil {
		t.Error(err)
	}
	files = append(files, "0"+strings.Repeat("/a", 1000), "")
	if _, err := digestOf(zipOf(files...)); err == nil || asFinding(err).reason != BadArchive {
		t.Errorf("a file that is a folder as well: got %v", err)
	}
}

// What is said of a file is logged, told to clients and remembered, and the names in
// it are chosen by the author of the file.
func TestNamesAreNotRepeatedAtAnyLength(t *testing.T) {
	long := strings.Repeat("\x01", 60_000)
	for rule, content := range map[string][]byte{
		"a file that is a folder": zipOf(binaryName, "x", long, "1", long+"/a", "2"),
		"a name that leaves":      zipOf(binaryName, "x", "../"+long, "1"),
		"a name with a backslash": zipOf(binaryName, "x", `\`+long, "1"),
	} {
		if _, err := digestOf(content); err == nil || len(err.Error()) > 2000 {
			t.Errorf("%s: got %.2000v", rule, err)
		}
	}
}

// Unpacked by a client, the provider has the mode that it was packed with.
func TestTheModeOfTheProvider(t *testing.T) {
	entry := func(name string, by, mode uint32) *zip.FileHeader {
		return &zip.FileHeader{Name: name, CreatorVersion: uint16(by << 8), ExternalAttrs: mode << 16}
	}
	const fat, ntfs, os2 = 0, 10, 6
	for _, test := range []struct {
		rule    string
		content []byte
		want    programMode
	}{
		{"executable", zipOfHeaders(entry(binaryName, madeOnUnix, 0o100755), "x"), programExecutable},
		{"executable by its owner", zipOfHeaders(entry(binaryName, madeOnMacOS, 0o100700), "x"), programExecutable},
		{"not executable", zipOfHeaders(entry(binaryName, madeOnUnix, 0o100644), "x"), programNotExecutable},
		{"not executable, made on macOS", zipOfHeaders(entry(binaryName, madeOnMacOS, 0o100644), "x"), programNotExecutable},
		{"not executable by its owner", zipOfHeaders(entry(binaryName, madeOnUnix, 0o100611), "x"), programNotExecutable},
		{"no mode at all", zipOfHeaders(entry(binaryName, madeOnUnix, 0), "x"), programNotExecutable},
		{"made on FAT", zipOfHeaders(entry(binaryName, fat, 0), "x"), programWithoutMode},
		{"made on NTFS", zipOfHeaders(entry(binaryName, ntfs, 0), "x"), programWithoutMode},
		{"made on a system whose modes clients do not read", zipOfHeaders(entry(binaryName, os2, 0o100755), "x"), programWithoutMode},
		{"clients run the first by name", zipOfHeaders(entry(binaryName, madeOnUnix, 0o100755), "x", entry("terraform-provider-demo", madeOnUnix, 0o100644), "x"), programNotExecutable},
		{"clients unpack the last of one name", zipOfHeaders(entry(binaryName, madeOnUnix, 0o100644), "x", entry("./"+binaryName, madeOnUnix, 0o100755), "x"), programExecutable},
		{"what lies in a folder is not run", zipOfHeaders(entry(binaryName, madeOnUnix, 0o100755), "x", entry("a/"+binaryName, madeOnUnix, 0o100644), "x"), programExecutable},
	} {
		d, err := digestOf(test.content)
		if got := decodePackageDetail(d.content).program; err != nil || got != test.want {
			t.Errorf("%s: it is %d, not %d, %v", test.rule, got, test.want, err)
		}
	}
}

func TestWhatTheProviderIsCalledInItsZip(t *testing.T) {
	for name, ok := range map[string]bool{
		"terraform-provider-demo": true, "terraform-provider-demo_v1.0.0": true, "terraform-provider-demo.exe": true,
		"terraform-provider-demo-beta": false, "terraform-provider-demos": false, "provider-demo": false,
		"bin/terraform-provider-demo": false, "terraform-provider-demo/": false, "terraform-provider-demo_x/y": false,
	} {
		_, err := digestOf(zipOf(name, "x"))
		if ok != (err == nil) || !ok && asFinding(err).reason != NoBinary {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// withDirectory replaces a zip's directory and how many entries the zip's end
// says it has.
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

// directoryOf is a zip's directory.
func directoryOf(content []byte) []byte {
	end := len(content) - 22
	return content[binary.LittleEndian.Uint32(content[end+16:]):end]
}

// declaring packs a file of so many zeros and says it has other ones.
func declaring(zeros, declared int) []byte {
	content := zipOf(binaryName, strings.Repeat("\x00", zeros))
	directory := bytes.Clone(directoryOf(content))
	binary.LittleEndian.PutUint32(directory[24:], uint32(declared))
	return withDirectory(content, directory, 1)
}

// zip64End is the end of a zip64 that claims so many entries.
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

func TestZipsThatAreRefused(t *testing.T) {
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
	bomb := zipOf(binaryName, strings.Repeat("\x00", 10<<20))
	for _, test := range []struct {
		rule    string
		content []byte
		reason  Reason
		says    string
	}{
		{"cut short", good[:len(good)-1], BadArchive, "copy it again"},
		{"without its beginning", good[10:], BadArchive, "copy it again"},
		{"damaged inside", damaged, BadArchive, "copy it again"},
		{"no zip", []byte("<html>404 not found</html>"), BadArchive, "copy it again"},
		{"one byte", []byte("P"), BadArchive, "copy it again"},
		{"a parent folder", zipOf(binaryName, "x", "../x", ""), BadArchive, "leaves its folder"},
		{"a way back in", zipOf(binaryName, "x", "docs/../x", ""), BadArchive, "leaves its folder"},
		{"a parent folder as Windows writes it", zipOf(binaryName, "x", `..\x`, ""), BadArchive, "leaves its folder"},
		{"an absolute name", zipOf(binaryName, "x", "/etc/passwd", ""), BadArchive, "leaves its folder"},
		{"a folder as Windows writes it", zipOf(binaryName, "x", `docs\x`, ""), BadArchive, "not every client"},
		{"a line feed in a name", zipOf(binaryName, "x", "a\nb", ""), BadArchive, "not every client"},
		{"a NUL in a name", zipOf(binaryName, "x", "a\x00b", ""), BadArchive, "not every client"},
		{"an entry without a name", zipOf(binaryName, "x", "", "y"), BadArchive, "not every client"},
		{"nothing in it", zipOf(), NoBinary, "root of the zip"},
		{"more bytes than it says", declaring(50<<20, 10), BadArchive, "copy it again"},
		{"fewer bytes than it says", declaring(10, 200<<20), BadArchive, "copy it again"},
		{"more bytes than it may unpack to", declaring(10, 1<<31), TooLarge, "would unpack to more than"},
		{"the same bytes many times", withDirectory(bomb, bytes.Repeat(directoryOf(bomb), 1000), 1000), TooLarge, "would unpack to more than"},
		{"more entries than any provider has", zipOf(many...), TooLarge, "more than 50000 entries"},
		{"a directory larger than any provider's", zipOf(longNames...), TooLarge, "directory is larger"},
		{"more entries than it says", withDirectory(good, bytes.Repeat(directoryOf(good), 1<<16+1), 1), TooLarge, ""},
	} {
		t.Run(test.rule, func(t *testing.T) {
			var err error
			used := allocated(func() { _, err = digestOf(test.content) })
			if err == nil {
				t.Fatal("it is accepted")
			}
			if f := asFinding(err); f.reason != test.reason || !strings.Contains(f.detail, test.says) {
				t.Errorf("the finding is %s: %s", f.reason, f.detail)
			}
			if used > 32<<20 {
				t.Errorf("refusing it took %d bytes of memory", used)
			}
		})
	}
}

// allocated is all the memory f asked for, which is at least what it held at
// any one time.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// sparse is a writer that leaves holes where zeros are.
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

func TestALargeZipStaysOnTheDisk(t *testing.T) {
	const size = 200 << 20
	s := sparseFile(t)
	z := zip.NewWriter(s)
	w, err := z.CreateHeader(&zip.FileHeader{Name: binaryName, Method: zip.Store})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(w, zeroReader{}, size); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	used := allocated(func() {
		d, err := digestPackage(t.Context(), s.File, s.at, "demo")
		if err != nil || d.h1 == "" {
			t.Error(err)
		}
	})
	if used > 1<<20 {
		t.Errorf("digesting %d bytes took %d bytes of memory", size, used)
	}
}

// A zip64 may claim any number of entries, and its size makes the claim
// plausible: room for them would be a quarter of it.
func TestALargeZipIsNotBelievedHowManyEntriesItHas(t *testing.T) {
	const size = 1 << 30
	s := sparseFile(t)
	s.at = size
	if _, err := s.Write(zip64End(size, size/31)); err != nil {
		t.Fatal(err)
	}
	used := allocated(func() {
		_, err := openZip(t.Context(), s.File, s.at)
		if f := asFinding(err); f.reason != TooLarge {
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

func TestADiskThatFailsIsNoBadArchive(t *testing.T) {
	content := zipOf(binaryName, "x")
	_, err := digestPackage(t.Context(), failing{fileOf(content)}, int64(len(content)), "demo")
	f := asFinding(err)
	if f.reason != Unreadable || strings.Contains(f.detail, "/secret/path") {
		t.Errorf("the finding is %s: %s", f.reason, f.detail)
	}
}

func TestDigestingEndsWithItsScan(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	content := zipOf(binaryName, "x")
	if _, err := digestPackage(ctx, fileOf(content), int64(len(content)), "demo"); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	for _, read := range []func() error{
		func() error { return zipEntries(ctx, bytes.NewReader(content), int64(len(content)), new(moduleFinder)) },
		func() error { return tarEntries(ctx, bytes.NewReader(nil), 0, new(moduleFinder)) },
	} {
		if err := read(); !errors.Is(archiveFinding(ctx, err), context.Canceled) {
			t.Errorf("the error is %v", err)
		}
	}
}

// Whatever is accepted, clients compute the same h1 of, find the provider in,
// and unpack without leaving the folder.
func FuzzDigestPackage(f *testing.F) {
	f.Add(zipOf(binaryName, "x"))
	f.Add(zipOf(binaryName, "x", "docs/", "", "docs/a.md", "1"))
	f.Add(zipOf(binaryName, "x", "../x", ""))
	f.Add(declaring(100, 10))
	f.Add(zip64End(0, 1<<40))
	f.Add([]byte{})
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, content []byte) {
		d, err := digestOf(content)
		if err != nil {
			if asFinding(err).detail == "" {
				t.Fatal("no reason is given")
			}
			return
		}
		name := filepath.Join(dir, fmt.Sprint(os.Getpid(), ".zip"))
		if err := os.WriteFile(name, content, 0o644); err != nil {
			t.Fatal(err)
		}
		packed := cmp.Or(decodePackageDetail(d.content).packedH1, d.h1)
		if want, err := dirhash.HashZip(name, dirhash.Hash1); err != nil || want != packed {
			t.Errorf("h1 is %q, not %q, %v", packed, want, err)
		}
		z, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
		if err != nil {
			t.Fatal(err)
		}
		for _, member := range z.File {
			if to := filepath.Join(dir, member.Name); to != dir && !strings.HasPrefix(to, dir+"/") {
				t.Errorf("%q is unpacked to %q", member.Name, to)
			}
		}
	})
}
