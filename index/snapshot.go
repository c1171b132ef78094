package index

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	version "github.com/hashicorp/go-version"
	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/signing"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// A Snapshot has everything that the registry offers at one time. It is immutable: a request
// uses one snapshot to its end.
type Snapshot struct {
	// Taken is the time when its scan began.
	Taken time.Time

	// Report lists the results for all files that the scan found.
	Report *Report

	// KeysExpire is when the first of the keys that clients get expires; zero if none
	// expires.
	KeysExpire time.Time

	// Changed are the versions whose bytes have changed since they were first offered, by
	// path.
	Changed []ChangedVersion

	unread string // which pending archives the scan could not read, and why; empty: there are none
	faulty bool   // another file could not be read, and may be readable a moment later

	// Read and Recalled count the archives that the scan read and the archives that the memo
	// knew.
	Read, Recalled int

	keys      *keysFolder // nil in a snapshot that is made before its scan ends
	tree      tree.Tree
	providers map[address.Address]*Provider
	modules   map[address.Address]*Module

	// Addresses found both with and without HOSTNAME, merged; nil if all versions are
	// withdrawn.
	mergedProviders map[address.Address]*Provider
	mergedModules   map[address.Address]*Module

	// The metadata and the withdrawn versions of addresses.
	metadata, mergedMetadata map[address.Address]addressMetadata

	pending map[address.Address]pending
	unknown []folder // folders that no scan could read yet

	cataloging sync.Once
	catalog    *Catalog

	signer Signer // of releases without a usable signature; nil: they are not signed

	docs map[*encodedRelease]string // the folders of documentation, which do not depend on a release's notices

	changes Change // the last change that its scan has seen

	*shared
}

// Sees reports whether the scan began after the Index had been told of a change.
func (s *Snapshot) Sees(c Change) bool { return s.changes >= c }

// pending says which versions of an address may be missing in a snapshot because they have
// not been read yet. The zero value means none.
type pending struct {
	versions []string // versions with new files

	// Versions may be missing that an earlier process offered to clients. A list without
	// them would make clients choose an older version.
	list bool

	// The folder cannot be read at the moment, and keeps the results of the last scan: there
	// may be other versions.
	unreadable bool
}

// has reports whether files of a version are pending; an empty version stands for any.
func (p pending) has(version string) bool {
	return p.unreadable || len(p.versions) > 0 && (version == "" || slices.Contains(p.versions, version))
}

// Provider returns the provider under exactly that address, or nil.
func (s *Snapshot) Provider(a address.Address) *Provider { return s.providers[a] }

// HostedProvider returns the provider of a registry that answers as a.Hostname, or nil: the
// releases under that HOSTNAME and under none, merged.
func (s *Snapshot) HostedProvider(a address.Address) *Provider {
	return hosted(a, s.mergedProviders, s.providers)
}

// Providers yields all providers, each under the address of its folder.
func (s *Snapshot) Providers() iter.Seq[*Provider] { return maps.Values(s.providers) }

// Module returns the module under exactly that address, or nil.
func (s *Snapshot) Module(a address.Address) *Module { return s.modules[a] }

// HostedModule returns the module of a registry that answers as a.Hostname, or nil: the
// versions under that HOSTNAME and under none, merged.
func (s *Snapshot) HostedModule(a address.Address) *Module {
	return hosted(a, s.mergedModules, s.modules)
}

// Modules yields all modules, each under the address of its folder.
func (s *Snapshot) Modules() iter.Seq[*Module] { return maps.Values(s.modules) }

// hosted looks up a among the merged addresses, then under its hostname, then under none.
func hosted[T any](a address.Address, merged, all map[address.Address]*T) *T {
	if v, ok := merged[a]; ok {
		return v
	}
	if v := all[a]; v != nil {
		return v
	}
	return all[a.At("")]
}

// Pending reports whether files of a version of a provider or module, or of any version if
// it is empty, have not been read yet: a missing version may appear soon.
func (s *Snapshot) Pending(a address.Address, version string) bool {
	return s.pending[a].has(version) || s.Unknown(a)
}

// Unknown reports whether a provider or module may lie in a folder that no scan could read
// yet: neither its versions are known, nor which are withdrawn.
func (s *Snapshot) Unknown(a address.Address) bool {
	return len(s.unknown) > 0 && s.providers[a] == nil && s.modules[a] == nil &&
		slices.ContainsFunc(s.unknown, func(f folder) bool { return f.covers(a) })
}

// ListPending reports whether the list of versions of a provider or module may lack versions
// that clients were offered before.
func (s *Snapshot) ListPending(a address.Address) bool { return s.pending[a].list || s.Unknown(a) }

// newlyWithheld returns the problems that were not in the snapshot before, which may be nil.
func (s *Snapshot) newlyWithheld(before *Snapshot) []Problem {
	if before == nil {
		return s.Report.Withheld
	}
	known := make(map[Problem]bool, len(before.Report.Withheld))
	for _, p := range before.Report.Withheld {
		known[p] = true
	}
	var problems []Problem
	for _, p := range s.Report.Withheld {
		if !known[p] {
			problems = append(problems, p)
		}
	}
	return problems
}

// noteExpiry keeps the earliest time at which a key of a provider expires. Of several copies
// of a key, the first one counts.
func (s *Snapshot) noteExpiry(p *Provider) {
	for _, r := range p.Releases {
		for i, k := range r.Keys {
			copied := slices.ContainsFunc(r.Keys[:i], func(first signing.PublicKey) bool { return first.ID == k.ID })
			if !copied && !k.Expires.IsZero() && (s.KeysExpire.IsZero() || k.Expires.Before(s.KeysExpire)) {
				s.KeysExpire = k.Expires
			}
		}
	}
}

