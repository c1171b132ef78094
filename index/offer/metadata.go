package offer

import (
	"slices"

	version "github.com/hashicorp/go-version"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/registryhcl"
)

// A WithdrawnVersion is a version that lies in the tree and is offered to no client.
type WithdrawnVersion struct {
	Version string             // in the form clients request it
	Notice  registryhcl.Notice // why

	version *version.Version
}

// A Metadata is the metadata of an address and the versions that it withdraws, even
// if no version is offered.
type Metadata struct {
	File      *registryhcl.File
	Withdrawn []WithdrawnVersion // the newest first
}

// Withdraw adds a withdrawn version.
func (s *Metadata) Withdraw(v *version.Version, n *registryhcl.Notice) {
	s.Withdrawn = append(s.Withdrawn, WithdrawnVersion{v.String(), *n, v})
}

// Over merges the metadata of an address that is found both with HOSTNAME (s) and without
// (hosted).
func (s Metadata) Over(hosted Metadata) Metadata {
	both := Metadata{s.File.Over(hosted.File), slices.Concat(s.Withdrawn, hosted.Withdrawn)}
	both.Sort()
	return both
}

// source returns the URL of the source code; empty if it is not known.
func (s *Metadata) source() string {
	if s.File == nil {
		return ""
	}
	return s.File.Source
}

// Equal reports whether the metadata of an address has not changed.
func (s *Metadata) Equal(other Metadata) bool {
	return s.File == other.File && slices.EqualFunc(s.Withdrawn, other.Withdrawn, func(a, b WithdrawnVersion) bool {
		return a.Version == b.Version
	})
}

// Sort orders the withdrawn versions and lists each only once.
func (s *Metadata) Sort() {
	address.SortNewestFirst(s.Withdrawn, func(w WithdrawnVersion) *version.Version { return w.version })
	s.Withdrawn = slices.CompactFunc(s.Withdrawn, func(a, b WithdrawnVersion) bool { return a.Version == b.Version })
}

// MergeVersions merges versions with the versions of the same address without HOSTNAME. It
// moves versions that the merged metadata withdraws to s, and calls clash for each hosted
// version that own has as well.
func MergeVersions[V versioned](own, hosted []V, s *Metadata, clash func(V)) []V {
	known := make(map[string]bool, len(own))
	for _, v := range own {
		known[number(v).String()] = true
	}
	all := slices.Clone(own)
	for _, v := range hosted {
		if known[number(v).String()] {
			clash(v)
			continue
		}
		all = append(all, v)
	}
	all = slices.DeleteFunc(all, func(v V) bool {
		n := s.File.WithdrawnVersion(number(v))
		if n != nil {
			s.Withdraw(number(v), n)
		}
		return n != nil
	})
	s.Sort()
	return all
}
