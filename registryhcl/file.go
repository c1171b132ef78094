package registryhcl

import (
	"cmp"
	"slices"
	"time"

	version "github.com/hashicorp/go-version"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// A File has the operator's metadata of a provider or module, from the registry.hcl in its
// folder. A nil File has none. It is immutable.
type File struct {
	Description, Source, Owner string

	// Deprecated versions are offered, and clients, pages and the API are told. Withdrawn
	// versions are offered to no client; their files stay in the tree.
	Deprecated, Withdrawn []Notice

	// Git is the repository whose tags are versions; nil: there is none.
	Git *Git

	// Changed is when the file was written. It is the zero time for a text that is no file.
	Changed time.Time
}

// A Notice is about the versions that meet constraints.
type Notice struct {
	Versions address.Constraints
	Reason   string // a sentence; may be empty
	Link     string // an http or https URL; may be empty
}

// String returns the notice as part of a sentence: its reason, and its link in parentheses.
// It is empty if the notice has neither.
func (n *Notice) String() string {
	switch {
	case n.Link == "":
		return n.Reason
	case n.Reason == "":
		return "see " + n.Link
	}
	return n.Reason + " (" + n.Link + ")"
}

func (n Notice) same(other Notice) bool {
	return n.Versions.String() == other.Versions.String() && n.Reason == other.Reason && n.Link == other.Link
}

// DeprecatedVersion returns the first notice that deprecates a version, or nil.
func (m *File) DeprecatedVersion(v *version.Version) *Notice {
	if m == nil {
		return nil
	}
	return covering(m.Deprecated, v)
}

// WithdrawnVersion returns the first notice that withdraws a version, or nil.
func (m *File) WithdrawnVersion(v *version.Version) *Notice {
	if m == nil {
		return nil
	}
	return covering(m.Withdrawn, v)
}

func covering(notices []Notice, v *version.Version) *Notice {
	for i := range notices {
		if notices[i].Versions.Cover(v) {
			return &notices[i]
		}
	}
	return nil
}

// Equal reports whether two files have the same metadata.
func (m *File) Equal(other *File) bool {
	if m == nil || other == nil {
		return m == other
	}
	return m.Description == other.Description && m.Source == other.Source && m.Owner == other.Owner && m.Git.equal(other.Git) &&
		slices.EqualFunc(m.Deprecated, other.Deprecated, Notice.same) && slices.EqualFunc(m.Withdrawn, other.Withdrawn, Notice.same)
}

// Over returns the metadata of an address that is found both with HOSTNAME (m) and without
// (hosted). Texts that m lacks are taken from hosted, and the notices of both count. They
// were changed when the later of the files was written.
func (m *File) Over(hosted *File) *File {
	switch {
	case m == nil:
		return hosted
	case hosted == nil:
		return m
	}
	both := &File{
		Description: cmp.Or(m.Description, hosted.Description),
		Source:      cmp.Or(m.Source, hosted.Source),
		Owner:       cmp.Or(m.Owner, hosted.Owner),
		Deprecated:  slices.Concat(m.Deprecated, hosted.Deprecated),
		Withdrawn:   slices.Concat(m.Withdrawn, hosted.Withdrawn),
		Git:         cmp.Or(m.Git, hosted.Git),
		Changed:     m.Changed,
	}
	if hosted.Changed.After(m.Changed) {
		both.Changed = hosted.Changed
	}
	return both
}
