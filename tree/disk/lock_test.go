package disk_test

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/disk"
)

// Locks of one thing exclude each other, and locks of several things do not.
func TestLocks(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	partOf := func(dir string) tree.Part {
		p, err := disk.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	locksPart := func(p tree.Part) func(context.Context) (func(), error) {
		return func(ctx context.Context) (func(), error) { return p.Lock(ctx) }
	}
	locksFile := func(name string) func(context.Context) (func(), error) {
		return func(ctx context.Context) (func(), error) { return disk.LockFile(ctx, name) }
	}
	file := filepath.Join(dir, ".file.lock")
	for _, row := range []struct {
		rule          string
		first, second func(context.Context) (func(), error)
		excludes      bool
	}{
		{"a file", locksFile(file), locksFile(file), true},
		{"another file", locksFile(file), locksFile(file + "2"), false},
		{"a part that is opened again", locksPart(partOf(dir)), locksPart(partOf(dir)), true},
		{"parts of one root", locksPart(partOf(dir).Sub("providers")), locksPart(partOf(dir).Sub("modules")), true},
		{"parts of two roots", locksPart(partOf(dir)), locksPart(partOf(other)), false},
		{"the zero part", locksPart(tree.Part{}), locksPart(tree.Part{}), false},
		{"a part in memory", locksPart(tree.Part{Storage: disk.Folder{Fs: afero.NewMemMapFs(), Dir: "."}}), locksPart(tree.Part{Storage: disk.Folder{Fs: afero.NewMemMapFs(), Dir: "."}}), false},
	} {
		t.Run(row.rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // nobody waits
				unlock, err := row.first(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				again, err := row.second(t.Context())
				if errors.Is(err, disk.ErrLocked) != row.excludes || (err != nil) != row.excludes {
					t.Errorf("while it is locked: %v", err)
				}
				if err == nil {
					again()
				}
				unlock()
				again, err = row.second(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				again()
			})
		})
	}
}

// A part is not changed without a lock only because it cannot be locked at the moment.
func TestAPartThatCannotBeLocked(t *testing.T) {
	gone := tree.Part{Storage: disk.Folder{Fs: afero.NewMemMapFs(), Dir: ".", Disk: filepath.Join(t.TempDir(), "gone")}}
	if _, err := gone.Lock(t.Context()); !errors.Is(err, fs.ErrNotExist) || strings.Contains(err.Error(), "gone") {
		t.Errorf("got %v", err)
	}
}
