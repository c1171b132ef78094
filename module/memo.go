package module

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
)

// identity names a tree in the memo of its digests, and in signed links. Two trees
// that are read alike have the same name, whatever is made of what is read. It is
// the same at all instances that have the tree in the same place.
func (t tree) identity() string {
	named := struct {
		FileSystem  string
		Directories index.Directories
	}{t.fsName, t.directories}
	identity, _ := json.Marshal(named) // strings always encode
	return string(identity)
}

// store is where the memo of a tree is kept: among Caddy's data, but not in its
// storage, as it can be large and is of use to this machine alone.
func (t tree) store() index.Store {
	sum := sha256.Sum256([]byte(t.identity()))
	dir := filepath.Join(caddy.AppDataDir(), "terraform_registry", "memo")
	return memoFile(filepath.Join(dir, hex.EncodeToString(sum[:12])))
}

// A memoFile keeps a memo in a file of that path.
type memoFile string

// Load implements index.Store. What a crash has left behind goes on this
// occasion.
func (f memoFile) Load() ([]byte, error) {
	left, _ := filepath.Glob(filepath.Join(filepath.Dir(string(f)), f.temporary()))
	for _, name := range left {
		// A young one may be another process's, which is writing it.
		if info, err := os.Stat(name); err == nil && time.Since(info.ModTime()) > time.Hour {
			os.Remove(name)
		}
	}
	return os.ReadFile(string(f))
}

// temporary is the pattern of the names a memo has before it is whole.
func (f memoFile) temporary() string { return "." + filepath.Base(string(f)) + "-*" }

// Save implements index.Store. A crash, or a full disk, leaves the old memo.
func (f memoFile) Save(memo []byte) error {
	dir := filepath.Dir(string(f))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	temporary, err := os.CreateTemp(dir, f.temporary()) // which only the owner may read
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name()) // it is gone by then if all went well
	_, err = temporary.Write(memo)
	if closed := temporary.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return os.Rename(temporary.Name(), string(f))
}

// Interface guards
var _ index.Store = memoFile("")
