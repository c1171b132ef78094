package mapping

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// A file on OverlayFS keeps its number when it is copied up. A shared mapping would go on with the
// pages from before.
func TestFilesOnOverlayFSAreNotMapped(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, ""); err != nil {
		t.Skipf("only root can mount a file system: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(dir, 0) })
	for _, name := range []string{"lower", "upper", "work", "merged"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	merged := filepath.Join(dir, "merged")
	if err := unix.Mount("overlay", merged, "overlay", 0, "lowerdir="+dir+"/lower,upperdir="+dir+"/upper,workdir="+dir+"/work"); err != nil {
		t.Skipf("the system has no OverlayFS: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(merged, 0) })
	for folder, want := range map[string]bool{dir: true, merged: false} {
		f, err := os.Create(filepath.Join(folder, "file"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, mapped := identify(f); mapped != want && addressSpaceIsLarge() {
			t.Errorf("a file on %s is mapped: %v", filepath.Base(folder), mapped)
		}
	}
}
