package vault

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
)

// A keeper is the Storage of a log that is open. It remembers the keys that it has given, and
// stores them again if the storage has lost them, as when it was emptied or replaced by another
// one. Otherwise the log would go on until the server ends, and its private key with it.
type keeper struct {
	Storage

	mutex sync.Mutex
	keys  map[string][]byte // by their names in the storage
}

// Load implements Storage.
func (k *keeper) Load(ctx context.Context, name string) ([]byte, error) {
	value, err := k.Storage.Load(ctx, name)
	switch {
	case err == nil && hasKeys(name):
		k.remember(name, value)
	case errors.Is(err, fs.ErrNotExist):
		if kept, ok := k.remembered(name); ok {
			return kept, k.Store(ctx, name, kept)
		}
	}
	return value, err
}

// hasKeys reports whether a value has keys of a log that was begun.
func hasKeys(name string) bool {
	file := path.Base(name)
	return file == laterKeys || file != newKey && strings.HasPrefix(file, "key-")
}

func (k *keeper) remember(name string, value []byte) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if k.keys == nil {
		k.keys = make(map[string][]byte)
	}
	k.keys[name] = bytes.Clone(value)
}

func (k *keeper) remembered(name string) (value []byte, ok bool) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	value, ok = k.keys[name]
	return value, ok
}

// storeAgain stores all keys that the storage does not have any more.
func (k *keeper) storeAgain(ctx context.Context) error {
	k.mutex.Lock()
	names := slices.Sorted(maps.Keys(k.keys))
	k.mutex.Unlock()
	for _, name := range names {
		if _, err := k.Load(ctx, name); err != nil {
			return err
		}
	}
	return nil
}
