package offer

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	version "github.com/hashicorp/go-version"
	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/archive"
	"github.com/caddy-terraform/caddy-terraform-registry/index/moduledoc"
	"github.com/caddy-terraform/caddy-terraform-registry/index/report"
	"github.com/caddy-terraform/caddy-terraform-registry/registryhcl"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A Module has all versions that are offered under a module address.
type Module struct {
	Address address.Address

	// Versions are the newest first; there is at least one.
	Versions []*ModuleVersion

	// Age of the origin's part of the list, if it should have been renewed by now.
	Age time.Duration

	metadata  Metadata
	byVersion map[string]*ModuleVersion
	versions  *wire.Document
}

// A ModuleVersion is a verified version of a module. It is immutable.
type ModuleVersion struct {
	version *version.Version

	// Hostname of its folder in the tree. Empty: it is hosted, not mirrored.
	Hostname svchost.Hostname

	// Version in the form clients request it.
	Version string

	// Archive is the package, named archive.tar.gz or archive.zip.
	Archive *File

	// FileHashes are the hashes of the package's files: the same for the same files, however they
	// are packed.
	FileHashes wire.FileHashes

	// Folder of the package in which the module lies, if it is not the root: the folder that
	// the package names (FetchedModule), or the only folder at its root. It can be used in a
	// URL unescaped.
	Folder string

	// Changed is not empty if the files in the package have changed since it was first
	// offered.
	Changed []ChangedBytes

	// Doubts are the faults of the package that do not keep it from being offered.
	Doubts archive.Doubts

	// Tag of a repository from which it comes; nil if it comes from none.
	Tag *Tag

	notes      []string // for the report
	summary    []byte   // encoded: it is rarely needed
	deprecated *registryhcl.Notice
	offered    int64 // when it was first offered, by a record, in nanoseconds; 0: there is none
}

// ModuleParts make a version of a module.
type ModuleParts struct {
	Hostname   svchost.Hostname
	Version    *version.Version
	Archive    *File
	FileHashes wire.FileHashes
	Folder     string
	Changed    []ChangedBytes
	Doubts     archive.Doubts
	Tag        *Tag
	Notes      []string // for the report, besides those about its doubts and changes
	Summary    []byte   // the module's own documentation in short, encoded
}

// NewModuleVersion returns the version of these parts. It is immutable.
func NewModuleVersion(p ModuleParts) *ModuleVersion {
	p.Tag = p.Tag.ofPackage(p.Archive)
	notes := slices.Concat(p.Notes, p.Doubts.All(), changedNotes(p.Changed))
	if moved := p.Tag.Note(); moved != "" {
		notes = append(notes, moved)
	}
	return &ModuleVersion{
		version: p.Version, Version: p.Version.String(), Hostname: p.Hostname, Archive: p.Archive, FileHashes: p.FileHashes, Folder: p.Folder,
		Changed: p.Changed, Doubts: p.Doubts, Tag: p.Tag, notes: notes, summary: p.Summary,
	}
}

// Reported returns the version of a module in the form of a report.
func (v *ModuleVersion) Reported(a address.Address) report.Offer {
	o := report.Offer{Kind: report.KindModule, Address: a.String(), Version: v.Version, Notes: v.notes}
	return o.WithNotice(v.deprecated)
}

func (v *ModuleVersion) number() *version.Version { return v.version }

// VersionList returns Versions, which a nil Module does not have.
func (m *Module) VersionList() []*ModuleVersion {
	if m == nil {
		return nil
	}
	return m.Versions
}

// Numbers returns the numbers of all versions, the newest first. A nil Module has none.
func (m *Module) Numbers() []string { return numbers(m.VersionList()) }

// Version returns the version of that number, or nil. A nil Module has none.
func (m *Module) Version(v string) *ModuleVersion {
	if m == nil {
		return nil
	}
	return m.byVersion[v]
}

// Latest returns the version to use if none is requested: the newest that is neither a
// prerelease nor deprecated, else the newest that is not a prerelease, else the newest.
func (m *Module) Latest() *ModuleVersion {
	return latestOf(m.Versions, func(v *ModuleVersion) (*version.Version, *registryhcl.Notice) { return v.version, v.deprecated })
}

// latestOf returns the version to use of a list that is ordered, the newest first.
func latestOf[T any](list []T, about func(T) (*version.Version, *registryhcl.Notice)) T {
	best, stable := list[0], false
	for _, item := range list {
		v, deprecated := about(item)
		if v.Prerelease() != "" {
			continue
		}
		if deprecated == nil {
			return item
		}
		if !stable {
			best, stable = item, true
		}
	}
	return best
}

// Metadata returns the module's registry.hcl; nil if it has none.
func (m *Module) Metadata() *registryhcl.File { return m.metadata.File }

