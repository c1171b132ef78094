//go:build unix

package disk

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// Operations on a file below an absolute symlink affect the file it leads to, and
// operations on a name affect the symlink.
func TestAbsoluteSymlinksInsideTheRoot(t *testing.T) {
	for _, test := range []struct {
		rule string
		name func(dir string) string // the base of link targets
	}{
		{"named by the root's path", func(dir string) string { return filepath.Join(dir, "named") }},
		{"named by its real path", func(dir string) string { return filepath.Join(dir, "real") }},
	} {
		t.Run(test.rule, func(t *testing.T) {
			dir := t.TempDir()
			write := func(name, content string) {
				name = filepath.Join(dir, "real", name)
				os.MkdirAll(filepath.Dir(name), 0o755)
				if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			write("pool/a", "a")
			for from, to := range map[string]string{
				"named":       filepath.Join(dir, "real"),
				"real/folder": test.name(dir) + "/pool",
				"real/file":   test.name(dir) + "/pool/a",
			} {
				if err := os.Symlink(to, filepath.Join(dir, from)); err != nil {
					t.Fatal(err)
				}
			}
			root, err := os.OpenRoot(filepath.Join(dir, "named"))
			if err != nil {
				t.Fatal(err)
			}
			defer root.Close()
			fsys := newRootFs(root)

			for _, name := range []string{"folder/a", "file", "./folder//a"} {
				if b, err := afero.ReadFile(fsys, name); err != nil || string(b) != "a" {
					t.Errorf("%s is %q, %v", name, b, err)
				}
			}
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Error(err)
				}
			}
			must(fsys.MkdirAll("folder/b/c", 0o755))
			must(fsys.Mkdir("folder/b/d", 0o755))
			must(afero.WriteFile(fsys, "folder/b/new", []byte("new"), 0o644))
			must(fsys.Rename("folder/b/new", "folder/newer"))
			must(fsys.Chmod("folder/newer", 0o600))
			if b, err := os.ReadFile(filepath.Join(dir, "real/pool/newer")); err != nil || string(b) != "new" {
				t.Errorf("written was %q, %v", b, err)
			}
			must(fsys.RemoveAll("folder/b"))
			must(fsys.Remove("folder/newer"))
			must(fsys.Remove("file"))
			must(fsys.Remove("folder"))
			entries, err := os.ReadDir(filepath.Join(dir, "real/pool"))
			if err != nil || len(entries) != 1 || entries[0].Name() != "a" {
				t.Errorf("left in the folder is %v, %v", entries, err)
			}
		})
	}
}

// A symlink that is exchanged after it was resolved cannot lead outside, since the resolved
// name goes through os.Root again.
func TestAnExchangedAbsoluteSymlink(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"root/inside", "outside"} {
		os.MkdirAll(filepath.Join(dir, name), 0o755)
		if err := os.WriteFile(filepath.Join(dir, name, "a"), []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	inner := filepath.Join(dir, "root/inner")
	for from, to := range map[string]string{
		filepath.Join(dir, "root/link"): inner + "/a",
		inner:                           "inside",
	} {
		if err := os.Symlink(to, from); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(filepath.Join(dir, "root"))
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	calls := 0
	f, err := inside(newRootFs(root), "link", func(name string) (*os.File, error) {
		if calls++; calls == 2 { // it is resolved now, and exchanged
			os.RemoveAll(filepath.Join(dir, "root/inside"))
			if err := os.Symlink(filepath.Join(dir, "outside"), filepath.Join(dir, "root/inside")); err != nil {
				t.Fatal(err)
			}
		}
		return root.Open(name)
	})
	if err == nil {
		b, _ := io.ReadAll(f)
		t.Errorf("%q was read", b)
	}
	if calls != 2 || !tree.LeavesRoot(err) {
		t.Errorf("after %d calls the error is %v", calls, err)
	}
}
