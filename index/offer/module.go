package offer

import (
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
	Facts

	// Archive is the package, named archive.tar.gz or archive.zip.
	Archive *File

	// FileHashes are the hashes of the package's files: the same for the same files, however they
	// are packed.
	FileHashes wire.FileHashes

	// Folder of the package in which the module lies, if it is not the root: the folder that
	// the package names (FetchedModule), or the only folder at its root. It can be used in a
	// URL unescaped.
	Folder string

	// Doubts are the faults of the package that do not keep it from being offered.
	Doubts archive.Doubts

	summary []byte // the module's own documentation in short, encoded: it is rarely needed

	state wire.SHA256 // identifies what it was made of; zero if it was not made of a package in the tree
}

// NewModuleVersion returns a version of a module of which nothing is known but its package, and
// the folder in the package.
func NewModuleVersion(hostname svchost.Hostname, v *version.Version, archive *File, folder string) *ModuleVersion {
	return &ModuleVersion{Facts: Facts{version: v, Version: v.String(), Hostname: hostname, published: archive.modTime}, Archive: archive, Folder: folder}
}

// Reported returns the version of a module in the form of a report.
func (v *ModuleVersion) Reported(a address.Address) report.Offer {
	return v.reported(report.KindModule, a)
}

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
	return latestOf(m.Versions)
}

// Metadata returns the module's registry.hcl; nil if it has none.
func (m *Module) Metadata() *registryhcl.File { return m.metadata.File }

// Withdrawn returns the withdrawn versions, which lie in the tree but are not offered, the
// newest first.
func (m *Module) Withdrawn() []WithdrawnVersion { return m.metadata.Withdrawn }

// withNotice returns the version with the notice that deprecates it, which may be nil.
func (v *ModuleVersion) withNotice(n *registryhcl.Notice) *ModuleVersion {
	return with(v, func(v *ModuleVersion) **registryhcl.Notice { return &v.deprecated }, n)
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
		all = append(all, &ModuleVersion{Facts: Facts{version: v, Version: v.String()}})
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

// WithOffered returns the version with the time when it was first offered, in nanoseconds; 0:
// there is no record of it.
func (v *ModuleVersion) WithOffered(at int64) *ModuleVersion {
	return with(v, func(v *ModuleVersion) *int64 { return &v.offered }, at)
}

// NewModule returns a module with these versions, which must not be withdrawn. It orders
// the versions, applies deprecations, and encodes the list.
func NewModule(a address.Address, versions []*ModuleVersion, s Metadata) *Module {
	address.SortNewestFirst(versions, number[*ModuleVersion])
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
