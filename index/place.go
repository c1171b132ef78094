package index

import (
	"iter"
	"slices"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index/layout"
	"github.com/caddy-terraform/caddy-terraform-registry/index/offer"
	"github.com/caddy-terraform/caddy-terraform-registry/registryhcl"
)

// A Place is where a request finds a provider or module in the tree.
type Place struct {
	// Address of the folder, with its HOSTNAME if it has one.
	address.Address

	// Merged means together with the same address without HOSTNAME, for a registry that
	// answers as the HOSTNAME. If both have a version, the version under the HOSTNAME is
	// offered.
	Merged bool

	// Hosted packages are the registry's own. All others are mirrored.
	Hosted bool
}

// PlaceOf returns the place of exactly that address.
func PlaceOf(a address.Address) Place { return Place{Address: a} }

// lookup returns what is offered at a place.
func (s *Snapshot) lookup(p Place) (*Provider, *Module, offer.Metadata) {
	g := s.group(p.Address)
	e := g.entry(p.Hostname)
	if p.Merged {
		if m := g.mergedAt(p.Hostname); m != nil {
			return m.provider, m.module, m.metadata
		}
		if !e.offers() {
			e = g.entry("")
		}
	}
	e = e.orEmpty()
	return e.provider, e.module, e.metadata
}

// Provider returns the provider at a place, or nil.
func (s *Snapshot) Provider(p Place) *Provider {
	provider, _, _ := s.lookup(p)
	return provider
}

// Module returns the module at a place, or nil.
func (s *Snapshot) Module(p Place) *Module {
	_, module, _ := s.lookup(p)
	return module
}

// Metadata returns the registry.hcl at a place, or nil.
func (s *Snapshot) Metadata(p Place) *registryhcl.File {
	_, _, metadata := s.lookup(p)
	return metadata.File
}

// WithdrawnVersions returns the withdrawn versions at a place, the newest first.
func (s *Snapshot) WithdrawnVersions(p Place) []WithdrawnVersion {
	_, _, metadata := s.lookup(p)
	return metadata.Withdrawn
}

// Pending reports whether files of a version at a place, or of any version if it is empty,
// have not been read yet: a missing version may appear soon.
func (s *Snapshot) Pending(p Place, version string) bool {
	return s.lacks(p, func(l offer.Pending) bool { return l.Has(version) })
}

// ListPending reports whether the list of versions at a place may lack versions that clients
// were offered before.
func (s *Snapshot) ListPending(p Place) bool {
	return s.lacks(p, func(l offer.Pending) bool { return l.List })
}

// lacks reports whether a folder at the place lacks versions that have not been read yet.
func (s *Snapshot) lacks(p Place, lacks func(offer.Pending) bool) bool {
	entryLacks := func(e *entry) bool { return e != nil && lacks(e.pending) }
	return entryLacks(s.entry(p.Address)) || p.Merged && entryLacks(s.entry(p.WithHostname(""))) || s.Unknown(p)
}

// Unknown reports whether a folder at the place, perhaps in another spelling, could not be
// read by any scan yet: neither all its versions are known, nor which are withdrawn.
func (s *Snapshot) Unknown(p Place) bool {
	return slices.ContainsFunc(s.unknown, func(f layout.Folder) bool {
		return f.Covers(p.Address) || p.Merged && f.Covers(p.WithHostname(""))
	})
}

// An Unread is a part of the tree in which nothing could be read yet.
type Unread struct {
	// Address is the address of a provider or module, or the beginning of one: what is not
	// known of it is empty.
	address.Address

	IsModule bool
	IsWhole  bool // the Address is whole
}

// Unread yields the parts of the tree of which nothing is offered only because they have not
// been read yet, or cannot be read. Lists and searches lack what is in them.
func (s *Snapshot) Unread() iter.Seq[Unread] {
	return func(yield func(Unread) bool) {
		if s.Complete() {
			return
		}
		for _, f := range s.unknown {
			if !yield(unreadAt(f)) {
				return
			}
		}
		for _, g := range s.groups.All() {
			for _, e := range g.entries {
				if !e.unknown && !e.offersVersions() && e.pending.Has("") && !yield(unreadAt(e.folder.Folder)) {
					return
				}
			}
		}
	}
}

func unreadAt(f layout.Folder) Unread {
	u := Unread{Address: f.Address, IsModule: f.IsModule()}
	if f.IsWhole() {
		u.IsWhole = true
		return u
	}
	u.Hostname, _ = address.ParseHostname(f.Hostname) // empty without HOSTNAME
	for i, name := range f.Names {
		*[]*string{&u.Namespace, &u.Name}[i] = name
	}
	return u
}
