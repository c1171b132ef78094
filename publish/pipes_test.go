//go:build unix

package publish_test

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// A named pipe where a folder should be is not opened: that would wait for its writer.
func TestPipesAreNotOpened(t *testing.T) {
	d := newDist(t, "")
	for _, name := range []string{"providers/acme/demo/1.0.0", "providers/acme/demo", "providers/acme"} {
		r := newRegistry(t)
		r.Write(name+"/x", "").Remove(name)
		if err := syscall.Mkfifo(filepath.Join(r.root, filepath.FromSlash(name)), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := r.put(linuxZip, d[linuxZip]); !errors.Is(err, tree.ErrNotWritable) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
