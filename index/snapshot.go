package index

import (
	"fmt"
	"slices"
	"time"

	version "github.com/hashicorp/go-version"
	svchost "github.com/hashicorp/terraform-svchost"
)

// A Snapshot is everything the registry offers at one time, with every answer
// ready. It never changes; requests that began with it end with it.
type Snapshot struct {
	// Taken is when the scan looked.
	Taken time.Time

	// Report says what the scan made of what it found.
	Report *Report

	// KeysExpire is when the first of the keys that clients are given expires;
	// zero when none ever does.
	KeysExpire time.Time

	// Read and Recalled count the archives the scan had to read and those it
	// knew.
	Read, Recalled int

	tree      Tree
	providers map[ProviderAddress]*Provider
	modules   map[ModuleAddress]*Module

	// What the registry offers under a name it answers as, where that is not
	// simply what lies under that HOSTNAME or under none.
	joinedProviders map[ProviderAddress]*Provider
	joinedModules   map[ModuleAddress]*Module

	pendingProviders map[ProviderAddress]pending
	pendingModules   map[ModuleAddress]pending
}

// pending says what of an address a snapshot lacks because it has not been read
// yet. The zero value is nothing.
type pending struct {
	versions []string // of which something is new

	// Versions may be missing that clients have been told of, by an instance
	// before this one. A list without them would have clients choose an older one.
	list bool
}

// has reports whether something of a version is pending; empty is any version.
func (p pending) has(version string) bool {
	return len(p.versions) > 0 && (version == "" || slices.Contains(p.versions, version))
}

// A Provider is everything offered under one provider address.
type Provider struct {
	Address ProviderAddress

	// Releases are the newest first; there is at least one.
	Releases []*Release

	byVersion map[string]*Release
	files     map[string]*File
	versions  *Document
	index     *Document
}

// Release returns the one of a version, or nil, also of a nil Provider.
func (p *Provider) Release(version string) *Release {
	if p == nil {
		return nil
	}
	return p.byVersion[version]
}

// File returns the file of that name, or nil.
func (p *Provider) File(name string) *File { return p.files[name] }

// Versions is the registry's list; nil when the mirror alone offers the provider.
func (p *Provider) Versions() *Document { return p.versions }

// Index is the mirror's index.json.
func (p *Provider) Index() *Document { return p.index }

// Archives is the mirror's VERSION.json.
func (r *Release) Archives() *Document {
	r.encode()
	return r.archives
}

// Package returns the one for a platform, or nil.
func (r *Release) Package(os, arch string) *Package {
	for _, p := range r.Packages {
		if p.OS == os && p.Arch == arch {
			return p
		}
	}
	return nil
}

// Download is the registry's answer; nil when the mirror alone offers the release.
func (p *Package) Download() *Document {
	p.release.encode()
	return p.download
}

// Provider returns what lies under an address, or nil.
func (s *Snapshot) Provider(a ProviderAddress) *Provider { return s.providers[a] }

// OwnProvider returns what the registry itself offers when it is called
// a.Hostname, or nil.
func (s *Snapshot) OwnProvider(a ProviderAddress) *Provider {
	if p := s.joinedProviders[a]; p != nil {
		return p
	}
	if p := s.providers[a]; p != nil {
		return p
	}
	a.Hostname = ""
	return s.providers[a]
}

// Module returns what lies under an address, or nil.
func (s *Snapshot) Module(a ModuleAddress) *Module { return s.modules[a] }

// OwnModule returns what the registry itself offers when it is called
// a.Hostname, or nil.
func (s *Snapshot) OwnModule(a ModuleAddress) *Module {
	if m := s.joinedModules[a]; m != nil {
		return m
	}
	if m := s.modules[a]; m != nil {
		return m
	}
	a.Hostname = ""
	return s.modules[a]
}

// ProviderPending reports whether something of a provider's version has not been
// read yet, of any version if that is empty: what is not found may be there in a
// moment.
func (s *Snapshot) ProviderPending(a ProviderAddress, version string) bool {
	return s.pendingProviders[a].has(version)
}

// ProviderListPending reports whether the list of versions may lack some that
// clients have been told of before.
func (s *Snapshot) ProviderListPending(a ProviderAddress) bool { return s.pendingProviders[a].list }

