package index_test

import (
	"archive/zip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/dirhash"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

const unpackedFolder = "providers/registry.terraform.io/acme/demo/1.0.0/linux_amd64"

var (
	mirroredDemo = address.Address{Hostname: "registry.terraform.io", Namespace: "acme", Name: "demo"}

	anUnpackedPackage = map[string]string{
		"terraform-provider-demo_v1.0.0_x5": "a provider of no kind that is known\n",
		"LICENSE":                           "Do with it what you like.\n",
		"docs/übersicht.md":                 "# Übersicht\n",
		"empty":                             "",
		"tools/script":                      "#!/bin/sh\nexit 0\n",
		"tools/linux":                       "\x7fELF and so on",
		"tools/macos":                       "\xcf\xfa\xed\xfe and so on",
		"tools/universal":                   "\xca\xfe\xba\xbe\x00\x00\x00\x02 and so on",
		"tools/Java.class":                  "\xca\xfe\xba\xbe\x00\x00\x00\x41 and so on",
		"tools/large":                       strings.Repeat("some of many bytes\n", 20_000),
	}
)

func writeUnpacked(files *indextest.Tree, folder string) *indextest.Tree {
	for name, content := range anUnpackedPackage {
		files.Write(folder+"/"+name, content)
	}
	return files
}

// An unpacked package is offered as a zip of the files in it.
func TestAnUnpackedPackage(t *testing.T) {
	dir := t.TempDir()
	writeUnpacked(indextest.OnDisk(t, dir), unpackedFolder)
	s := scanWith(t, options(t, source.Directories{Root: dir}.Open))
	nothingWithheld(t, s)
	p := s.Provider(index.PlaceOf(mirroredDemo)).Release("1.0.0").Package("linux", "amd64")
	if p.File.Name != zipName || p.File.Path() != strings.TrimPrefix(unpackedFolder, "providers/") || !p.File.IsFolder() {
		t.Errorf("the file is %s at %s", p.File.Name, p.File.Path())
	}
	if offer := offerOf(s, "registry.terraform.io/acme/demo", "1.0.0"); !strings.HasPrefix(offer.Signature, "registry ") || len(offer.Notes) > 0 {
		t.Errorf("the offer is %+v", offer)
	}

	if p.File.Immutable() {
		t.Error("a folder can change")
	}
	content := served(t, s, p.File)
	if int64(len(content)) != p.File.Size || sha256.Sum256([]byte(content)) != p.File.SHA256 {
		t.Error("what is served has another size or digest than is told")
	}
	name := filepath.Join(t.TempDir(), "a.zip")
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	for of, hash := range map[string]func() (string, error){
		"the folder": func() (string, error) {
			return dirhash.HashDir(filepath.Join(dir, filepath.FromSlash(unpackedFolder)), "", dirhash.Hash1)
		},
		"the zip": func() (string, error) { return dirhash.HashZip(name, dirhash.Hash1) },
	} {
		if want, err := hash(); err != nil || p.FileHashes.H1() != want {
			t.Errorf("h1 is %s, that of %s is %s, %v", p.FileHashes, of, want, err)
		}
	}
	z, err := zip.OpenReader(name)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	executables := []string{"terraform-provider-demo_v1.0.0_x5", "tools/linux", "tools/macos", "tools/script", "tools/universal"}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r) // which compares the CRC
		if err != nil || string(content) != anUnpackedPackage[f.Name] {
			t.Errorf("%s has other content, %v", f.Name, err)
		}
		mode := os.FileMode(0o644)
		if slices.Contains(executables, f.Name) {
			mode = 0o755
		}
		if f.Mode() != mode || f.Method != zip.Store {
			t.Errorf("%s has mode %v, method %d", f.Name, f.Mode(), f.Method)
		}
	}
	if len(z.File) != len(anUnpackedPackage) {
		t.Errorf("there are %d files in it", len(z.File))
	}
}

