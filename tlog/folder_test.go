package tlog

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/treetest"
)

// folderOn returns the store in a folder of the disk.
func folderOn(dir string) *Folder {
	return NewFolder(func() (tree.Part, error) {
		t, err := source.Directories{Root: dir}.Open()
		return t.Root, err
	})
}

func folderIn(b *treetest.Bucket) *Folder {
	return NewFolder(func() (tree.Part, error) {
		t, err := source.Directories{Root: "log"}.OpenIn(b)
		return t.Root, err
	})
}

// The experiment of TestThereIsOneLogWhateverHappens, on real files.
func TestThereIsOneLogInAFolder(t *testing.T) {
	oneByOne(t)
	tries := uint64(*seeds / 15)
	if testing.Short() {
		tries = uint64(*seeds / 150)
	}
	t.Run("on a disk", func(t *testing.T) {
		for seed := *firstSeed; seed < *firstSeed+tries && !t.Failed(); seed++ {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				m := newMemory()
				m.store = folderOn(dir)
				tryHistory(t, m, func() map[string][]byte { return filesBelow(t, dir) }, seed)
			})
		}
	})
	t.Run("in a bucket", func(t *testing.T) {
		for seed := *firstSeed; seed < *firstSeed+tries && !t.Failed(); seed++ {
			synctest.Test(t, func(t *testing.T) {
				m, b := newMemory(), new(treetest.Bucket)
				m.store = folderIn(b)
				tryHistory(t, m, func() map[string][]byte {
					files := make(map[string][]byte)
					for name, content := range b.Contents() {
						files[name[len("log/"):]] = []byte(content)
					}
					return files
				}, seed)
			})
		}
	})
}

func filesBelow(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	files := make(map[string][]byte)
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files[name], err = os.ReadFile(filepath.Join(dir, name))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// Only fs.ErrNotExist means that a log has no such file.
func TestAFolderThatCannotBeRead(t *testing.T) {
	full := t.TempDir()
	write := func(dir, name, content string, age time.Duration) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644),
			os.Chtimes(path, time.Time{}, time.Now().Add(-age))); err != nil {
			t.Fatal(err)
		}
	}
	write(full, "batch/0", "x", 0)
	write(full, "batch/1", "", 0)
	write(full, "batch/2", "", time.Hour)
	if err := os.Symlink("nothing", filepath.Join(full, "batch", "3")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(full, "batch", "5"), 0o755); err != nil {
		t.Fatal(err)
	}
	f := folderOn(full)
	for _, test := range []struct {
		rule, name string
		absent     bool
		content    string
	}{
		{"a file", "batch/0", false, "x"},
		{"an empty file may get its content", "batch/1", false, ""},
		{"an empty file that is old is left over", "batch/2", true, ""},
		{"a symlink to nothing may lead to something", "batch/3", false, ""},
		{"there is no file", "batch/4", true, ""},
		{"a folder is in the way", "batch/5", false, ""},
	} {
		content, err := f.Read(t.Context(), test.name)
		if string(content) != test.content || errors.Is(err, fs.ErrNotExist) != test.absent || (err == nil) != (test.content != "") {
			t.Errorf("%s: it has %q, %v", test.rule, content, err)
		}
		if _, err := f.Modified(t.Context(), test.name); errors.Is(err, fs.ErrNotExist) != test.absent {
			t.Errorf("%s: its time is %v", test.rule, err)
		}
	}
	if err := f.Create(t.Context(), "batch/0", []byte("y")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("creating what exists says %v", err)
	}
	if err := f.Create(t.Context(), "batch/2", []byte("y")); err != nil {
		t.Errorf("creating what was left over says %v", err)
	}

	missing := folderOn(filepath.Join(t.TempDir(), "mount"))
	if _, err := missing.Read(t.Context(), "checkpoint"); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that is missing says %v", err)
	}
	if _, err := missing.Modified(t.Context(), "checkpoint"); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Error("a folder that is missing has no files")
	}
}

// An operator puts another folder in the place of a log's.
func TestAFolderThatIsReplaced(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	put := func(content string) {
		t.Helper()
		if err := errors.Join(os.Mkdir(dir, 0o755), os.WriteFile(filepath.Join(dir, "checkpoint"), []byte(content), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	put("1")
	f := folderOn(dir)
	reads := func(want string) {
		t.Helper()
		if content, err := f.Read(context.Background(), "checkpoint"); err != nil || string(content) != want {
			t.Errorf("it reads %q, %v", content, err)
		}
	}
	reads("1")
	if err := os.Rename(dir, dir+".old"); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Read(t.Context(), "checkpoint"); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a folder it says %v", err)
	}
	put("2")
	reads("2")
}
