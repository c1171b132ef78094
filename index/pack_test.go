package index

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/spf13/afero"
)

// moduleFiles are the files of a module folder, by name.
type moduleFiles map[string]string

func (m moduleFiles) on(t testing.TB, fsys afero.Fs, modTime time.Time, mode fs.FileMode) Part {
	t.Helper()
	for name, content := range m {
		name = path.Join("module", name)
		if err := fsys.MkdirAll(path.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := afero.WriteFile(fsys, name, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
		if err := fsys.Chtimes(name, modTime, modTime); err != nil {
			t.Fatal(err)
		}
	}
	return Part{Fs: fsys, Dir: "."}
}

func (m moduleFiles) inMemory(t testing.TB) Part {
	return m.on(t, afero.NewMemMapFs(), long, 0o644)
}

// packed is the folder as the index offers it.
func packed(t testing.TB, part Part) *File {
	t.Helper()
	a := &archive{part: part, path: "module"}
	if a.folder, a.leftOut, a.bad = part.walkFolder("module", unwatched); a.bad != nil {
		t.Fatal(a.bad)
	}
	d, err := readFolder(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	a.digest = d
	return &File{Size: d.size, SHA256: d.sha256, folder: a.layout()}
}

// openPacking opens a packing as an answer does that sends all of it.
func openPacking(part Part, f *File) (io.ReadSeekCloser, error) {
	of := *f
	of.in = func(*Tree) Part { return part }
	return (&Snapshot{}).Open(&of)
}

func content(t testing.TB, part Part, f *File) []byte {
	t.Helper()
	r, err := openPacking(part, f)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// noise is content that no compressor would make smaller, the same every time.
func noise(size int) string {
	b := make([]byte, size)
	rand.NewChaCha8([32]byte{}).Read(b)
	return string(b)
}

var aModule = moduleFiles{
	"main.tf":                "output \"a\" {\n  value = 1\n}\n",
	"modules/a/main.tf":      "# a submodule\n",
	"modules/a/übersicht.md": "# Übersicht\n",
	"scripts/setup.sh":       "#!/bin/sh\nexit 0\n",
	"scripts/#.txt":          "#",
	"empty":                  "",
	".terraform.lock.hcl":    "# hidden, and a part of it\n",
	"large.bin":              noise(200_000),
	strings.Repeat("long/", 29) + strings.Repeat("x", 200): "a name longer than a tar's header\n",
	"z" + strings.Repeat("é", 120):                         "a long name in Unicode\n",
}

// The bytes are fixed for ever: clients and lock files of other tools remember
// them. Neither another Go nor another release may give others.
func TestAPackingIsForEver(t *testing.T) {
	f := packed(t, aModule.inMemory(t))
	if got, want := f.SHA256.String(), "c8e9e2a06907aa2fc81d38a93c8b6a149c4145a5ac8ad72768d83c9496b1b7e8"; got != want {
		t.Errorf("the sha256 is %s, not %s", got, want)
	}
}

func TestTheSameFolderHasTheSameBytesEverywhere(t *testing.T) {
	part := aModule.inMemory(t)
	f := packed(t, part)
	want := content(t, part, f)
	if sha256Of(want) != f.SHA256 || int64(len(want)) != f.Size {
		t.Fatalf("what is read is not what was digested")
	}
	untidy := maps.Clone(aModule)
	for _, name := range []string{".git/config", "modules/a/.git", ".terraform/modules/modules.json", "main.tf~", "x.tmp", "modules/.y.part"} {
		untidy[name] = "x"
	}
	for rule, part := range map[string]Part{
		"read again":                        part,
		"on a disk":                         aModule.on(t, afero.NewBasePathFs(afero.NewOsFs(), t.TempDir()), time.Now(), 0o600),
		"in another folder with other bits": aModule.on(t, afero.NewBasePathFs(afero.NewOsFs(), t.TempDir()), long.Add(time.Hour), 0o777),
		"with what is no part of a module":  untidy.inMemory(t),
	} {
		t.Run(rule, func(t *testing.T) {
			if got := content(t, part, packed(t, part)); !bytes.Equal(got, want) {
				t.Error("the bytes differ")
			}
		})
	}
}

func TestAPackingIsUnpackedByEverybody(t *testing.T) {
	part := aModule.inMemory(t)
	archive := content(t, part, packed(t, part))

	t.Run("by Go", func(t *testing.T) {
		z, err := gzip.NewReader(bytes.NewReader(archive))
		if err != nil {
			t.Fatal(err)
		}
		got := make(moduleFiles)
		var names []string
		for r := tar.NewReader(z); ; {
			h, err := r.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			got[h.Name] = string(b)
			names = append(names, h.Name)
			want := int64(0o644)
			if strings.HasPrefix(string(b), "#!") {
				want = 0o755
			}
			if h.Mode != want || h.Uid != 0 || h.Gid != 0 || h.Uname != "" || !h.ModTime.Equal(time.Unix(0, 0)) {
				t.Errorf("%s has %o %d:%d %q %s", h.Name, h.Mode, h.Uid, h.Gid, h.Uname, h.ModTime)
			}
		}
		if !slices.IsSorted(names) {
			t.Errorf("the order is %q", names)
		}
		if _, err := io.Copy(io.Discard, z); err != nil {
			t.Errorf("gzip's trailer: %v", err)
		}
		if !maps.Equal(got, aModule.clean()) {
			t.Errorf("unpacked is %q", slices.Sorted(maps.Keys(got)))
		}
		if _, err := digestModuleArchive(t.Context(), fileOf(archive), int64(len(archive)), "tar.gz"); err != nil {
			t.Errorf("a registry that is given the archive says: %v", err)
		}
	})
	t.Run("by tar", func(t *testing.T) {
		dir := t.TempDir()
		c := exec.Command("tar", "-xzf", "-", "-C", dir)
		c.Stdin = bytes.NewReader(archive)
		if out, err := c.CombinedOutput(); err != nil || len(out) > 0 {
			t.Fatalf("%v\n%s", err, out)
		}
		for name, want := range aModule.clean() {
			b, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil || string(b) != want {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// clean has the names as an archive has them.
func (m moduleFiles) clean() moduleFiles {
	c := make(moduleFiles)
	for name, content := range m {
		c[path.Clean(name)] = content
	}
	return c
}

// The seams are deflate's blocks of 65535 bytes and a tar's of 512.
func TestSizesAtTheSeams(t *testing.T) {
	sizes := []int{0, 1, 511, 512, 513, 65535 - 1536, 65535 - 1535, 65534, 65535, 65536, 2*65535 - 1024, 2 * 65535, 3*65535 + 1}
	if !testing.Short() {
		sizes = append(sizes, 512*65535-1536) // makes the tar end with a block
	}
	for _, size := range sizes {
		want := noise(size)
		part := moduleFiles{"a.tf": want}.inMemory(t)
		f := packed(t, part)
		b := content(t, part, f)
		z, err := gzip.NewReader(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		r := tar.NewReader(z)
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r); err != nil || string(got) != want {
			t.Errorf("of %d bytes %d are unpacked, %v", size, len(got), err)
		}
		if _, err := io.Copy(io.Discard, z); err != nil {
			t.Errorf("with %d bytes gzip's trailer: %v", size, err)
		}
		if int64(len(b)) != f.Size {
			t.Errorf("with %d bytes the size is %d, not %d", size, len(b), f.Size)
		}
	}
}

func TestAnyPlaceOfAPackingCanBeRead(t *testing.T) {
	part := aModule.inMemory(t)
	f := packed(t, part)
	want := content(t, part, f)
	r, err := openPacking(part, f)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	random := rand.New(rand.NewPCG(1, 2))
	at := r.(io.ReaderAt)
	for range 2000 {
		from := random.Int64N(f.Size)
		p := make([]byte, min(random.Int64N(100_000), f.Size-from))
		if n, err := at.ReadAt(p, from); n != len(p) || err != nil && err != io.EOF || !bytes.Equal(p, want[from:from+int64(n)]) {
			t.Fatalf("%d bytes at %d: %d, %v", len(p), from, n, err)
		}
	}
	if end, err := r.Seek(0, io.SeekEnd); end != f.Size || err != nil {
		t.Errorf("the end is at %d, %v", end, err)
	}
	if n, err := r.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("behind the end is %d, %v", n, err)
	}
	if _, err := r.Seek(-8, io.SeekEnd); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(r); err != nil || !bytes.Equal(rest, want[len(want)-8:]) {
		t.Errorf("the last bytes are %x, %v", rest, err)
	}
}

func TestAFolderThatHasChangedIsNotServed(t *testing.T) {
	change := func(name, content string, modTime time.Time) func(*testing.T, Part) {
		return func(t *testing.T, p Part) {
			moduleFiles{name: content}.on(t, p.Fs, modTime, 0o644)
		}
	}
	for rule, change := range map[string]func(*testing.T, Part){
		"a file is longer":  change("main.tf", "longer than it was before, by a few bytes", long),
		"a file is shorter": change("main.tf", "x", long),
		"a file is newer":   change("main.tf", aModule["main.tf"], long.Add(time.Nanosecond)),
		"a file is gone":    func(_ *testing.T, p Part) { p.Fs.Remove("module/main.tf") },
		"the folder is gone": func(_ *testing.T, p Part) {
			p.Fs.RemoveAll("module")
		},
	} {
		t.Run(rule, func(t *testing.T) {
			part := aModule.inMemory(t)
			f := packed(t, part)
			change(t, part)
			if _, err := openPacking(part, f); !errors.Is(err, ErrChanged) {
				t.Errorf("the error is %v", err)
			}
		})
	}
	t.Run("a file becomes shorter while it is read", func(t *testing.T) {
		part := aModule.inMemory(t)
		f := packed(t, part)
		r, err := openPacking(part, f)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		moduleFiles{"large.bin": "x"}.on(t, part.Fs, long, 0o644)
		if _, err := io.ReadAll(r); !errors.Is(err, ErrChanged) {
			t.Errorf("the error is %v", err)
		}
	})
}

func TestFoldersThatAreNotPacked(t *testing.T) {
	deep := strings.Repeat("d/", maxFolderDepth+1)
	many, folders := make(fstest.MapFS), make(fstest.MapFS)
	for i := range maxFolderFiles + 1 {
		many[fmt.Sprintf("module/%d.tf", i)] = &fstest.MapFile{}
		folders[fmt.Sprintf("module/%d", i)] = &fstest.MapFile{Mode: fs.ModeDir}
	}
	disk := func(link, to string) Part {
		dir := t.TempDir()
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { root.Close() })
		os.MkdirAll(filepath.Join(dir, "module"), 0o755)
		for i := range 2 {
			if err := os.Symlink(strings.ReplaceAll(to, "DIR", dir), filepath.Join(dir, "module", fmt.Sprint(link, i))); err != nil {
				t.Fatal(err)
			}
		}
		return Part{Fs: rootFs{root}, Dir: "."}
	}
	for _, test := range []struct {
		rule   string
		part   Part
		reason Reason
		says   string
	}{
		{"one that is too deep", moduleFiles{deep + "main.tf": ""}.inMemory(t), TooLarge, "deeper than 32"},
		{"one with too many files", Part{Fs: afero.FromIOFS{FS: many}, Dir: "."}, TooLarge, "more than 10000 files"},
		{"one with too many folders", Part{Fs: afero.FromIOFS{FS: folders}, Dir: "."}, TooLarge, "more than 10000 folders"},
		{"one with two symlinks to itself", disk("again", "."), Unreadable, "too many levels of symbolic links"},
		{"one with two absolute symlinks to itself", disk("again", "DIR/module"), TooLarge, "deeper than 32"},
		{"one with a symlink to itself as a file", disk("loop", "loop1"), Unreadable, `"loop0" in it`},
		{"one with a symlink that leaves the root", disk("out", "../../../etc"), Unreadable, "a symlink leaves the root"},
		{"one with an absolute symlink", disk("out", "/etc"), Unreadable, "a symlink leaves the root"},
		{"one with a symlink to nothing", disk("nothing", "x"), Unreadable, "a symlink to nothing"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			_, _, f := test.part.walkFolder("module", unwatched)
			if f == nil || f.reason != test.reason || !strings.Contains(f.detail, test.says) {
				t.Errorf("the finding is %+v", f)
			}
		})
	}
}

// unwatched is for folders that are walked once.
func unwatched(string) {}
