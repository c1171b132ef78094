package storage

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/caddyserver/certmagic"

	"github.com/caddy-terraform/caddy-terraform-registry/index/memo"
	"github.com/caddy-terraform/caddy-terraform-registry/usage"
)

// Segments are what instances share about a tree, in segments that never change: a folder in
// Caddy's storage, with a value for each segment.
type Segments struct {
	Calls
	lock   Lock
	folder string // of the keys
	suffix string // of the keys: a file storage has its temporary files in the folder, others have their locks
}

const (
	// maxStorageCalls limits the calls that wait for a storage that hangs.
	maxStorageCalls = 4

	// maxLists limits how often segments are listed again because one disappeared
	// during the listing.
	maxLists = 5
)

// NewDigests returns the digests of a tree, given its identity. lock and storage are called for
// each operation.
func NewDigests(storage func() (certmagic.Storage, error), lock Lock, identity string) Segments {
	return newSegments(storage, lock, "digests", identity)
}

// NewUsage returns the counts of downloads from a tree, like NewDigests.
func NewUsage(storage func() (certmagic.Storage, error), lock Lock, identity string) Segments {
	return newSegments(storage, lock, "usage", identity)
}

func newSegments(storage func() (certmagic.Storage, error), lock Lock, kind, identity string) Segments {
	return Segments{NewCalls(storage, maxStorageCalls), lock, Folder(kind, identity), "." + kind}
}

func (s Segments) key(name string) string { return path.Join(s.folder, name+s.suffix) }

// List implements memo.Shared and usage.Storage.
func (s Segments) List(ctx context.Context) ([]string, error) {
	return call(ctx, s.Calls, func(storage certmagic.Storage) (names []string, err error) {
		var files []string
		for range maxLists {
			files, err = filesIn(ctx, storage, s.folder)
			if !errors.Is(err, fs.ErrNotExist) {
				break
			}
			// The folder does not exist, or a file disappeared from a file storage.
			if !storage.Exists(ctx, s.folder) {
				return nil, nil
			}
		}
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			if name, ok := strings.CutSuffix(file, s.suffix); ok {
				names = append(names, name)
			}
		}
		return names, nil
	})
}

// filesIn returns the names of the values in a folder. To list a folder, Caddy's file storage looks
// at each file, which takes as long as reading a package where a large tree has a thousand segments.
func filesIn(ctx context.Context, storage certmagic.Storage, folder string) (names []string, err error) {
	if disk, ok := storage.(*certmagic.FileStorage); ok {
		dir, err := os.Open(disk.Filename(folder))
		if err != nil {
			return nil, err
		}
		defer dir.Close()
		names, err := dir.Readdirnames(-1)
		slices.Sort(names)
		return names, err
	}
	keys, err := storage.List(ctx, folder, false)
	for _, key := range keys {
		names = append(names, path.Base(key))
	}
	return names, err
}

// Load implements memo.Shared and usage.Storage.
func (s Segments) Load(ctx context.Context, name string) ([]byte, error) {
	return s.Calls.Load(ctx, s.key(name))
}

// Store implements memo.Shared and usage.Storage.
func (s Segments) Store(ctx context.Context, name string, segment []byte) error {
	return s.Calls.Store(ctx, s.key(name), segment)
}

// Delete implements memo.Shared and usage.Storage.
func (s Segments) Delete(ctx context.Context, name string) error {
	return s.Calls.Delete(ctx, s.key(name))
}

// Lock implements memo.Shared and usage.Storage.
func (s Segments) Lock(ctx context.Context) (unlock func(), err error) {
	return s.lock(ctx, s.folder)
}

// Interface guards
var (
	_ memo.Shared   = Segments{}
	_ usage.Storage = Segments{}
)
