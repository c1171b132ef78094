//go:build unix

package disk_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/tree/disk"
)

// A server that runs as another user reads, replaces and removes what a command of root has
// made, whatever the umask of root is.
func TestWhatRootMakesBelongsToTheServer(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can change the owner of a file")
	}
	const uid, gid, other = 1234, 2345, 3456
	root := t.TempDir()
	for name, mode := range map[string]fs.FileMode{"own": 0o640, "others": 0o664} {
		if err := os.WriteFile(filepath.Join(root, name), nil, mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(root, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chown(root, uid, gid); err != nil {
		t.Skipf("the owner cannot be changed: %v", err)
	}
	for name, uid := range map[string]int{"own": uid, "others": other} {
		if err := os.Chown(filepath.Join(root, name), uid, gid); err != nil {
			t.Fatal(err)
		}
	}
	part, err := disk.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Umask(syscall.Umask(0o077))
	for _, write := range []func() error{
		func() error { return part.Storage.Write("acme/demo/registry.hcl", []byte("x")) },
		func() error { return part.Storage.Write("own", []byte("x")) },
		func() error { return part.Storage.Write("others", []byte("x")) },
		func() error {
			return part.InstallDocuments(t.Context(), map[string][]byte{"a": []byte("x"), "b": []byte("x")}, "acme/demo/docs", "b")
		},
		func() error {
			f, err := part.NewTemporary(t.Context(), "acme/other/.x.tmp")
			if err != nil {
				return err
			}
			_, err = f.Create(t.Context(), "acme/other/1.0.0.zip")
			return err
		},
	} {
		if err := write(); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]int{"others": other}
	modes := map[string]fs.FileMode{"own": 0o640, "others": 0o664}
	seen := 0
	err = filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		seen++
		name, _ := filepath.Rel(root, path)
		owner, group, _ := disk.Owner(info)
		expected, ok := want[name]
		if !ok {
			expected = uid
		}
		if owner != expected || group != gid {
			t.Errorf("%s belongs to %d:%d", name, owner, group)
		}
		if mode, ok := modes[name]; ok && info.Mode().Perm() != mode {
			t.Errorf("%s has the mode %v", name, info.Mode())
		}
		return nil
	})
	if err != nil || seen != 11 {
		t.Errorf("%d files and folders: %v", seen, err)
	}
}
