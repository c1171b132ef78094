package storage

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-terraform/caddy-terraform-registry/index/memo"
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
	f.removeTemporaries()
	return os.Open(string(f))
}

// Load returns the content.
func (f MemoFile) Load() ([]byte, error) {
	f.removeTemporaries()
	return os.ReadFile(string(f))
}

// removeTemporaries removes temporary files left by a crash.
func (f MemoFile) removeTemporaries() {
	left, _ := filepath.Glob(filepath.Join(filepath.Dir(string(f)), f.temporary()))
	for _, name := range left {
		// A recent file may be in use by another process.
		if info, err := os.Stat(name); err == nil && time.Since(info.ModTime()) > time.Hour {
			os.Remove(name)
		}
	}
}

// temporary is the pattern for the names of the memo's temporary files.
func (f MemoFile) temporary() string { return "." + filepath.Base(string(f)) + "-*" }

// Save implements memo.Store. After a crash, or if the disk is full, the previous memo remains.
func (f MemoFile) Save(write func(io.Writer) error) error {
	dir := filepath.Dir(string(f))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	temporary, err := os.CreateTemp(dir, f.temporary()) // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name()) // fails if it was renamed
	if err := errors.Join(write(temporary), temporary.Close()); err != nil {
		return err
	}
	return os.Rename(temporary.Name(), string(f))
}

// Interface guards
var _ memo.Store = MemoFile("")
