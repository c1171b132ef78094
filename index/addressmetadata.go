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

// Metadata returns the registry.hcl in the folder of exactly that address; nil if there is
// none.
func (s *Snapshot) Metadata(a address.Address) *registryhcl.File {
	return s.entry(a).metadataOrZero().file
}

// HostedMetadata returns the metadata of a provider or module of a registry that answers as
// a.Hostname: under that HOSTNAME and under none, merged.
func (s *Snapshot) HostedMetadata(a address.Address) *registryhcl.File {
	return s.hostedMetadata(a).file
}

// WithdrawnVersions returns the withdrawn versions under exactly that address, the newest
// first.
func (s *Snapshot) WithdrawnVersions(a address.Address) []WithdrawnVersion {
	return s.entry(a).metadataOrZero().withdrawn
}

// HostedWithdrawnVersions returns the withdrawn versions of a registry that answers as
// a.Hostname: under that HOSTNAME and under none, merged.
func (s *Snapshot) HostedWithdrawnVersions(a address.Address) []WithdrawnVersion {
	return s.hostedMetadata(a).withdrawn
}

func (s *Snapshot) hostedMetadata(a address.Address) addressMetadata {
	g := s.group(a)
	if m := g.mergedAt(a.Hostname); m != nil {
		return m.metadata
	}
	if own := g.at(a.Hostname).metadataOrZero(); own.file != nil {
		return own
	}
	return g.at("").metadataOrZero()
}

// metadataOrZero returns the metadata of an entry, which may be nil.
func (e *entry) metadataOrZero() (m addressMetadata) {
	if e != nil {
		m = e.metadata
	}
	return m
}
