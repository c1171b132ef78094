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

// A Snapshot is everything the registry offers at one time. It never changes: a
// request reads one snapshot to its end.
type Snapshot struct {
	// Taken is when its scan began.
	Taken time.Time

	// Report says what became of everything the scan found.
	Report *Report

	// KeysExpire is when the first of the keys that clients are given expires;
	// zero if none expires.
	KeysExpire time.Time

	// Changed is what is offered with other bytes than at first, by path.
	Changed []ChangedVersion

	unread string // which archives are still pending that the scan tried to read, and why; empty: none are
	faulty bool   // something else could not be read, and may be a moment later

	// Read and Recalled count the archives that the scan read and those that the
	// memo knew.
	Read, Recalled int

	keys      *keysFolder // nil in one that is taken before a scan ends
	tree      tree.Tree
	providers map[address.Address]*Provider
	modules   map[address.Address]*Module

	// Those found both with and without HOSTNAME, merged; nil if all is withdrawn.
	mergedProviders map[address.Address]*Provider
	mergedModules   map[address.Address]*Module

	// What registry.hcl files say, and what they withdraw.
	standings, mergedStandings map[address.Address]standing

	pending map[address.Address]pending
	unknown []folder // that no scan could read yet

	cataloging sync.Once
	catalog    *Catalog

	signer Signer // of releases without a usable signature; nil: they are not signed

	docs map[*encodedRelease]string // the folders of documentation, whatever notices a release is under

	changes Change // the last that its scan has seen

	*shared
}

// Sees reports whether the scan began after the Index had been told of a change.
func (s *Snapshot) Sees(c Change) bool { return s.changes >= c }

// pending says what of an address a snapshot lacks because it has not been read
// yet. The zero value is nothing.
type pending struct {
	versions []string // of which something is new

	// Versions may be missing that clients were offered before, by an earlier
	// process. A list without them would have clients choose an older one.
	list bool

	// The folder cannot be read at the moment, and is as the last scan has found it: there
	// may be other versions.
	held bool
}

// has reports whether something of a version is pending; empty is any version.
func (p pending) has(version string) bool {
	return p.held || len(p.versions) > 0 && (version == "" || slices.Contains(p.versions, version))
}

// Provider returns what lies under exactly that address, or nil.
func (s *Snapshot) Provider(a address.Address) *Provider { return s.providers[a] }

// HostedProvider returns the provider that a registry hosts if it answers as
// a.Hostname, or nil: what lies under that HOSTNAME and under none, merged.
func (s *Snapshot) HostedProvider(a address.Address) *Provider {
	return hosted(a, s.mergedProviders, s.providers)
}

// Providers yields all providers, each under the address at which it lies.
func (s *Snapshot) Providers() iter.Seq[*Provider] { return maps.Values(s.providers) }

// Module returns what lies under exactly that address, or nil.
func (s *Snapshot) Module(a address.Address) *Module { return s.modules[a] }

// HostedModule is to modules what HostedProvider is to providers.
func (s *Snapshot) HostedModule(a address.Address) *Module {
	return hosted(a, s.mergedModules, s.modules)
}

// Modules yields all modules, each under the address at which it lies.
func (s *Snapshot) Modules() iter.Seq[*Module] { return maps.Values(s.modules) }

// hosted looks up a among what is merged, then under its hostname, then under none.
func hosted[T any](a address.Address, merged, all map[address.Address]*T) *T {
	if v, ok := merged[a]; ok {
		return v
	}
	if v := all[a]; v != nil {
		return v
	}
	return all[a.At("")]
}

// Pending reports whether something of a version of a provider or module, or of any
// version if it is empty, has not been read yet: what is not found may appear soon.
func (s *Snapshot) Pending(a address.Address, version string) bool {
	return s.pending[a].has(version) || s.Unknown(a)
}

// Unknown reports whether a provider or module may lie in a folder that no scan could read
// yet: neither what is there is known, nor what is withdrawn.
func (s *Snapshot) Unknown(a address.Address) bool {
	return len(s.unknown) > 0 && s.providers[a] == nil && s.modules[a] == nil &&
		slices.ContainsFunc(s.unknown, func(f folder) bool { return f.covers(a) })
}

// ListPending reports whether the list of versions of a provider or module may
// lack some that clients were offered before.
func (s *Snapshot) ListPending(a address.Address) bool { return s.pending[a].list || s.Unknown(a) }

// newlyWithheld is what is withheld and was not in the snapshot before, which
// may be nil.
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

// noteExpiry keeps the earliest time at which a key of a provider expires. Of several
// copies of a key the first counts.
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
		standings:       make(map[address.Address]standing),
		mergedStandings: make(map[address.Address]standing),
		pending:         make(map[address.Address]pending),
		docs:            make(map[*encodedRelease]string),
	}
}

// addProvider adds what is offered under an address, which may be nil, and what of
// it has not been read.
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

// addStanding adds what registry.hcl says about an address.
func (s *Snapshot) addStanding(a address.Address, of standing) {
	if of.metadata != nil {
		s.standings[a] = of
	}
}

// addModule does the same for modules.
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

// mergeHosted merges what is found both with and without HOSTNAME; of a version
// found twice the one with HOSTNAME is offered. Whether the registry answers as
// HOSTNAME is not known here, so what lies under it stays separately reachable as
// well.
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
		s.mergedStandings[a] = both
	}
	s.merged.finish(s)
	twice.note(s.Report)
}

// foundTwice returns the addresses with HOSTNAME of which there is something, a
// version or registry.hcl, without HOSTNAME as well, and what is said about them both
// ways.
func (s *Snapshot) foundTwice() map[address.Address]standing {
	found := func(a address.Address) bool {
		return s.providers[a] != nil || s.modules[a] != nil || s.standings[a].metadata != nil
	}
	twice := make(map[address.Address]standing)
	add := func(a address.Address) {
		if hosted := a.At(""); a.Hostname != "" && found(hosted) {
			twice[a] = s.standings[a].over(s.standings[hosted])
		}
	}
	for a := range s.providers {
		add(a)
	}
	for a := range s.modules {
		add(a)
	}
	for a := range s.standings {
		add(a)
	}
	return twice
}

// mergeVersions merges versions with those of the same address without HOSTNAME. It
// moves the ones that both together withdraw to s, and calls clash for each hosted
// one that own has as well.
func mergeVersions[T interface{ number() *version.Version }](own, hosted []T, s *standing, clash func(T)) []T {
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
		n := s.metadata.WithdrawnVersion(v.number())
		if n != nil {
			s.withdraw(v.number(), n)
		}
		return n != nil
	})
	s.sort()
	return all
}

// shadows are the hosted offers that are found under a HOSTNAME too, which is
// offered in their place: the hostnames by kind, address and version.
type shadows map[[3]string][]string

func (s *shadows) add(kind, hosted, version string, hostname svchost.Hostname) {
	if *s == nil {
		*s = make(shadows)
	}
	of := [3]string{kind, hosted, version}
	(*s)[of] = append((*s)[of], address.DisplayHostname(hostname))
}

// note adds them to the notes of the report.
func (s shadows) note(r *Report) {
	if len(s) == 0 {
		return
	}
	for i := range r.Offered {
		o := &r.Offered[i]
		o.Notes = slices.Clip(o.Notes) // earlier reports have the same ones
		for _, h := range slices.Sorted(slices.Values(s[[3]string{o.Kind, o.Address, o.Version}])) {
			o.Notes = append(o.Notes, fmt.Sprintf("it is found under %s too: asked as %s, the registry offers that one", h, h))
		}
	}
}
