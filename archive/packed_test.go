package archive

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/disk"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/iofs"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/treetest"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// long is a time that no file system considers recent.
var long = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// moduleFiles are the files of a module folder, by name.
type moduleFiles map[string]string

func (m moduleFiles) on(t testing.TB, fsys afero.Fs, modTime time.Time, mode fs.FileMode) tree.Part {
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
	return treetest.On(fsys, ".")
}

func (m moduleFiles) inMemory(t testing.TB) tree.Part {
	return m.on(t, afero.NewMemMapFs(), long, 0o644)
}

// noise returns incompressible content, the same every time.
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

// clean returns the files with their names as in an archive.
func (m moduleFiles) clean() moduleFiles {
	c := make(moduleFiles)
	for name, content := range m {
		c[path.Clean(name)] = content
	}
	return c
}

func TestAChangedFolderIsNotServed(t *testing.T) {
	change := func(name, content string, modTime time.Time) func(*testing.T, tree.Part) {
		return func(t *testing.T, p tree.Part) {
			moduleFiles{name: content}.on(t, treetest.FsOf(p), modTime, 0o644)
		}
	}
	for rule, change := range map[string]func(*testing.T, tree.Part){
		"a file is longer":  change("main.tf", "longer than it was before, by a few bytes", long),
		"a file is shorter": change("main.tf", "x", long),
		"a file is newer":   change("main.tf", aModule["main.tf"], long.Add(time.Nanosecond)),
		"a file is gone":    func(_ *testing.T, p tree.Part) { treetest.FsOf(p).Remove("module/main.tf") },
		"the folder is gone": func(_ *testing.T, p tree.Part) {
			treetest.FsOf(p).RemoveAll("module")
		},
	} {
		t.Run(rule, func(t *testing.T) {
			part := aModule.inMemory(t)
			f := packed(t, part)
			change(t, part)
			if _, err := openPacking(part, f); !errors.Is(err, tree.ErrChanged) {
				t.Errorf("the error is %v", err)
			}
		})
	}
	t.Run("a file becomes shorter while it is read", func(t *testing.T) {
		part := aModule.inMemory(t)
		f := packed(t, part)
		r := f.packed.Open(part)
		defer r.Close()
		moduleFiles{"large.bin": "x"}.on(t, treetest.FsOf(part), long, 0o644)
		if _, err := io.ReadAll(r); !errors.Is(err, tree.ErrChanged) {
			t.Errorf("the error is %v", err)
		}
	})
	t.Run("but a small one is served as it was opened", func(t *testing.T) {
		part := aModule.inMemory(t)
		f := packed(t, part)
		r, err := openPacking(part, f)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		treetest.FsOf(part).RemoveAll("module")
		content, err := io.ReadAll(r)
		if err != nil || wire.SHA256Of(content) != f.SHA256 {
			t.Errorf("it is read as %x, %v", wire.SHA256Of(content), err)
		}
	})
}

func TestFoldersThatCannotBePacked(t *testing.T) {
	skipInShort(t)
	deep := strings.Repeat("d/", maxFolderDepth+1)
	many, folders := make(fstest.MapFS), make(fstest.MapFS)
	for i := range maxFolderFiles + 1 {
		many[fmt.Sprintf("module/%d.tf", i)] = &fstest.MapFile{}
		folders[fmt.Sprintf("module/%d", i)] = &fstest.MapFile{Mode: fs.ModeDir}
	}
	disk := func(link, to string) tree.Part {
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
		return disk.NewPart(root, "")
	}
	for _, test := range []struct {
		rule   string
		part   tree.Part
		reason tree.Reason
		says   string
	}{
		{"one that is too deep", moduleFiles{deep + "main.tf": ""}.inMemory(t), tree.TooLarge, "deeper than 32"},
		{"one with too many files", tree.Part{Storage: iofs.NewFolder(many)}, tree.TooLarge, "more than 10000 files"},
		{"one with too many folders", tree.Part{Storage: iofs.NewFolder(folders)}, tree.TooLarge, "more than 10000 folders"},
		{"one with two symlinks to itself", disk("again", "."), tree.Unreadable, "too many levels of symbolic links"},
		{"one with two absolute symlinks to itself", disk("again", "DIR/module"), tree.TooLarge, "deeper than 32"},
		{"one with a symlink to itself as a file", disk("loop", "loop1"), tree.Unreadable, `"loop0" in it`},
		{"one with a symlink that leaves the root", disk("out", "../../../etc"), tree.Unreadable, "a symlink leaves the root"},
		{"one with an absolute symlink", disk("out", "/etc"), tree.Unreadable, "a symlink leaves the root"},
		{"one with a symlink to nothing", disk("nothing", "x"), tree.Unreadable, "a symlink to nothing"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			_, _, f := walkFolder(test.part, "module", unwatched)
			if f == nil || f.Reason != test.reason || !strings.Contains(f.Detail, test.says) {
				t.Errorf("the finding is %+v", f)
			}
		})
	}
}

// unwatched is for folders that are walked only once.
func unwatched(string) {}

// A file whose mode has changed makes another package, even if the file system shows
// no other change.
func TestFolderStampCoversModes(t *testing.T) {
	files := moduleFiles{"main.tf": "x", "run": "x"}
	stamps := make(map[tree.Stamp]bool)
	for _, mode := range []fs.FileMode{0o644, 0o755} {
		fsys := afero.NewMemMapFs()
		part := files.on(t, fsys, long, 0o644)
		fsys.Chmod("module/run", mode)
		fsys.Chtimes("module/run", long, long)
		walked, _, f := walkFolder(part, "module", unwatched)
		if f != nil {
			t.Fatal(f)
		}
		stamps[stampFolder(walked)] = true
	}
	if len(stamps) != 2 {
		t.Error("the stamps are the same")
	}
}
