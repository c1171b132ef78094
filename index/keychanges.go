package index

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"strings"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/signing"
)

// A KeysChange is a keys file that has appeared, disappeared, or changed its keys since the
// scan before.
type KeysChange struct {
	Hostname  svchost.Hostname // empty: the namespace is hosted
	Namespace string

	// Before and Now are the IDs of its keys, in the order of the file.
	Before, Now []string

	// Missing reports whether the file is gone.
	Missing bool

	appeared bool
}

func (c KeysChange) namespace() keysOf { return keysOf{c.Hostname, c.Namespace} }

// keysChanges returns the files that have changed between two scans, in order. A file that
// could not be read in one of them has not changed.
func keysChanges(before, now *keysFolder) (changes []KeysChange) {
	add := func(n keysOf) {
		old, current := before.keysFor(n), now.keysFor(n)
		if !before.knows(n) || !now.knows(n) || old.isFile() && current.isFile() && old.sameKeys(current) {
			return
		}
		changes = append(changes, KeysChange{
			Hostname: n.hostname, Namespace: n.namespace,
			Before: old.ids(), Now: current.ids(), Missing: !current.isFile(), appeared: !old.isFile(),
		})
	}
	for n, file := range now.files {
		if file.isFile() {
			add(n)
		}
	}
	for n, file := range before.files {
		if file.isFile() && !now.keysFor(n).isFile() {
			add(n)
		}
	}
	slices.SortFunc(changes, func(a, b KeysChange) int {
		return cmp.Compare(a.namespace().file(), b.namespace().file())
	})
	return changes
}

// knows reports whether the content of a namespace's file is known, or that there is no
// file.
func (k *keysFolder) knows(n keysOf) bool {
	file := k.keysFor(n)
	return file.isFile() || file == nil && k.listed(n.hostname) || file != nil && file.gone
}

// sameKeys reports whether two files have the same keys, whatever else they contain.
func (k *keysFile) sameKeys(other *keysFile) bool {
	return k == other || k.unsigned == other.unsigned && slices.EqualFunc(k.list(), other.list(), func(a, b signing.PublicKey) bool { return a.Armor == b.Armor })
}

// list returns the keys of a file; a nil file has none.
func (k *keysFile) list() []signing.PublicKey {
	if !k.isFile() || k.Keyring == nil {
		return nil
	}
	return k.Keys()
}

func (k *keysFile) ids() (ids []string) {
	for _, key := range k.list() {
		ids = append(ids, key.ID)
	}
	return ids
}

// reportKeys logs each change of a keys file: such a file decides who signs for a namespace.
func (x *Index) reportKeys(before, now *Snapshot) []KeysChange {
	if before == nil {
		return nil
	}
	changes := keysChanges(before.keys, now.keys)
	limited(x, slog.LevelWarn, "keys changed", changes, func(c KeysChange) {
		level, what := slog.LevelWarn, "has other keys now"
		switch {
		case c.Missing:
			what = "is gone"
		case c.appeared:
			level, what = slog.LevelInfo, "has appeared"
		}
		file := c.namespace().file()
		x.log(level, file+" "+what, "path", file, "before", strings.Join(c.Before, " "), "keys", strings.Join(c.Now, " "))
	})
	return changes
}

// The reasons why the copy of a keys file is not forgotten. Callers compare them by
// errors.Is.
var (
	// ErrNoKeyCopy means that there is no copy.
	ErrNoKeyCopy = errors.New("there is no copy of its keys")

	// ErrKeysNotGone means that the keys file exists, or may exist.
	ErrKeysNotGone = errors.New("its keys file is not gone")
)

// ForgetKeys removes the copy of a namespace's keys file, which must be gone. Releases of
// the namespace then count as if it had never had keys. ForgetKeys returns once a scan has
// seen that. The hostname is empty for a hosted namespace.
func (x *Index) ForgetKeys(ctx context.Context, hostname svchost.Hostname, namespace string) error {
	n := keysOf{hostname, namespace}
	s, err := x.Rescan(ctx)
	if err != nil {
		return err
	}
	if !s.keys.knows(n) || s.keys.keysFor(n).isFile() {
		return fmt.Errorf("%w: remove %s, or write the line `unsigned` into it", ErrKeysNotGone, n.file())
	}
	if err := x.forgetCopy(ctx, n); err != nil {
		return err
	}
	_, err = x.Rescan(ctx)
	return err
}

func (x *Index) forgetCopy(ctx context.Context, n keysOf) error {
	if x.options.KeyCopies == nil {
		return ErrNoKeyCopy
	}
	ctx, cancel := context.WithTimeout(ctx, copyPatience)
	defer cancel()
	x.scanning.Lock()
	defer x.scanning.Unlock()
	_, err := x.options.KeyCopies.Load(ctx, n.String())
	if errors.Is(err, fs.ErrNotExist) {
		return ErrNoKeyCopy
	}
	if err := x.options.KeyCopies.Delete(ctx, n.String()); err != nil { // also a copy that cannot be read
		return err
	}
	x.scanner.copies.remember(n, nil)
	return nil
}
