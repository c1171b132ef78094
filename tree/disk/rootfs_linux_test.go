package disk

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// Names inside the directory are opened at once. Names that lead out are left to os.Root,
// which refuses them.
func TestOpenBeneath(t *testing.T) {
	outside := t.TempDir()
	root := filepath.Join(outside, "root")
	for _, err := range []error{
		os.MkdirAll(filepath.Join(root, "a", "b"), 0o755),
		os.WriteFile(filepath.Join(root, "a", "b", "file"), []byte("inside"), 0o644),
		os.WriteFile(filepath.Join(outside, "file"), []byte("outside"), 0o644),
		os.Symlink("a/b", filepath.Join(root, "link")),
		os.Symlink("../../file", filepath.Join(root, "a", "out")),
		os.Symlink(filepath.Join(root, "a"), filepath.Join(root, "absolute")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	dir, err := os.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	if _, err := unix.Openat2(int(dir.Fd()), ".", &unix.OpenHow{}); errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		t.Skip("not run, because this kernel or sandbox has no openat2")
	}
	for _, test := range []struct {
		rule, name string
		opens      bool
	}{
		{"a file several directories deep", "a/b/file", true},
		{"through a symlink that stays inside", "link/file", true},
		{"a path that leads out", "../file", false},
		{"a symlink that leads out", "a/out", false},
		{"an absolute path", filepath.Join(root, "a", "b", "file"), false},
		{"an absolute symlink, even if it stays inside", "absolute/b/file", false},
		{"what is not there", "a/none", false},
	} {
		t.Run(test.rule, func(t *testing.T) {
			f := openBeneath(dir, test.name)
			if f == nil {
				if test.opens {
					t.Error("it is not opened")
				}
				return
			}
			defer f.Close()
			if content, err := io.ReadAll(f); !test.opens || err != nil || string(content) != "inside" {
				t.Errorf("it opens %q (%v)", content, err)
			}
		})
	}
}

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
		if got.Mode() != want.Mode() || got.IsDir() != want.IsDir() || !got.ModTime().Equal(want.ModTime()) || tree.StampOf(got) != tree.StampOf(want) {
			t.Errorf("%s is %v of %+v, not %v of %+v", got.Name(), got.Mode(), tree.StampOf(got), want.Mode(), tree.StampOf(want))
		}
	}
}