func newSnapshot(files tree.Tree, taken time.Time, shared *shared) *Snapshot {
	return &Snapshot{
		Taken: taken, tree: files, shared: shared,
		providers:       make(map[address.Address]*Provider),
		modules:         make(map[address.Address]*Module),
		mergedProviders: make(map[address.Address]*Provider),
		mergedModules:   make(map[address.Address]*Module),
		metadata:        make(map[address.Address]addressMetadata),
		mergedMetadata:  make(map[address.Address]addressMetadata),
		pending:         make(map[address.Address]pending),
		docs:            make(map[*encodedRelease]string),
	}
}

// addProvider adds the provider of an address, which may be nil, and the versions of it that
// have not been read.
func (s *Snapshot) addProvider(a address.Address, p *Provider, lacks pending) {
	if lacks.has("") {
		s.pending[a] = lacks
	}
	if p != nil {
		s.providers[a] = p
		s.noteExpiry(p)
		for _, r := range p.Releases {
			s.noteChanged(a, r.Version, r.Changed)
		}
	}
}

// addMetadata adds the metadata of an address.
func (s *Snapshot) addMetadata(a address.Address, metadata addressMetadata) {
	if metadata.file != nil {
		s.metadata[a] = metadata
	}
}

// addModule adds the module of an address, which may be nil, and the versions of it that
// have not been read.
func (s *Snapshot) addModule(a address.Address, m *Module, lacks pending) {
	if lacks.has("") {
		s.pending[a] = lacks
	}
	if m != nil {
		s.modules[a] = m
		for _, v := range m.Versions {
			s.noteChanged(a, v.Version, v.Changed)
		}
	}
}

// mergeHosted merges addresses that are found both with and without HOSTNAME. If a version
// is found twice, the version with HOSTNAME is offered. It is not known here whether the
// registry answers as HOSTNAME, so the versions under it stay separately reachable as well.
func (s *Snapshot) mergeHosted() {
	var twice shadows
	for a, both := range s.foundTwice() {
		if a.IsModule() {
			m, hosted := s.modules[a], s.modules[a.At("")]
			versions := mergeVersions(m.versionList(), hosted.versionList(), &both, func(v *ModuleVersion) {
				twice.add(KindModule, hosted.Address.String(), v.Version, a.Hostname)
			})
			s.mergedModules[a] = nil
			if len(versions) > 0 {
				s.mergedModules[a] = s.merged.module(a, versions, both)
			}
		} else {
			p, hosted := s.providers[a], s.providers[a.At("")]
			releases := mergeVersions(p.releaseList(), hosted.releaseList(), &both, func(r *Release) {
				twice.add(KindProvider, hosted.Address.String(), r.Version, a.Hostname)
			})
			s.mergedProviders[a] = nil
			if len(releases) > 0 {
				s.mergedProviders[a] = s.merged.provider(a, releases, both)
			}
		}
		s.mergedMetadata[a] = both
	}
	s.merged.finish(s)
	twice.note(s.Report)
}

// foundTwice returns the addresses with HOSTNAME that have a version or a registry.hcl
// without HOSTNAME as well, with the merged metadata.
func (s *Snapshot) foundTwice() map[address.Address]addressMetadata {
	found := func(a address.Address) bool {
		return s.providers[a] != nil || s.modules[a] != nil || s.metadata[a].file != nil
	}
	twice := make(map[address.Address]addressMetadata)
	add := func(a address.Address) {
		if hosted := a.At(""); a.Hostname != "" && found(hosted) {
			twice[a] = s.metadata[a].over(s.metadata[hosted])
		}
	}
	for a := range s.providers {
		add(a)
	}
	for a := range s.modules {
		add(a)
	}
	for a := range s.metadata {
		add(a)
	}
	return twice
}

// mergeVersions merges versions with the versions of the same address without HOSTNAME. It
// moves versions that the merged metadata withdraws to s, and calls clash for each hosted
// version that own has as well.
func mergeVersions[T interface{ number() *version.Version }](own, hosted []T, s *addressMetadata, clash func(T)) []T {
	known := make(map[string]bool, len(own))
	for _, v := range own {
		known[v.number().String()] = true
	}
	all := slices.Clone(own)
	for _, v := range hosted {
		if known[v.number().String()] {
			clash(v)
			continue
		}
		all = append(all, v)
	}
	all = slices.DeleteFunc(all, func(v T) bool {
		n := s.file.WithdrawnVersion(v.number())
		if n != nil {
			s.withdraw(v.number(), n)
		}
		return n != nil
	})
	s.sort()
	return all
}

// shadows are the hosted offers that are also found under a HOSTNAME, which is offered
// instead: the hostnames by kind, address and version.
type shadows map[[3]string][]string

func (s *shadows) add(kind, hosted, version string, hostname svchost.Hostname) {
	if *s == nil {
		*s = make(shadows)
	}
	of := [3]string{kind, hosted, version}
	(*s)[of] = append((*s)[of], address.DisplayHostname(hostname))
}

// note adds the hostnames to the notes of the report.
func (s shadows) note(r *Report) {
	if len(s) == 0 {
		return
	}
	for i := range r.Offered {
		o := &r.Offered[i]
		o.Notes = slices.Clip(o.Notes) // earlier reports share them
		for _, h := range slices.Sorted(slices.Values(s[[3]string{o.Kind, o.Address, o.Version}])) {
			o.Notes = append(o.Notes, fmt.Sprintf("it is found under %s too: asked as %s, the registry offers that one", h, h))
		}
	}
}