// The bytes are fixed forever, since lock files record their digest. Neither another
// machine nor another release may change them.
func TestUnpackedPackageBytesNeverChange(t *testing.T) {
	const want = "bb7f8ae926e3df983f273880ac2cea7a02f9334a1f82acd1f65159da502e092e"
	files := writeUnpacked(indextest.New(t), unpackedFolder)
	describe := func(files *indextest.Tree) string {
		return scan(t, files).Provider(index.PlaceOf(mirroredDemo)).File(zipName).SHA256.String()
	}
	if got := describe(files); got != want {
		t.Errorf("in memory it is %s", got)
	}
	disk := writeUnpacked(indextest.OnDisk(t, t.TempDir()), unpackedFolder)
	for name := range anUnpackedPackage {
		if err := disk.Fs.Chmod(unpackedFolder+"/"+name, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := disk.Fs.Chtimes(unpackedFolder+"/"+name, indextest.Born, indextest.Born); err != nil {
			t.Fatal(err)
		}
	}
	// Hidden and temporary files are not part of it.
	disk.Write(unpackedFolder+"/.DS_Store", "x").Write(unpackedFolder+"/a.tmp", "x").Write(unpackedFolder+"/.git/config", "x")
	if got := describe(disk); got != want {
		t.Errorf("on a disk it is %s", got)
	}
}

// Downloads may be resumed at any offset.
func TestUnpackedPackageCanBeReadAtAnyOffset(t *testing.T) {
	s := scan(t, writeUnpacked(indextest.New(t), unpackedFolder))
	f := s.Provider(index.PlaceOf(mirroredDemo)).File(zipName)
	whole := served(t, s, f)
	r, err := s.Open(f)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for offset := 0; offset < len(whole); offset += 1 + offset/7 {
		if _, err := r.Seek(int64(offset), io.SeekStart); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, min(3000, len(whole)-offset))
		if _, err := io.ReadFull(r, b); err != nil || string(b) != whole[offset:offset+len(b)] {
			t.Fatalf("at %d it is another, %v", offset, err)
		}
	}
	if n, err := r.Seek(0, io.SeekEnd); n != f.Size || err != nil {
		t.Errorf("its end is at %d, %v", n, err)
	}
	if n, err := r.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("behind its end are %d bytes, %v", n, err)
	}
}

// After a change in the folder, the verified package is no longer served.
func TestChangedUnpackedPackageIsNotServed(t *testing.T) {
	files := writeUnpacked(indextest.New(t), unpackedFolder)
	x := newIndex(t, options(t, files.Open))
	before := rescan(t, x)
	f := before.Provider(index.PlaceOf(mirroredDemo)).File(zipName)
	open, err := before.OpenRange(f)
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()

	files.Write(unpackedFolder+"/LICENSE", "Do with it what you like not.\n")
	if _, err := before.Open(f); !errors.Is(err, tree.ErrChanged) {
		t.Errorf("opened: %v", err)
	}
	if _, err := io.ReadAll(open); !errors.Is(err, tree.ErrChanged) {
		t.Errorf("read on: %v", err)
	}
	after := rescan(t, x)
	changed := after.Provider(index.PlaceOf(mirroredDemo)).File(zipName)
	if changed.SHA256 == f.SHA256 || !strings.Contains(served(t, after, changed), "like not.") {
		t.Error("a scan does not see the change")
	}
	files.Remove(unpackedFolder + "/LICENSE")
	if _, err := after.Open(changed); !errors.Is(err, tree.ErrChanged) {
		t.Errorf("with a file less: %v", err)
	}
}

// After a restart no file is read again.
func TestAnUnpackedPackageIsRemembered(t *testing.T) {
	files := writeUnpacked(indextest.New(t), unpackedFolder)
	o := options(t, files.Open)
	o.Store = &memoryStore{}
	var bytes [2]string
	for i := range bytes {
		x := index.New(o)
		s := rescan(t, x)
		x.Close()
		if s.Recalled != i || s.Read != 1-i {
			t.Errorf("read were %d, recalled %d", s.Read, s.Recalled)
		}
		bytes[i] = served(t, s, s.Provider(index.PlaceOf(mirroredDemo)).File(zipName))
	}
	if bytes[0] != bytes[1] {
		t.Error("the zip is another")
	}
}

