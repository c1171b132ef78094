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
// version that it has with other bytes is withheld. It must answer from memory: all snapshots
// wait for it.
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
	Withheld []report.Problem // versions that the ledger has with other bytes
	times    []int64          // when the others were first offered, in nanoseconds; 0: it is not known
}

// OfReleases returns the releases that may be offered, with the time when they were first
// offered, and what the ledger says of them. f is the folder of the provider.
func OfReleases(l Ledger, f *layout.Folder, all []*offer.Release) (may []*offer.Release, s Statement) {
	for _, r := range all {
		var first time.Time
		bad, known := false, true
		for _, k := range r.Packages {
			at, finding := l.Package(f.Address, r.Version, k)
			bad = s.withhold(f, k.File, r.Version, finding) || bad
			if first.IsZero() || at.Before(first) {
				first = at
			}
			known = known && !at.IsZero()
		}
		if !known { // one of its packages may be older
			first = time.Time{}
		}
		if !bad {
			may = append(may, r.WithOffered(s.add(first)))
		}
	}
	return may, s
}

// OfVersions is OfReleases for the versions of a module.
func OfVersions(l Ledger, f *layout.Folder, all []*offer.ModuleVersion) (may []*offer.ModuleVersion, s Statement) {
	for _, v := range all {
		at, finding := l.ModuleVersion(f.Address, v)
		if !s.withhold(f, v.Archive, v.Version, finding) {
			may = append(may, v.WithOffered(s.add(at)))
		}
	}
	return may, s
}

// withhold withholds a version because of a file, unless the finding is nil.
func (s *Statement) withhold(f *layout.Folder, file *offer.File, version string, finding *tree.Finding) bool {
	if finding == nil {
		return false
	}
	var bad report.Report
	bad.Withhold(path.Join(f.Report, strings.TrimPrefix(file.Path(), f.Dir)), f.Address, version, finding)
	s.Withheld = append(s.Withheld, bad.Withheld...)
	return true
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
