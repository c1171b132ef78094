//go:build unix

package access

import (
	"os"
	"syscall"
	"testing"
)

// The server may run as another user than the one who edits.
func TestEditTokensKeepsTheOwner(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can give a file away")
	}
	const uid, gid = 1234, 2345
	path := tokensPath(t, "")
	if err := os.Chown(path, uid, gid); err != nil {
		t.Skipf("files cannot be given away here: %v", err)
	}
	if err := AddToken(path, TokenEntry{Name: "ci"}, "a"); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if s := info.Sys().(*syscall.Stat_t); s.Uid != uid || s.Gid != gid {
		t.Errorf("it belongs to %d:%d", s.Uid, s.Gid)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("it has the mode %v", info.Mode())
	}
}