func TestUnpackedPackagesThatAreWithheld(t *testing.T) {
	const sums = "providers/registry.terraform.io/acme/demo/1.0.0/terraform-provider-demo_1.0.0_SHA256SUMS"
	zipped := func(t *testing.T) string {
		s := scan(t, writeUnpacked(indextest.New(t), unpackedFolder))
		return s.Provider(index.PlaceOf(mirroredDemo)).File(zipName).SHA256.String()
	}
	for _, test := range []struct {
		rule   string
		build  func(t *testing.T, files *indextest.Tree)
		path   string
		reason tree.Reason // empty: offered
		says   string
		folder bool // linux_amd64 is offered from the folder
	}{
		{"without a provider", func(_ *testing.T, files *indextest.Tree) {
			files.Write(unpackedFolder+"/bin/terraform-provider-demo", "x").Write(unpackedFolder+"/terraform-provider-demos", "x")
		}, unpackedFolder, tree.NoBinary, "put the provider's binary there", false},
		{"with an empty provider", func(_ *testing.T, files *indextest.Tree) { files.Write(unpackedFolder+"/terraform-provider-demo", "") },
			unpackedFolder, tree.Empty, "copy it again", false},
		{"with a name that is not valid everywhere", func(_ *testing.T, files *indextest.Tree) {
			writeUnpacked(files, unpackedFolder).Write(unpackedFolder+`/a\b`, "x")
		}, unpackedFolder, tree.BadArchive, "rename it", false},
		{"with a name that is not UTF-8", func(_ *testing.T, files *indextest.Tree) {
			writeUnpacked(files, unpackedFolder).Write(unpackedFolder+"/a\xff", "x")
		}, unpackedFolder, tree.BadName, "UTF-8", false},
		{"in a release that does not list it", func(_ *testing.T, files *indextest.Tree) {
			writeUnpacked(files, unpackedFolder).ProviderIn("providers/registry.terraform.io/acme/demo/1.0.0", "demo", "1.0.0", "darwin_arm64").Checksums()
		}, unpackedFolder, tree.NotListed, "SHA256SUMS does not list it", false},
		{"in a release that lists another zip", func(_ *testing.T, files *indextest.Tree) {
			writeUnpacked(files, unpackedFolder).Write(sums, strings.Repeat("0", 64)+"  "+zipName+"\n")
		}, unpackedFolder, tree.ChecksumMismatch, "packed, it is not the zip that SHA256SUMS lists", false},
		{"in a release that lists it as it is packed", func(t *testing.T, files *indextest.Tree) {
			writeUnpacked(files, unpackedFolder).Write(sums, zipped(t)+"  "+zipName+"\n")
		}, "", "", "", true},
		{"beside a zip of the platform", func(_ *testing.T, files *indextest.Tree) {
			writeUnpacked(files, unpackedFolder).Provider("registry.terraform.io/acme/demo", "1.0.0", "linux_amd64")
		}, unpackedFolder, tree.Duplicate, "keep one of them", false},
		{"beside a zip that is withheld", func(_ *testing.T, files *indextest.Tree) {
			writeUnpacked(files, unpackedFolder).Write("providers/registry.terraform.io/acme/demo/"+zipName, "no zip")
		}, "providers/registry.terraform.io/acme/demo/" + zipName, tree.BadArchive, "", true},
	} {
		t.Run(test.rule, func(t *testing.T) {
			files := indextest.New(t)
			files.Provider("other/healthy", "1.0.0", "linux_amd64")
			test.build(t, files)
			s := scan(t, files)
			if test.reason == "" {
				nothingWithheld(t, s)
			} else if p := problemOf(s.Report().Withheld, test.path); len(s.Report().Withheld) != 1 || p.Reason != test.reason || !strings.Contains(p.Detail, test.says) {
				t.Errorf("withheld is %+v", s.Report().Withheld)
			}
			provider := s.Provider(index.PlaceOf(mirroredDemo))
			folder := provider != nil && provider.File(zipName) != nil && provider.File(zipName).IsFolder()
			if folder != test.folder {
				t.Errorf("the folder is offered: %v", folder)
			}
			if !offers("other/healthy", "1.0.0")(s) {
				t.Error("the rest is not offered")
			}
		})
	}
}

