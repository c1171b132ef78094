package storage

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-terraform/caddy-terraform-registry/index/memo"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/disk"
)

// MemoOf returns the file for the memo of a tree or a log. It is in Caddy's data directory, but
// not in the storage, since it can be large and is useful on this machine only.
func MemoOf(identity string) MemoFile {
	sum := sha256.Sum256([]byte(identity))
	dir := filepath.Join(caddy.AppDataDir(), "terraform_registry", "memo")
	return MemoFile(filepath.Join(dir, hex.EncodeToString(sum[:12])))
}

// A MemoFile keeps a memo in the file with that path.
//
// certmagic.FileStorage is not used: its temporary files have names of digits only,
// so those that a crash leaves behind cannot be recognized and removed. It also
// syncs each file, which is not needed: a damaged memo is detected and not used.
type MemoFile string

// Open implements memo.Store.
func (f MemoFile) Open() (io.ReadSeekCloser, error) {
	disk.RemoveTemporariesOf(string(f))
	return os.Open(string(f))
}

// Load returns the content.
func (f MemoFile) Load() ([]byte, error) {
	disk.RemoveTemporariesOf(string(f))
	return os.ReadFile(string(f))
}

// Save implements memo.Store. After a crash, or if the disk is full, the previous memo remains.
func (f MemoFile) Save(write func(io.Writer) error) error {
	if err := os.MkdirAll(filepath.Dir(string(f)), 0o700); err != nil {
		return err
	}
	return disk.RewriteFile(string(f), func(fresh *os.File) error { return write(fresh) })
}

// Interface guards
var _ memo.Store = MemoFile("")
