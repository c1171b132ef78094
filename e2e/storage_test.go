package e2e_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// shareSigningKey puts the registry's own signing key into the storage of a
// Caddy that is about to start, as if all Caddys of a run were one cluster:
// the first one to start generates it, which takes seconds. Meanwhile another
// Caddy may get the port that was chosen for it, and both would listen there.
func shareSigningKey(t *testing.T, storage string) {
	t.Helper()
	path := filepath.Join("terraform_registry", "signing_key.asc")
	cluster.Lock()
	if cluster.first == "" {
		cluster.first = storage
	}
	first := filepath.Join(cluster.first, path)
	cluster.Unlock()
	own := filepath.Join(storage, path)
	if exists(own) { // a restart keeps its key
		return
	}
	// The first key may not exist yet: it is being generated, and this Caddy will
	// generate another.
	if exists(first) {
		copyFile(t, first, own)
	}
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

var cluster struct {
	sync.Mutex
	first string // storage
}