// On Windows there is no executable bit, and programs have an extension.
func TestAnUnpackedPackageForWindows(t *testing.T) {
	files := indextest.New(t)
	files.Write("providers/acme/demo/1.0.0/windows_amd64/terraform-provider-demo_v1.0.0.exe", "MZ")
	s := scan(t, files)
	nothingWithheld(t, s)
	content := served(t, s, s.Provider(index.PlaceOf(ownDemo)).File("terraform-provider-demo_1.0.0_windows_amd64.zip"))
	z, err := zip.NewReader(strings.NewReader(content), int64(len(content)))
	if err != nil || len(z.File) != 1 || z.File[0].Mode() != 0o644 {
		t.Errorf("it is %+v, %v", z, err)
	}
}

// In a plugin cache the folder of a platform may be a symlink.
func TestAnUnpackedPackageBehindASymlink(t *testing.T) {
	for to, offered := range map[string]bool{"../../../../../elsewhere": true, "../../../../../../elsewhere": false} {
		root := t.TempDir()
		dir := filepath.Join(root, "tree")
		files := writeUnpacked(indextest.OnDisk(t, root), "tree/elsewhere")
		writeUnpacked(files, "elsewhere")
		link := filepath.Join(dir, filepath.FromSlash(unpackedFolder))
		if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.FromSlash(to), link); err != nil {
			t.Skip(err)
		}
		s := scanWith(t, options(t, source.Directories{Root: dir}.Open))
		if p := s.Provider(index.PlaceOf(mirroredDemo)); (p != nil) != offered {
			t.Errorf("%s is offered: %v, withheld is %+v", to, p != nil, s.Report().Withheld)
		} else if offered {
			served(t, s, p.File(zipName))
		} else if p := problemOf(s.Report().Withheld, unpackedFolder); p.Reason != tree.Unreadable {
			t.Errorf("withheld is %+v", s.Report().Withheld)
		}
	}
}

// A change inside the folder is noticed.
func TestAnUnpackedPackageIsWatched(t *testing.T) {
	t.Parallel()
	_, files, o := onDisk(t)
	files.Write("providers/acme/demo/1.0.0/linux_amd64/terraform-provider-demo", "x")
	files.Write("providers/acme/demo/1.0.0/linux_amd64/docs/index.md", "before")
	o.Watch = true
	r := run(t, o)
	digest := func(s *index.Snapshot) wire.SHA256 { return s.Provider(index.PlaceOf(ownDemo)).File(zipName).SHA256 }
	before := digest(r.until(t, offers("acme/demo", "1.0.0")))
	files.Write("providers/acme/demo/1.0.0/linux_amd64/docs/index.md", "now")
	r.until(t, func(s *index.Snapshot) bool { return offers("acme/demo", "1.0.0")(s) && digest(s) != before })
}

// A named file system may have no modification times.
func TestAnUnpackedPackageOnANamedFileSystem(t *testing.T) {
	dir := t.TempDir()
	writeUnpacked(indextest.OnDisk(t, dir), unpackedFolder)
	s := scanWith(t, options(t, func() (tree.Tree, error) { return source.Directories{Root: "."}.OpenIn(os.DirFS(dir)) }))
	nothingWithheld(t, s)
	f := s.Provider(index.PlaceOf(mirroredDemo)).File(zipName)
	if content := served(t, s, f); fmt.Sprintf("%x", sha256.Sum256([]byte(content))) != f.SHA256.String() {
		t.Error("what is served is not what is told")
	}
}
