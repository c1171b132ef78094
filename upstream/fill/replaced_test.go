package fill_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/fill"
)

// A root that is replaced just after a fill, while the tree is still open, has the
// next package all the same.
func TestFillIntoARootThatWasReplaced(t *testing.T) {
	s := newAcme(t)
	m := onDisk(t, s.Client(t, upstream.Origin{}), fill.Policy{})
	m.fill(t, darwinZip)
	if err := errors.Join(os.Rename(m.root, m.root+".old"), os.Mkdir(m.root, 0o755)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(m.root + ".old") })
	m.fill(t, linuxZip)
	for _, name := range []string{linuxZip, sums, sums + ".sig"} {
		if _, err := os.Stat(filepath.Join(m.root, held, name)); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(filepath.Join(m.root+".old", held, linuxZip)); err == nil {
		t.Error("it is in the folder that was replaced")
	}
}

// A folder of providers elsewhere on the disk may go away, too. What was written
// to a stand-in for it would be lost, so nothing is fetched.
func TestFillIntoAFolderThatIsGone(t *testing.T) {
	s := newAcme(t)
	c := s.Client(t, upstream.Origin{})
	for _, filledBefore := range []bool{false, true} {
		root, providers := t.TempDir(), t.TempDir()
		m := (&mirroring{Tree: indextest.OnDisk(t, root), root: root}).start(t, c, fill.Options{
			Sources: sourceOf(c, fill.Policy{}),
			Open:    index.Directories{Root: root, Providers: providers}.Open,
			Path:    func(name string) string { return filepath.Join(providers, name) },
		})
		if filledBefore { // and the tree is still open
			m.fill(t, darwinZip)
		}
		if err := os.RemoveAll(providers); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Fill(background(), demo, linuxZip); !errors.Is(err, fill.ErrNotWritable) {
			t.Errorf("got %v", err)
		}
		if n := s.Count(zipFile); n != 0 {
			t.Errorf("the package was fetched %d times", n)
		}
		if _, err := os.Stat(providers); err == nil {
			t.Error("the folder is there again")
		}
	}
}