// Withdrawn returns the withdrawn versions, which lie in the tree but are not offered, the
// newest first.
func (m *Module) Withdrawn() []WithdrawnVersion { return m.metadata.Withdrawn }

// Deprecated returns the notice that deprecates the version; nil if there is none.
func (v *ModuleVersion) Deprecated() *registryhcl.Notice { return v.deprecated }

// withNotice returns the version with the notice that deprecates it, which may be nil.
func (v *ModuleVersion) withNotice(n *registryhcl.Notice) *ModuleVersion {
	if v.deprecated == n {
		return v
	}
	other := *v
	other.deprecated = n
	return &other
}

// MergedModule returns a module with the versions of another one, which may be nil, and
// further versions that can be fetched, and that are known by number only. m is the
// module's registry.hcl, and age is the Age of the list. MergedModule returns nil if there is no
// version.
func MergedModule(a address.Address, present *Module, further []wire.ProviderVersion, m *registryhcl.File, age time.Duration) *Module {
	all := slices.Clone(present.VersionList())
	known := make(map[string]bool, len(all)+len(further))
	for _, v := range all {
		known[v.Version] = true
	}
	for _, f := range further {
		v, err := address.ParseModuleVersion(f.Version)
		if err != nil || known[v.String()] {
			continue
		}
		known[v.String()] = true
		all = append(all, &ModuleVersion{version: v, Version: v.String()})
	}
	if len(all) == 0 {
		return nil
	}
	merged := NewModule(a, all, Metadata{File: m})
	merged.Age = age
	return merged
}

// List returns the registry's answer with all versions.
func (m *Module) List() *wire.Document { return m.versions }

// Summary returns the module's own documentation in short.
func (v *ModuleVersion) Summary() moduledoc.Summary {
	s, _ := moduledoc.DecodeSummary(v.summary) // zero if the memo is damaged
	return s
}

// Published returns when the version was first offered, by the record of it, or else the time
// of its file.
func (v *ModuleVersion) Published() time.Time {
	return time.Unix(0, cmp.Or(v.offered, v.Archive.modTime))
}

// WithOffered returns the version with the time when it was first offered, in nanoseconds; 0:
// there is no record of it.
func (v *ModuleVersion) WithOffered(at int64) *ModuleVersion {
	if v.offered == at {
		return v
	}
	other := *v
	other.offered = at
	return &other
}

// NewModule returns a module with these versions, which must not be withdrawn. It orders
// the versions, applies deprecations, and encodes the list.
func NewModule(a address.Address, versions []*ModuleVersion, s Metadata) *Module {
	address.SortNewestFirst(versions, func(v *ModuleVersion) *version.Version { return v.version })
	m := &Module{Address: a, Versions: versions, metadata: s, byVersion: make(map[string]*ModuleVersion, len(versions))}
	list := make([]wire.ModuleVersion, len(versions))
	for i, v := range versions {
		v = v.withNotice(s.File.DeprecatedVersion(v.version))
		versions[i], m.byVersion[v.Version] = v, v
		list[i] = v.listed()
		if n := v.deprecated; n != nil {
			list[i].Deprecation = &wire.Deprecation{Reason: n.Reason, Link: n.Link}
		}
	}
	m.versions = wire.EncodeModuleVersions(list, s.source())
	return m
}

// Hashes returns the hashes of the package's files, and of its bytes.
func (v *ModuleVersion) Hashes() []string {
	return append(wire.ListHashes(v.FileHashes), v.Archive.SHA256.ZH())
}

// listed returns the version as the list of versions has it.
func (v *ModuleVersion) listed() wire.ModuleVersion {
	if v.Archive == nil { // it can be fetched
		return wire.ModuleVersion{Version: v.Version}
	}
	return wire.ModuleVersion{Version: v.Version, Hashes: v.Hashes(), Size: v.Archive.Size, Published: v.Published()}
}

// A module version that has not changed since the last scan stays the same ModuleVersion. If
// no version has changed, the module stays the same Module, with the same documents.

// OrUnchanged returns the version before, which may be nil, if v does not differ from it,
// and otherwise v.
func (v *ModuleVersion) OrUnchanged(before *ModuleVersion) *ModuleVersion {
	if before == nil || v.Hostname != before.Hostname || v.Version != before.Version || v.FileHashes != before.FileHashes || v.Folder != before.Folder || !v.Tag.equal(before.Tag) ||
		!slices.Equal(v.notes, before.notes) || !bytes.Equal(v.summary, before.summary) || !v.Archive.same(before.Archive) {
		return v
	}
	return before
}

// ConsistsOf reports whether a module has exactly these versions. A nil Module has none.
func (m *Module) ConsistsOf(versions []*ModuleVersion, s Metadata) bool {
	if m == nil || len(m.Versions) != len(versions) || !m.metadata.Equal(s) {
		return false
	}
	return !slices.ContainsFunc(versions, func(v *ModuleVersion) bool { return m.Version(v.Version) != v })
}