// ModulePending reports the same as ProviderPending of a module.
func (s *Snapshot) ModulePending(a ModuleAddress, version string) bool {
	return s.pendingModules[a].has(version)
}

// ModuleListPending reports the same as ProviderListPending of a module.
func (s *Snapshot) ModuleListPending(a ModuleAddress) bool { return s.pendingModules[a].list }

// NewlyWithheld is what is withheld and was not in the snapshot before, which
// may be nil.
func (s *Snapshot) NewlyWithheld(before *Snapshot) []Problem {
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

// noteExpiry keeps the earliest time at which a key of a provider expires.
func (s *Snapshot) noteExpiry(p *Provider) {
	for _, r := range p.Releases {
		for _, k := range r.Keys {
			if !k.Expires.IsZero() && (s.KeysExpire.IsZero() || k.Expires.Before(s.KeysExpire)) {
				s.KeysExpire = k.Expires
			}
		}
	}
}

func newSnapshot(tree Tree, taken time.Time) *Snapshot {
	return &Snapshot{
		Taken: taken, tree: tree,
		providers:       make(map[ProviderAddress]*Provider),
		modules:         make(map[ModuleAddress]*Module),
		joinedProviders: make(map[ProviderAddress]*Provider),
		joinedModules:   make(map[ModuleAddress]*Module),

		pendingProviders: make(map[ProviderAddress]pending),
		pendingModules:   make(map[ModuleAddress]pending),
	}
}

// newProvider orders releases and encodes the lists of them.
func newProvider(a ProviderAddress, releases []*Release) *Provider {
	newestFirst(releases, func(r *Release) *version.Version { return r.version })
	p := &Provider{
		Address: a, Releases: releases,
		byVersion: make(map[string]*Release, len(releases)),
		files:     make(map[string]*File),
		versions:  versionsDocument(releases),
		index:     mirrorIndex(releases),
	}
	for _, r := range releases {
		p.byVersion[r.Version] = r
		p.files[r.checksums.Name] = r.checksums
		if r.signature != nil {
			p.files[r.signature.Name] = r.signature
		}
		for _, k := range r.Packages {
			p.files[k.File.Name] = k.File
		}
	}
	return p
}

// joinProviders makes one of an address that is found both with and without
// HOSTNAME: versions are joined, and of a version found twice the one with
// HOSTNAME is offered. Whether the registry answers as HOSTNAME is not known
// here, so what lies under it stays separately reachable as well.
func (s *Snapshot) joinProviders(r *shadows) {
	for a, p := range s.providers {
		own := s.providers[ProviderAddress{Namespace: a.Namespace, Type: a.Type}]
		if a.Hostname == "" || own == nil {
			continue
		}
		releases := slices.Clone(p.Releases)
		for _, release := range own.Releases {
			if p.byVersion[release.Version] != nil {
				r.add(KindProvider, own.Address.String(), release.Version, a.Hostname)
				continue
			}
			releases = append(releases, release)
		}
		s.joinedProviders[a] = newProvider(a, releases)
	}
}

// joinModules does the same for modules.
func (s *Snapshot) joinModules(r *shadows) {
	for a, m := range s.modules {
		own := s.modules[ModuleAddress{Namespace: a.Namespace, Name: a.Name, System: a.System}]
		if a.Hostname == "" || own == nil {
			continue
		}
		versions := slices.Clone(m.Versions)
		for _, v := range own.Versions {
			if m.byVersion[v.Version] != nil {
				r.add(KindModule, own.Address.String(), v.Version, a.Hostname)
				continue
			}
			versions = append(versions, v)
		}
		s.joinedModules[a] = newModule(a, versions)
	}
}

// shadows are the offers that are found under a HOSTNAME too.
type shadows map[[3]string][]string // by kind, address and version: the hostnames

func (s *shadows) add(kind, address, version string, hostname svchost.Hostname) {
	if *s == nil {
		*s = make(shadows)
	}
	of := [3]string{kind, address, version}
	(*s)[of] = append((*s)[of], svchost.ForDisplay(string(hostname)))
}

// note has the report say so.
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
