// Package ledger compares the versions in the folder of an address with a record of what clients
// were offered before.
package ledger

import (
	"path"
	"slices"
	"strings"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index/layout"
	"github.com/caddy-terraform/caddy-terraform-registry/index/offer"
	"github.com/caddy-terraform/caddy-terraform-registry/index/report"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// A Ledger has on record what clients were offered before, such as a transparency log. A
// version that it has with other bytes is withheld, and perhaps one that it does not have yet:
// tree.NotOnRecord. It must answer from memory: all snapshots wait for it.
type Ledger interface {
	// Package returns when the package of a provider was first offered, zero if that is not
	// known, and why it must not be offered, nil if it may be. The address has the HOSTNAME
	// of its folder.
	Package(a address.Address, version string, k *offer.Package) (time.Time, *tree.Finding)

	// ModuleVersion returns the same of the version of a module.
	ModuleVersion(a address.Address, v *offer.ModuleVersion) (time.Time, *tree.Finding)
}

// A Statement is what a ledger says of the versions in a folder.
type Statement struct {
	Withheld []report.Problem // versions that the ledger has with other bytes, or must have and has not
	times    []int64          // when the others were first offered, in nanoseconds; 0: it is not known

	// Withheld versions that would be offered if the ledger had them: releases, with the packages
	// that it does not have, or versions of a module.
	Releases []*offer.Release
	Versions []*offer.ModuleVersion
}

// Waiting returns the versions that are offered, or more of them, when the ledger has them.
func (s Statement) Waiting() (versions []string) {
	for _, r := range s.Releases {
		versions = append(versions, r.Version)
	}
	for _, v := range s.Versions {
		versions = append(versions, v.Version)
	}
	return versions
}

// OfReleases returns the releases that may be offered, with the time when they were first
// offered, and what the ledger says of them. Of a release that waits for some of its packages,
// the others may be offered. f is the folder of the provider.
func OfReleases(l Ledger, f *layout.Folder, all []*offer.Release) (may []*offer.Release, s Statement) {
	for _, r := range all {
		var first time.Time
		var recorded, unrecorded []*offer.Package
		bad, known := false, true
		for _, k := range r.Packages {
			at, finding := l.Package(f.Address, r.Version, k)
			if s.withhold(f, k.File, r.Version, finding); finding != nil {
				bad = bad || finding.Reason != tree.NotOnRecord
				unrecorded = append(unrecorded, k)
				continue
			}
			recorded = append(recorded, k)
			if first.IsZero() || at.Before(first) {
				first = at
			}
			known = known && !at.IsZero()
		}
		if !known { // one of its packages may be older
			first = time.Time{}
		}
		if bad {
			continue
		}
		if len(unrecorded) > 0 {
			s.Releases = append(s.Releases, r.WithPackages(unrecorded))
		}
		if len(recorded) > 0 {
			may = append(may, r.WithPackages(recorded).WithOffered(s.add(first)))
		}
	}
	return may, s
}

// OfVersions is OfReleases for the versions of a module.
func OfVersions(l Ledger, f *layout.Folder, all []*offer.ModuleVersion) (may []*offer.ModuleVersion, s Statement) {
	for _, v := range all {
		at, finding := l.ModuleVersion(f.Address, v)
		switch s.withhold(f, v.Archive, v.Version, finding); {
		case finding == nil:
			may = append(may, v.WithOffered(s.add(at)))
		case finding.Reason == tree.NotOnRecord:
			s.Versions = append(s.Versions, v)
		}
	}
	return may, s
}

// withhold withholds a version because of a file, unless the finding is nil.
func (s *Statement) withhold(f *layout.Folder, file *offer.File, version string, finding *tree.Finding) {
	if finding == nil {
		return
	}
	var bad report.Report
	bad.Withhold(path.Join(f.Report, strings.TrimPrefix(file.Path(), f.Dir)), f.Address, version, finding)
	s.Withheld = append(s.Withheld, bad.Withheld...)
}

// add adds the time when a version was first offered, and returns it in nanoseconds.
func (s *Statement) add(first time.Time) (at int64) {
	if !first.IsZero() {
		at = first.UnixNano()
	}
	s.times = append(s.times, at)
	return at
}

// SaysNothing reports whether the ledger has nothing on record of the versions.
func (s Statement) SaysNothing() bool {
	return len(s.Withheld) == 0 && !slices.ContainsFunc(s.times, func(at int64) bool { return at != 0 })
}

// Equal reports whether two statements say the same.
func (s Statement) Equal(other Statement) bool {
	return slices.Equal(s.Withheld, other.Withheld) && slices.Equal(s.times, other.times)
}
