package index

import (
	"sync"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/registryhcl"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A catalogMemo keeps the entries of the last catalog for the next catalog, in which most
// are the same. All snapshots of an index share it. Its zero value is empty.
type catalogMemo struct {
	mutex   sync.Mutex
	entries map[entrySource]*Entry
}

// An entrySource has everything that an entry depends on.
type entrySource struct {
	address    address.Address
	version    string
	versions   int
	sum        wire.SHA256 // of a module's package
	published  int64
	metadata   *registryhcl.File
	deprecated *registryhcl.Notice
}

// begin returns two functions. entry returns the entry of a source, and calls its argument
// for a source that is not in the catalog before. finish is called when the catalog is
// complete.
func (m *catalogMemo) begin() (entry func(entrySource, func() *Entry) *Entry, finish func()) {
	m.mutex.Lock()
	entries := make(map[entrySource]*Entry, len(m.entries))
	entry = func(source entrySource, newEntry func() *Entry) *Entry {
		e := m.entries[source]
		if e == nil {
			e = newEntry()
		}
		entries[source] = e
		return e
	}
	return entry, func() {
		m.entries = entries
		m.mutex.Unlock()
	}
}
