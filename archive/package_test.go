package archive

import (
	"archive/zip"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/dirhash"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// unpacked returns the hash of a zip's files after unpacking them as clients do:
// entry by entry, later ones over earlier ones.
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

// Clients compute the hash of the zip before unpacking it, and the hash of its files
// afterwards. Lock files have the latter.
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
			if want := unpacked(t, name); err != nil || d.FileHashes.H1() != want {
				t.Errorf("of the files it is %q, not %q, %v", d.FileHashes, want, err)
			}
			detail := PackageDetailOf(d.Content)
			if !test.differ {
				if detail.PackedHashes != "" || d.FileHashes.H1() != packed {
					t.Errorf("of the zip it is %q, not %q", cmp.Or(detail.PackedHashes, d.FileHashes), packed)
				}
			} else if detail.PackedHashes.H1() != packed {
				t.Errorf("of the zip it is %q, not %q", detail.PackedHashes.H1(), packed)
			}
			if d.SHA256 != wire.SHA256Of(test.content) {
				t.Errorf("the sha256 is %s", d.SHA256)
			}
		})
	}
}

// Clients fail on such zips with unclear messages, or silently.
func TestZipsThatClientsCannotUnpack(t *testing.T) {
	for rule, content := range map[string][]byte{
		"a file that is a folder":                 zipOf(binaryName, "x", "docs", "1", "docs/a.md", "2"),
		"a folder that is a file":                 zipOf(binaryName, "x", "docs/", "", "docs", "1"),
		"the program is a folder as well":         zipOf(binaryName, "x", binaryName+"/a", "1"),
		"a file in the place of the whole folder": zipOf(binaryName, "x", ".", "1"),
	} {
		if _, err := digestOf(content); err == nil || tree.AsFinding(err).Reason != tree.BadArchive || !strings.Contains(err.Error(), "a file and a folder") {
			t.Errorf("%s: %v", rule, err)
		}
	}
}

// A name in a zip may have tens of thousands of folders. If each of them took time, this
// test would take minutes.
func TestZipsWithManyFoldersInTheirNames(t *testing.T) {
	skipInShort(t)
	files := []string{binaryName, "x"}
	for i := range 60 {
		files = append(files, strconv.Itoa(i)+strings.Repeat("/a", 32_000), "")
	}
	if _, err := digestOf(zipOf(files...)); err != nil {
		t.Error(err)
	}
	files = append(files, "0"+strings.Repeat("/a", 1000), "")
	if _, err := digestOf(zipOf(files...)); err == nil || tree.AsFinding(err).Reason != tree.BadArchive {
		t.Errorf("a file that is a folder as well: got %v", err)
	}
}

// Findings are logged, sent to clients and kept in the memo, and the names in them
// are chosen by the author of the archive.
func TestFindingsTruncateLongNames(t *testing.T) {
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

// A client unpacks the provider with the mode that it was packed with.
func TestProgramMode(t *testing.T) {
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
		if got := PackageDetailOf(d.Content).program; err != nil || got != test.want {
			t.Errorf("%s: it is %d, not %d, %v", test.rule, got, test.want, err)
		}
	}
}

func TestProviderNamesInAZip(t *testing.T) {
	for name, ok := range map[string]bool{
		"terraform-provider-demo": true, "terraform-provider-demo_v1.0.0": true, "terraform-provider-demo.exe": true,
		"terraform-provider-demo-beta": false, "terraform-provider-demos": false, "provider-demo": false,
		"bin/terraform-provider-demo": false, "terraform-provider-demo/": false, "terraform-provider-demo_x/y": false,
	} {
		_, err := digestOf(zipOf(name, "x"))
		if ok != (err == nil) || !ok && tree.AsFinding(err).Reason != tree.NoBinary {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDigestingALargeZipNeedsLittleMemory(t *testing.T) {
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
		d, err := digestPackage(t.Context(), s.File, s.at)
		if err != nil || d.FileHashes == "" {
			t.Error(err)
		}
	})
	if used > 1<<20 {
		t.Errorf("digesting %d bytes took %d bytes of memory", size, used)
	}
}

// For every zip that is accepted, clients compute the same h1, find the provider,
// and unpack it without leaving the folder.
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
			if tree.AsFinding(err).Detail == "" {
				t.Fatal("no reason is given")
			}
			return
		}
		name := filepath.Join(dir, fmt.Sprint(os.Getpid(), ".zip"))
		if err := os.WriteFile(name, content, 0o644); err != nil {
			t.Fatal(err)
		}
		packed := cmp.Or(PackageDetailOf(d.Content).PackedHashes, d.FileHashes).H1()
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
