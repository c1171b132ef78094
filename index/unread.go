package index

import (
	"iter"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index/layout"
)

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
