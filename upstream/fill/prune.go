package fill

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// A Held release is one in a tree, or a version of a module, with its files.
type Held struct {
	Address address.Address
	Version string
	Files   []string // as the caller names them
}

// PruneOptions say what of a tree may be removed.
type PruneOptions struct {
	// Own are the hostnames that the registry answers as. Releases of addresses
	// under them, and without a hostname, are hosted: nothing can bring them back, so
	// they stay.
	Own []svchost.Hostname
}

// A Lock is a release that a lock file names, by its hostname, or a version of a module
// that a configuration needs.
type Lock struct {
	Address address.Address
	Version string
}

// A Pruning is a plan to remove releases.
type Pruning struct {
	Remove []Held // by address, then by version
	Kept   int    // releases
}

// PlanPruning plans to remove what no lock file names: of all mirrored
// releases, those that are in none of the given lock files. Lock files that
// together name nothing are refused, since that would remove everything.
func PlanPruning(releases []Held, lockFiles [][]Lock, options PruneOptions) (Pruning, error) {
	if len(lockFiles) == 0 {
		return Pruning{}, errors.New("no lock file is given: name those of all configurations that use the registry")
	}
	needed := make(map[Lock]bool)
	for _, locks := range lockFiles {
		for _, l := range locks {
			needed[options.lock(l.Address, l.Version)] = true
		}
	}
	if len(needed) == 0 {
		return Pruning{}, errors.New("the lock files name no provider: everything would be removed")
	}
	return planPruning(releases, needed, options), nil
}

// PlanModulePruning plans to remove modules like PlanPruning, given those that
// configurations need.
func PlanModulePruning(modules []Held, needed []Lock, options PruneOptions) (Pruning, error) {
	if len(needed) == 0 {
		return Pruning{}, errors.New("the configurations call no module that is in the tree: all would be removed")
	}
	all := make(map[Lock]bool)
	for _, l := range needed {
		all[options.lock(l.Address, l.Version)] = true
	}
	return planPruning(modules, all, options), nil
}

func planPruning(releases []Held, needed map[Lock]bool, options PruneOptions) (plan Pruning) {
	stays := make(map[string]bool) // by file
	for _, h := range releases {
		id := options.lock(h.Address, h.Version)
		if needed[id] || id.Address.Hostname == "" {
			plan.Kept++
			for _, file := range h.Files {
				stays[file] = true
			}
			continue
		}
		plan.Remove = append(plan.Remove, h)
	}
	for i, h := range plan.Remove {
		// A file may be of several releases, and stays with one of them.
		plan.Remove[i].Files = slices.DeleteFunc(slices.Clone(h.Files), func(file string) bool { return stays[file] })
	}
	slices.SortStableFunc(plan.Remove, func(a, b Held) int {
		return cmp.Or(strings.Compare(a.Address.String(), b.Address.String()), compareVersions(a.Version, b.Version))
	})
	return plan
}

// lock is how releases of trees and lock files are compared: hosted ones have no
// hostname.
func (o PruneOptions) lock(a address.Address, version string) Lock {
	if slices.Contains(o.Own, a.Hostname) {
		a.Hostname = ""
	}
	return Lock{a, version}
}

// compareVersions compares texts that are not versions as such.
func compareVersions(a, b string) int {
	va, errA := address.ParseProviderVersion(a)
	vb, errB := address.ParseProviderVersion(b)
	if errA != nil || errB != nil {
		return strings.Compare(a, b)
	}
	return cmp.Or(va.Compare(vb), strings.Compare(a, b))
}

// Files returns the files to remove, sorted, each once.
func (p Pruning) Files() []string {
	var files []string
	for _, h := range p.Remove {
		files = append(files, h.Files...)
	}
	slices.Sort(files)
	return slices.Compact(files)
}
