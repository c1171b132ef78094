package tlog

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/afero"

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

// Errors name the folder of the log: an operator would look at the tree, or make room for that.
func TestErrorsNameTheFolderOfTheLog(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "checkpoint"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	var faults treetest.Faults
	f := NewFolder(func() (tree.Part, error) {
		t, err := source.Directories{Root: dir}.Open()
		if err == nil {
			treetest.Wrap(&t.Root, func(fsys afero.Fs) afero.Fs { return treetest.FaultyFs{Fs: fsys, Faults: &faults} })
		}
		return t.Root, err
	})
	calls := map[string]func() error{
		"read":    func() error { return second(f.Read(t.Context(), "checkpoint")) },
		"stat":    func() error { return second(f.Modified(t.Context(), "checkpoint")) },
		"list":    func() error { return second(f.List(t.Context(), ".")) },
		"create":  func() error { return f.Create(t.Context(), "batch/0", []byte("x")) },
		"replace": func() error { return f.Replace(t.Context(), "checkpoint", []byte("x")) },
		"remove":  func() error { return f.Remove(t.Context(), "checkpoint") },
	}
	for _, test := range []struct {
		rule  string
		fails error
		kind  error
		says  string
	}{
		{"its disk is full", syscall.ENOSPC, tree.ErrDiskFull, "the disk is full: make room for the folder of the log"},
		{"it is read-only", syscall.EROFS, tree.ErrNotWritable, "the folder of the log cannot be read and written: give the server the right to"},
		{"its disk is broken", syscall.EIO, tree.ErrNotWritable, "the folder of the log cannot be read and written: input/output error"},
	} {
		for name, call := range calls {
			faults.From(1, test.fails)
			if err := call(); !errors.Is(err, test.kind) || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "tree") {
				t.Errorf("%s: %s says %v", test.rule, name, err)
			}
		}
	}
	missing := folderOn(filepath.Join(dir, "none"))
	if err := second(missing.Read(t.Context(), "checkpoint")); err == nil || strings.Contains(err.Error(), "tree") {
		t.Errorf("a folder that is missing says %v", err)
	}
}

func second[T any](_ T, err error) error { return err }

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
