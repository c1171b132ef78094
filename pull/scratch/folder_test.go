package scratch

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// The scratch folder of a killed process is removed. The scratch folder of a process
// that is running or starting stays, and so do other folders.
func TestScratchesOfKilledProcesses(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	used, err := New()
	if err != nil {
		t.Fatal(err)
	}
	folder := func(name string, old bool, files ...string) string {
		dir := filepath.Join(os.TempDir(), name)
		for _, file := range append(files, ".") {
			if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(file)), 0o700); err != nil {
				t.Fatal(err)
			}
			if file != "." {
				if err := os.WriteFile(filepath.Join(dir, file), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		if past := time.Now().Add(-2 * unlocked); old {
			if err := os.Chtimes(dir, past, past); err != nil {
				t.Fatal(err)
			}
		}
		return name
	}
	left := []string{folder(prefix+"1", false, "lock", "files/a/main.tf"), folder(prefix+"2", true)}
	stays := []string{filepath.Base(used.dir), folder(prefix+"3", false), folder("other", true, "lock")}
	if err := os.Chmod(filepath.Join(os.TempDir(), left[0], "files", "a"), 0o500); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(os.TempDir(), prefix+"file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	stays = append(stays, prefix+"file")
	if n := RemoveUnused(t.Context()); n != len(left) {
		t.Errorf("%d were removed", n)
	}
	if got := names(t); !slices.Equal(got, slices.Sorted(slices.Values(stays))) {
		t.Errorf("there is %q, want %q", got, stays)
	}
	used.Remove()
	if slices.Contains(names(t), filepath.Base(used.dir)) {
		t.Error("one that is not used any more is still there")
	}
}

func names(t *testing.T) (names []string) {
	entries, err := os.ReadDir(os.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// Failing to make a scratch folder is an error of the disk, which does not name the
// path.
func TestScratchesThatCannotBeMade(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "none")
	t.Setenv("TMPDIR", dir)
	if _, err := New(); !errors.Is(err, tree.ErrNotWritable) || strings.Contains(err.Error(), dir) {
		t.Errorf("got %v", err)
	}
}
