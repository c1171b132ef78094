package pull

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// A StoredRelease is a provider's release or a module's version in a tree, with its
// files.
type StoredRelease struct {
	Address address.Address
	Version string
	Files   []string // names that only the caller interprets
	Why     string   // it can be removed; empty: nothing names it
}

// PruneOptions determine what may be removed from a tree.
type PruneOptions struct {
	// Own are the hostnames of the registry. Releases of addresses under them, and
	// without a hostname, are hosted: nothing could restore them, so they stay.
	Own []svchost.Hostname
}

// A Lock is a release in a lock file, by its hostname, or a version of a module that a
// configuration needs.
type Lock struct {
	Address address.Address
	Version string
}

// A Pruning is a plan to remove releases.
type Pruning struct {
	Remove []StoredRelease // by address, then by version
	Kept   int             // releases
}

// PlanPruning plans to remove all mirrored releases that are in none of the given lock
// files. If the lock files together have no release, it returns an error, since
// everything would be removed.
func PlanPruning(releases []StoredRelease, lockFiles [][]Lock, options PruneOptions) (Pruning, error) {
	needed := slices.Concat(lockFiles...)
	switch {
	case len(lockFiles) == 0:
		return Pruning{}, errors.New("no lock file is given: name the lock files of all configurations that use the registry")
	case len(needed) == 0:
		return Pruning{}, errors.New("the lock files name no provider: everything would be removed")
	}
	return PlanUnused(releases, needed, options), nil
}

// PlanModulePruning is like PlanPruning for modules, given the modules that
// configurations need.
func PlanModulePruning(modules []StoredRelease, needed []Lock, options PruneOptions) (Pruning, error) {
	if len(needed) == 0 {
		return Pruning{}, errors.New("the configurations call no module that is in the tree: all would be removed")
	}
	return PlanUnused(modules, needed, options), nil
}

// PlanUnused plans to remove all mirrored releases, or module versions, but those that are used
// or that lock files or configurations need.
func PlanUnused(releases []StoredRelease, needed []Lock, options PruneOptions) (plan Pruning) {
	locked := make(map[Lock]bool)
	for _, l := range needed {
		locked[options.lock(l.Address, l.Version)] = true
	}
	stays := make(map[string]bool) // by file
	for _, h := range releases {
		id := options.lock(h.Address, h.Version)
		if locked[id] || id.Address.Hostname == "" {
			plan.Kept++
			for _, file := range h.Files {
				stays[file] = true
			}
			continue
		}
		plan.Remove = append(plan.Remove, h)
	}
	for i, h := range plan.Remove {
		// A file may belong to several releases, and stays with one of them.
		plan.Remove[i].Files = slices.DeleteFunc(slices.Clone(h.Files), func(file string) bool { return stays[file] })
	}
	slices.SortStableFunc(plan.Remove, func(a, b StoredRelease) int {
		return cmp.Or(strings.Compare(a.Address.String(), b.Address.String()), compareVersions(a.Version, b.Version))
	})
	return plan
}

// lock returns the form in which releases of trees and lock files are compared: hosted
// releases have no hostname.
func (o PruneOptions) lock(a address.Address, version string) Lock {
	if slices.Contains(o.Own, a.Hostname) {
		a.Hostname = ""
	}
	return Lock{a, version}
}

// compareVersions compares texts that are not versions as texts.
func compareVersions(a, b string) int {
	va, errA := address.ParseProviderVersion(a)
	vb, errB := address.ParseProviderVersion(b)
	if errA != nil || errB != nil {
		return strings.Compare(a, b)
	}
	return cmp.Or(va.Compare(vb), strings.Compare(a, b))
}

// Files returns the files to remove, sorted and without duplicates.
func (p Pruning) Files() []string {
	var files []string
	for _, h := range p.Remove {
		files = append(files, h.Files...)
	}
	slices.Sort(files)
	return slices.Compact(files)
}
