//go:build unix

package tokenfile

import (
	"os"
	"syscall"
	"testing"
)

// The server may run as another user than the person who edits the file.
func TestEditKeepsTheOwner(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can change the owner of a file")
	}
	const uid, gid = 1234, 2345
	path := tempFile(t, "")
	if err := os.Chown(path, uid, gid); err != nil {
		t.Skipf("the owner cannot be changed: %v", err)
	}
	if err := Add(path, Entry{Name: "ci"}, "a"); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if s := info.Sys().(*syscall.Stat_t); s.Uid != uid || s.Gid != gid {
		t.Errorf("the owner is %d:%d", s.Uid, s.Gid)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("it has the mode %v", info.Mode())
	}
}
