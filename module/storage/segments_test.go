package storage

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/caddyserver/certmagic"
)

// A fickleStorage is a folder in which files appear and disappear while they are listed,
// or that does not answer at all.
type fickleStorage struct {
	*certmagic.FileStorage
	vanishing int           // number of listings that meet a missing file
	hangs     chan struct{} // nil: answers at once; otherwise when it is closed, whatever the context
}

func (s *fickleStorage) List(ctx context.Context, folder string, recursive bool) ([]string, error) {
	s.wait()
	keys, err := s.FileStorage.List(ctx, folder, recursive)
	if s.vanishing > 0 && err == nil {
		s.vanishing--
		return keys[:len(keys)/2], &fs.PathError{Op: "lstat", Path: "gone", Err: fs.ErrNotExist}
	}
	return keys, err
}

func (s *fickleStorage) Load(ctx context.Context, key string) ([]byte, error) {
	s.wait()
	return s.FileStorage.Load(ctx, key)
}

func (s *fickleStorage) wait() {
	if s.hangs != nil {
		<-s.hangs
	}
}

func digestsIn(s certmagic.Storage) Segments {
	return NewDigests(
		func() (certmagic.Storage, error) { return s, nil },
		func(context.Context, string) (func(), error) { return func() {}, nil },
		"tree",
	)
}

func TestSharedDigestsInAStorage(t *testing.T) {
	begin := func(t *testing.T) (*fickleStorage, Segments) {
		s := &fickleStorage{FileStorage: &certmagic.FileStorage{Path: t.TempDir()}}
		return s, digestsIn(s)
	}
	store := func(t *testing.T, d Segments, names ...string) {
		for _, name := range names {
			if err := d.Store(t.Context(), name, []byte(name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	listed := func(t *testing.T, d Segments, want ...string) {
		t.Helper()
		if names, err := d.List(t.Context()); err != nil || !slices.Equal(names, want) {
			t.Errorf("listed are %q, %v", names, err)
		}
	}
	t.Run("nothing has been stored at first", func(t *testing.T) {
		_, d := begin(t)
		listed(t, d)
	})
	t.Run("a stored segment is listed by its name, and loaded", func(t *testing.T) {
		_, d := begin(t)
		store(t, d, "a", "b")
		listed(t, d, "a", "b")
		if segment, err := d.Load(t.Context(), "b"); err != nil || string(segment) != "b" {
			t.Errorf("%q, %v", segment, err)
		}
		if err := d.Delete(t.Context(), "a"); err != nil {
			t.Error(err)
		}
		listed(t, d, "b")
		if _, err := d.Load(t.Context(), "a"); !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	})
	t.Run("a file that is written meanwhile is not listed", func(t *testing.T) {
		s, d := begin(t)
		store(t, d, "a")
		stored, err := filepath.Glob(filepath.Join(s.Path, "terraform_registry", "digests", "*", "*"))
		if err != nil || len(stored) != 1 {
			t.Fatal(stored, err)
		}
		if err := os.WriteFile(filepath.Join(filepath.Dir(stored[0]), "3141592653"), []byte("par"), 0o600); err != nil {
			t.Fatal(err)
		}
		listed(t, d, "a")
	})
	t.Run("Caddy's own file storage is listed in the same way", func(t *testing.T) {
		s := &certmagic.FileStorage{Path: t.TempDir()}
		d := digestsIn(s)
		listed(t, d)
		store(t, d, "b", "a")
		if err := s.Store(t.Context(), d.folder+"/3141592653", []byte("par")); err != nil {
			t.Fatal(err)
		}
		listed(t, d, "a", "b")
	})
	t.Run("a file that is removed meanwhile hides no other", func(t *testing.T) {
		s, d := begin(t)
		store(t, d, "a", "b")
		s.vanishing = 2
		listed(t, d, "a", "b")
	})
	t.Run("a listing that never succeeds is an error", func(t *testing.T) {
		s, d := begin(t)
		store(t, d, "a", "b")
		s.vanishing = 1000
		if names, err := d.List(t.Context()); err == nil {
			t.Errorf("listed are %q", names)
		}
	})
	t.Run("trees do not see each other's", func(t *testing.T) {
		s, d := begin(t)
		store(t, d, "a")
		other := NewDigests(func() (certmagic.Storage, error) { return s, nil }, nil, "another tree")
		listed(t, other)
	})
	t.Run("nobody waits for a storage that does not know of deadlines", func(t *testing.T) {
		s, d := begin(t)
		s.hangs = make(chan struct{})
		defer close(s.hangs)
		for range 2 * maxStorageCalls {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			if _, err := d.List(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("list: %v", err)
			}
			if _, err := d.Load(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("load: %v", err)
			}
			cancel()
		}
	})
}
