package catalog

import (
	"slices"
	"sync"
	"weak"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
)

// A Catalog lists what a snapshot offers, with an entry for each address. It never changes.
type Catalog struct {
	// Modules and Providers are ordered by address.
	Modules, Providers []*Entry

	// Withdrawn are modules and providers whose versions are all withdrawn. An address that
	// lies in the tree with and without HOSTNAME can be here and be offered too.
	Withdrawn []*Entry

	merged    map[address.Address]*Entry // see Merged
	hostnames map[svchost.Hostname]bool

	moduleEntries   entries[index.Module]
	providerEntries entries[index.Provider]

	moduleIndex, providerIndex func() *searchIndex
	last                       *lastIndexes
}

// For returns the catalog of a snapshot, which is made on the first request for it.
func For(s *index.Snapshot) *Catalog {
	return index.Derived(s, func(before *Catalog) *Catalog { return newCatalog(s, before) })
}

// newCatalog returns the catalog of a snapshot. before is the catalog of an earlier one, or
// nil.
func newCatalog(s *index.Snapshot, before *Catalog) *Catalog {
	if before == nil {
		before = &Catalog{last: new(lastIndexes)}
	}
	c := &Catalog{
		merged:          make(map[address.Address]*Entry),
		hostnames:       make(map[svchost.Hostname]bool),
		moduleEntries:   make(entries[index.Module], len(before.moduleEntries)),
		providerEntries: make(entries[index.Provider], len(before.providerEntries)),
		last:            before.last,
	}
	moduleEntry := func(m *index.Module) *Entry {
		return c.moduleEntries.add(m, before.moduleEntries, newModuleEntry)
	}
	providerEntry := func(p *index.Provider) *Entry {
		return c.providerEntries.add(p, before.providerEntries, newProviderEntry)
	}
	for m := range s.Modules() {
		c.Modules = append(c.Modules, moduleEntry(m))
		c.hostnames[m.Address.Hostname] = true
	}
	for p := range s.Providers() {
		c.Providers = append(c.Providers, providerEntry(p))
		c.hostnames[p.Address.Hostname] = true
	}
	for a := range s.Merged() {
		c.merged[a] = nil
		place := index.Place{Address: a, Merged: true}
		if m := s.Module(place); m != nil {
			c.merged[a] = moduleEntry(m)
		}
		if p := s.Provider(place); p != nil {
			c.merged[a] = providerEntry(p)
		}
		c.addWithdrawn(s, place)
		c.hostnames[a.Hostname] = true
	}
	for a := range s.Folders() {
		c.addWithdrawn(s, index.PlaceOf(a))
	}
	byAddress := func(a, b *Entry) int { return a.Address.Compare(b.Address) }
	slices.SortFunc(c.Modules, byAddress)
	slices.SortFunc(c.Providers, byAddress)
	c.index()
	return c
}

// addWithdrawn adds a place whose versions are all withdrawn.
func (c *Catalog) addWithdrawn(s *index.Snapshot, p index.Place) {
	if len(s.WithdrawnVersions(p)) > 0 && s.Module(p) == nil && s.Provider(p) == nil {
		c.Withdrawn = append(c.Withdrawn, newWithdrawnEntry(p.Address, s.Metadata(p)))
	}
}

// lastIndexes have the indexes of the catalog that was searched last.
type lastIndexes struct{ modules, providers lastIndex }

// index has the indexes made on the first search of each.
func (c *Catalog) index() {
	var modules, providers []*Entry
	for _, e := range c.merged {
		switch {
		case e == nil:
		case e.Address.IsModule():
			modules = append(modules, e)
		default:
			providers = append(providers, e)
		}
	}
	c.moduleIndex = sync.OnceValue(func() *searchIndex { return c.last.modules.update(slices.Concat(c.Modules, modules)) })
	c.providerIndex = sync.OnceValue(func() *searchIndex { return c.last.providers.update(slices.Concat(c.Providers, providers)) })
}

// Merged returns the entry of what a registry hosts at a if it answers as a.Hostname, where
// something is said about the address both under that HOSTNAME and under none. The entry is
// nil if nothing is offered there. ok is false where something is said under one of the two
// only.
func (c *Catalog) Merged(a address.Address) (e *Entry, ok bool) {
	e, ok = c.merged[a]
	return e, ok
}

// Has reports whether something lies under a HOSTNAME.
func (c *Catalog) Has(hostname svchost.Hostname) bool { return c.hostnames[hostname] }

// entries are entries by the provider or module that they were made of. The index keeps a
// provider or module from one snapshot to the next unless it has changed. The pointers are
// weak, so that a catalog does not keep in memory what no snapshot has any more.
type entries[T any] map[weak.Pointer[T]]*Entry

// add adds the entry of a provider or module, which is an entry of the catalog before, or
// new.
func (x entries[T]) add(source *T, before entries[T], newEntry func(*T) *Entry) *Entry {
	key := weak.Make(source)
	e := before[key]
	if e == nil {
		e = newEntry(source)
	}
	x[key] = e
	return e
}
