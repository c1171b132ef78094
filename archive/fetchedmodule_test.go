package archive

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/disk"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/treetest"
)

// writeFetched writes the files of a module into a folder.
func writeFetched(t *testing.T) string {
	dir := t.TempDir()
	for name, content := range map[string]string{"main.tf": "# root", ".terraformignore": "*.log\n", "modules/a/main.tf": "# a", "run.sh": "#!/bin/sh\n"} {
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// A module is refused for a day if its files cannot be packed. A failure of the disk is not
// the module's fault.
func TestAFetchedModuleIsPackedWhileTheDiskFails(t *testing.T) {
	dir := writeFetched(t)
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	part := disk.NewPart(root, dir)
	var faults treetest.Faults
	treetest.Wrap(&part, func(fsys afero.Fs) afero.Fs { return treetest.FaultyFs{Fs: fsys, Faults: &faults} })
	for _, published := range []bool{false, true} {
		m := FetchedModule{Dir: dir, Published: published}
		var want bytes.Buffer
		if err := m.Pack(t.Context(), &want); err != nil {
			t.Fatal(err)
		}
		for _, errno := range []syscall.Errno{syscall.EIO, syscall.ESTALE, syscall.EMFILE} {
			for n, asked := 1, 1; n <= asked; n++ {
				faults.Once(n, errno)
				var got bytes.Buffer
				err := m.pack(t.Context(), part, &got)
				var failed []treetest.Operation
				asked, failed = faults.End()
				var bad *PackageError
				switch {
				case errors.As(err, &bad):
					t.Errorf("published: %t, %v fails with %v: the module is refused: %v", published, failed, errno, err)
				case err == nil && !bytes.Equal(got.Bytes(), want.Bytes()):
					t.Errorf("published: %t, %v fails with %v: the package differs", published, failed, errno)
				}
			}
		}
	}
}

// A module whose files are wrong is refused.
func TestAFetchedModuleThatCannotBePacked(t *testing.T) {
	dir := writeFetched(t)
	if err := os.Symlink(".", filepath.Join(dir, "itself")); err != nil {
		t.Skip(err)
	}
	var bad *PackageError
	if err := (FetchedModule{Dir: dir}).Pack(t.Context(), io.Discard); !errors.As(err, &bad) || bad.Reason != tree.Unreadable {
		t.Errorf("got %v", err)
	}
}
