package fill

import (
	"errors"
	"io/fs"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
)

// A slowDisk is a file system that counts syncs.
type slowDisk struct {
	afero.Fs
	syncs *atomic.Int32
	fails int32 // the sync that fails
}

func (d slowDisk) OpenFile(name string, flag int, perm fs.FileMode) (afero.File, error) {
	f, err := d.Fs.OpenFile(name, flag, perm)
	return slowFile{f, d}, err
}

type slowFile struct {
	afero.File
	disk slowDisk
}

func (f slowFile) Sync() error {
	if f.disk.syncs.Add(1) == f.disk.fails {
		return &fs.PathError{Op: "sync", Path: "x", Err: syscall.ENOSPC}
	}
	return nil
}

// Packages are synced while they come in. A failure then counts, though the next sync
// succeeds.
func TestPackagesAreSyncedAhead(t *testing.T) {
	f, err := New(Options{Open: func() (index.Tree, error) { return index.Tree{}, nil }})
	if err != nil {
		t.Fatal(err)
	}
	for _, fails := range []int32{0, 1} {
		disk := slowDisk{afero.NewMemMapFs(), new(atomic.Int32), fails}
		in := index.Part{Fs: disk, Dir: "providers"}
		p, err := f.newTemporaryPackage(in, "a/b/c.zip")
		if err != nil {
			t.Fatal(err)
		}
		chunk := make([]byte, syncEvery/4)
		for range 12 {
			if _, err := p.Write(chunk); err != nil {
				t.Fatal(err)
			}
		}
		info, err := p.publish("a/b/c.zip")
		if fails != 0 {
			left, _ := afero.ReadDir(disk, "providers/a/b")
			if !errors.Is(err, ErrDiskFull) || len(left) != 0 {
				t.Errorf("got %v, and there are %v", err, left)
			}
			continue
		}
		if err != nil || info.Size() != 3*syncEvery || disk.syncs.Load() < 2 {
			t.Errorf("got %v, synced %d times", err, disk.syncs.Load())
		}
	}
}
