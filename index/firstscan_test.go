package index_test

import (
	"context"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
)

// Somebody may ask for a scan before the index has made its own first one. That
// one knows the memo and is watched as any other.
func TestAFirstScanThatWasAskedFor(t *testing.T) {
	dir := t.TempDir()
	tree := indextest.OnDisk(t, dir)
	tree.Provider("acme/demo", "1.0.0", "linux_amd64")
	o := options(t, index.Directories{Root: dir}.Open)
	o.Store, o.Watch = new(memoryStore), true
	first := index.New(o)
	for { // what is too young is read again
		s, err := first.Rescan(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if s.Read == 0 {
			break
		}
	}
	first.Close()

	for range 20 {
		r := index.New(o)
		r.Start()
		s, err := r.Rescan(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if s.Read != 0 || s.Recalled != 1 {
			t.Errorf("%d archives are read, %d recalled", s.Read, s.Recalled)
		}
		r.Close()
	}
}
