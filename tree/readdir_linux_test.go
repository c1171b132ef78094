package tree

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// readEntries must see what Readdir sees, in a directory that takes several system calls.
func TestReadEntries(t *testing.T) {
	dir := t.TempDir()
	for i := range 1000 {
		name := filepath.Join(dir, fmt.Sprintf("%s%d", strings.Repeat("x", i%200), i))
		if err := os.WriteFile(name, make([]byte, i), 0o600+os.FileMode(i%0o100)); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range []error{
		os.Mkdir(filepath.Join(dir, "folder"), 0o755),
		os.Symlink("folder", filepath.Join(dir, "link")),
		os.Symlink("nothing", filepath.Join(dir, "dangling")),
		syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o644),
		os.WriteFile(filepath.Join(dir, "größer"), []byte("x"), 0o755),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	infos, err := readEntries(f)
	if err != nil || len(infos) != 1005 {
		t.Fatalf("%d entries, %v", len(infos), err)
	}
	for _, got := range infos {
		want, err := os.Lstat(filepath.Join(dir, got.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if got.Mode() != want.Mode() || got.IsDir() != want.IsDir() || !got.ModTime().Equal(want.ModTime()) || StampOf(got) != StampOf(want) {
			t.Errorf("%s is %v of %+v, not %v of %+v", got.Name(), got.Mode(), StampOf(got), want.Mode(), StampOf(want))
		}
	}
}
