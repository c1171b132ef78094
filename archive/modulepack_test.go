package archive

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/tree/disk"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/treetest"
)

// A file that cannot be read says nothing about the module. No operation that fails makes it a
// module that a scan would withhold, and the message is for the user whose files they are.
func TestAModuleIsPackedWhileTheDiskFails(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{".terraformignore": "*.bin\n", "main.tf": "", "modules/a/main.tf": "", "target": ""} {
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(content+"# x\n"), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("target", filepath.Join(dir, "link")); err != nil {
		t.Skip(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	part := disk.NewPart(root, dir)
	var faults treetest.Faults
	treetest.Wrap(&part, func(fsys afero.Fs) afero.Fs { return treetest.FaultyFs{Fs: fsys, Faults: &faults} })
	for _, cause := range []error{syscall.EIO, syscall.ESTALE, syscall.EMFILE, fs.ErrPermission} {
		for n, asked := 1, 1; n <= asked; n++ {
			faults.Once(n, cause)
			_, err := packModule(t.Context(), part)
			var failed []treetest.Operation
			asked, failed = faults.End()
			var bad *PackageError
			switch {
			case errors.As(err, &bad):
				t.Errorf("%v fails with %v: the module has the fault: %v", failed, cause, err)
			case err == nil || len(failed) == 0:
			case !errors.Is(err, cause) || strings.Contains(err.Error(), "server") || failed[0].Path != "." && !strings.Contains(err.Error(), failed[0].Path):
				t.Errorf("%v fails with %v, and the error is %v", failed, cause, err)
			}
		}
	}
}
