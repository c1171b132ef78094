package index

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

// An addressMetadata is the metadata of an address and the versions that it withdraws, even
// if no version is offered.
type addressMetadata struct {
	file      *registryhcl.File
	withdrawn []WithdrawnVersion // the newest first
}

// withdraw adds a withdrawn version.
func (s *addressMetadata) withdraw(v *version.Version, n *registryhcl.Notice) {
	s.withdrawn = append(s.withdrawn, WithdrawnVersion{v.String(), *n, v})
}

// over merges the metadata of an address that is found both with HOSTNAME (s) and without
// (hosted).
func (s addressMetadata) over(hosted addressMetadata) addressMetadata {
	both := addressMetadata{s.file.Over(hosted.file), slices.Concat(s.withdrawn, hosted.withdrawn)}
	both.sort()
	return both
}

// source returns the URL of the source code; empty if it is not known.
func (s *addressMetadata) source() string {
	if s.file == nil {
		return ""
	}
	return s.file.Source
}

// equal reports whether the metadata of an address has not changed.
func (s *addressMetadata) equal(other addressMetadata) bool {
	return s.file == other.file && slices.EqualFunc(s.withdrawn, other.withdrawn, func(a, b WithdrawnVersion) bool {
		return a.Version == b.Version
	})
}

// sort orders the withdrawn versions and lists each only once.
func (s *addressMetadata) sort() {
	address.SortNewestFirst(s.withdrawn, func(w WithdrawnVersion) *version.Version { return w.version })
	s.withdrawn = slices.CompactFunc(s.withdrawn, func(a, b WithdrawnVersion) bool { return a.Version == b.Version })
}

// metadataOrZero returns the metadata of an entry, which may be nil.
func (e *entry) metadataOrZero() (m addressMetadata) {
	if e != nil {
		m = e.metadata
	}
	return m
}
