package storage

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/caddyserver/certmagic"
)

func TestKeyCopiesInAStorage(t *testing.T) {
	s := &certmagic.FileStorage{Path: t.TempDir()}
	copiesOf := func(identity string) KeyCopies {
		return NewKeyCopies(func() (certmagic.Storage, error) { return s, nil }, identity)
	}
	c := copiesOf("tree")
	namespaces := []string{"acme", "registry.terraform.io/hashicorp", "localhost:8443/acme", "localhost/acme"}
	for _, n := range namespaces {
		if _, err := c.Load(t.Context(), n); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s before it is stored: %v", n, err)
		}
		if err := c.Delete(t.Context(), n); err != nil {
			t.Errorf("deleting %s, which is not there: %v", n, err)
		}
		if err := c.Store(t.Context(), n, []byte(n)); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range namespaces {
		if copied, err := c.Load(t.Context(), n); err != nil || string(copied) != n {
			t.Errorf("%s: %q, %v", n, copied, err)
		}
		if _, err := copiesOf("another tree").Load(t.Context(), n); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s in another tree: %v", n, err)
		}
		if err := c.Delete(t.Context(), n); err != nil {
			t.Error(err)
		}
		if _, err := c.Load(t.Context(), n); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s once it is deleted: %v", n, err)
		}
	}
	if names, err := filepath.Glob(filepath.Join(s.Path, "terraform_registry", "keys", "*", "*:*")); err != nil || len(names) > 0 {
		t.Errorf("Windows has no files named %v, %v", names, err)
	}
}
