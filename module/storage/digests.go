package storage

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"

	"github.com/caddyserver/certmagic"

	"github.com/caddy-terraform/caddy-terraform-registry/index/memo"
)

// Digests shares the digests of a tree between instances: a folder in Caddy's
// storage, with a value for each segment.
type Digests struct {
	Calls
	lock   func(ctx context.Context, name string) (unlock func(), err error)
	folder string // of the keys
}

const (
	// segmentSuffix distinguishes segments from other files of the storage in the
	// folder: a file storage has its temporary files there, others have their locks.
	segmentSuffix = ".digests"

	// maxStorageCalls limits the calls that wait for a storage that hangs.
	maxStorageCalls = 4

	// maxLists limits how often segments are listed again because one disappeared
	// during the listing.
	maxLists = 5
)

// NewDigests returns the Digests of a tree, given its identity. lock and
// storage are called for each operation.
func NewDigests(
	storage func() (certmagic.Storage, error),
	lock func(ctx context.Context, name string) (unlock func(), err error),
	identity string,
) Digests {
	return Digests{NewCalls(storage, maxStorageCalls), lock, Folder("digests", identity)}
}

func (d Digests) key(name string) string { return path.Join(d.folder, name+segmentSuffix) }

// List implements index.SharedMemo.
func (d Digests) List(ctx context.Context) ([]string, error) {
	return call(ctx, d.Calls, func(storage certmagic.Storage) (names []string, err error) {
		var keys []string
		for range maxLists {
			keys, err = storage.List(ctx, d.folder, false)
			if !errors.Is(err, fs.ErrNotExist) {
				break
			}
			// The folder does not exist, or a file disappeared from a file storage.
			if !storage.Exists(ctx, d.folder) {
				return nil, nil
			}
		}
		if err != nil {
			return nil, err
		}
		for _, key := range keys {
			if name, ok := strings.CutSuffix(path.Base(key), segmentSuffix); ok {
				names = append(names, name)
			}
		}
		return names, nil
	})
}

// Load implements index.SharedMemo.
func (d Digests) Load(ctx context.Context, name string) ([]byte, error) {
	return d.Calls.Load(ctx, d.key(name))
}

// Store implements index.SharedMemo.
func (d Digests) Store(ctx context.Context, name string, segment []byte) error {
	return d.Calls.Store(ctx, d.key(name), segment)
}

// Delete implements index.SharedMemo.
func (d Digests) Delete(ctx context.Context, name string) error {
	return d.Calls.Delete(ctx, d.key(name))
}

// Lock implements index.SharedMemo.
func (d Digests) Lock(ctx context.Context) (unlock func(), err error) {
	return d.lock(ctx, d.folder)
}

// Interface guards
var _ memo.Shared = Digests{}
