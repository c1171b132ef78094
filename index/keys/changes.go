package keys

import (
	"cmp"
	"slices"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/signing"
)

// A Change is a keys file that has appeared, disappeared, or changed its keys since the
// scan before.
type Change struct {
	Hostname  svchost.Hostname // empty: the namespace is hosted
	Namespace string

	// Before and Now are the IDs of its keys, in the order of the file.
	Before, Now []string

	// Missing reports whether the file is gone, and Appeared whether there was none before.
	Missing, Appeared bool
}

// File returns where the keys are expected, in the form that users write.
func (c Change) File() string { return Namespace{c.Hostname, c.Namespace}.File() }

// Changes returns the files that have changed between two scans, in order. A file that
// could not be read in one of them has not changed.
func Changes(before, now *Folder) (changes []Change) {
	if before == now {
		return nil
	}
	add := func(n Namespace) {
		old, current := before.For(n), now.For(n)
		if !before.Knows(n) || !now.Knows(n) || old.IsFile() && current.IsFile() && old.sameKeys(current) {
			return
		}
		changes = append(changes, Change{
			Hostname: n.Hostname, Namespace: n.Name,
			Before: old.ids(), Now: current.ids(), Missing: !current.IsFile(), Appeared: !old.IsFile(),
		})
	}
	for n, file := range now.files {
		if file.IsFile() {
			add(n)
		}
	}
	for n, file := range before.files {
		if file.IsFile() && !now.For(n).IsFile() {
			add(n)
		}
	}
	slices.SortFunc(changes, func(a, b Change) int {
		return cmp.Compare(a.File(), b.File())
	})
	return changes
}

// Knows reports whether the content of a namespace's file is known, or that there is no
// file.
func (k *Folder) Knows(n Namespace) bool { return k.For(n).IsFile() || k.isGone(n) }

// sameKeys reports whether two files have the same keys, whatever else they contain.
func (k *File) sameKeys(other *File) bool {
	return k == other || k.unsigned == other.unsigned && slices.EqualFunc(k.list(), other.list(), func(a, b signing.PublicKey) bool { return a.Armor == b.Armor })
}

// list returns the keys of a file; a nil file has none.
func (k *File) list() []signing.PublicKey {
	if !k.IsFile() || k.Keyring == nil {
		return nil
	}
	return k.Keys()
}

func (k *File) ids() (ids []string) {
	for _, key := range k.list() {
		ids = append(ids, key.ID)
	}
	return ids
}
