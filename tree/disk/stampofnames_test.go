//go:build unix

package disk_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/disk"
)

// The stamp of a folder's names stays the same until one of them is added or removed, whatever
// happens to the files that have them. It counts only if the next change would give another one.
func TestTheStampOfNames(t *testing.T) {
	dir := t.TempDir()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Mkdir(filepath.Join(dir, "acme"), 0o755))
	must(os.WriteFile(filepath.Join(dir, "acme", "file"), nil, 0o644))
	part, err := disk.Open(dir)
	must(err)
	later := func() time.Time { return time.Now().Add(time.Minute) }
	last, ok := part.StampOfNames("acme", later)
	if !ok {
		t.Fatal("there is no stamp: is the folder for temporary files on a network disk?")
	}
	if _, ok := part.StampOfNames("acme", func() time.Time { return time.Unix(0, last.Newest()) }); ok {
		t.Error("a change at the same moment would not be noticed")
	}
	for _, step := range []struct {
		rule    string
		do      func() error
		differs bool
	}{
		{"a file is written to", func() error { return os.WriteFile(filepath.Join(dir, "acme", "file"), []byte("x"), 0o644) }, false},
		{"a file is added", func() error { return os.WriteFile(filepath.Join(dir, "acme", "other"), nil, 0o644) }, true},
		{"a file is renamed", func() error {
			return os.Rename(filepath.Join(dir, "acme", "other"), filepath.Join(dir, "acme", "another"))
		}, true},
		{"a file is removed", func() error { return os.Remove(filepath.Join(dir, "acme", "another")) }, true},
		{"another folder takes its place", func() error {
			if err := os.Mkdir(filepath.Join(dir, "new"), 0o755); err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(dir, "new", "file"), nil, 0o644); err != nil {
				return err
			}
			if err := os.RemoveAll(filepath.Join(dir, "acme")); err != nil {
				return err
			}
			return os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "acme"))
		}, true},
	} {
		settle(t, part, "acme")
		must(step.do())
		now, ok := part.StampOfNames("acme", later)
		if !ok || (now != last) != step.differs {
			t.Errorf("%s: the stamp was %+v and is %+v, %v", step.rule, last, now, ok)
		}
		last = now
	}
	if _, ok := part.StampOfNames("missing", later); ok {
		t.Error("a folder that is missing has a stamp")
	}
	if _, ok := (tree.Part{Storage: disk.Folder{Fs: afero.NewMemMapFs(), Dir: "."}}).StampOfNames(".", later); ok {
		t.Error("a file system that is not on a disk tells of changes")
	}
}

// settle waits until a change in a folder would give it another stamp.
func settle(t *testing.T, part tree.Part, folder string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); runtime.Gosched() {
		if _, ok := part.StampOfNames(folder, time.Now); ok {
			return
		}
	}
	t.Fatal("the folder stays young")
}
