package fill_test

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/fill"
)

// An unreadable file system refuses to open what has a name.
type unreadable struct {
	afero.Fs
	name string
}

func (u unreadable) Open(name string) (afero.File, error) {
	if strings.Contains(name, u.name) {
		return nil, &os.PathError{Op: "open", Path: name, Err: syscall.EACCES}
	}
	return u.Fs.Open(name)
}

// A Filler that must not write says what it would fetch, and tells that from what
// it cannot read.
func TestReadOnlyFiller(t *testing.T) {
	tree, publisher := acme(t)
	s := newSite(t, tree)
	c := s.Client(t, upstream.Origin{})
	attempt := func(fs afero.Fs) error {
		mine := indextest.On(t, fs)
		m := (&mirroring{Tree: mine}).start(t, c, fill.Options{
			Sources: sourceOf(c, fill.Policy{}), ReadOnly: true, Open: mine.Open,
		})
		_, err := m.Fill(background(), demo, linuxZip)
		return err
	}
	memory := afero.NewMemMapFs()
	if err := attempt(memory); !errors.Is(err, fill.ErrWouldFill) {
		t.Errorf("what is not there: got %v", err)
	}
	held := indextest.On(t, memory)
	held.Keys(host+"/acme", publisher)
	held.Provider(host+"/acme/demo", "1.0.0", "linux_amd64", "darwin_arm64").Signed(publisher)
	if err := attempt(memory); err != nil {
		t.Errorf("what is there: got %v", err)
	}
	if err := attempt(unreadable{memory, linuxZip}); !errors.Is(err, fill.ErrNotWritable) || errors.Is(err, fill.ErrWouldFill) {
		t.Errorf("what cannot be read: got %v", err)
	}
	if n := s.Count(zipFile); n != 0 {
		t.Errorf("the package was fetched %d times", n)
	}
}
