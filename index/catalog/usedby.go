package catalog

import (
	"iter"
	"slices"
	"unique"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index/moduledoc"
)

// A use is the use of a module or provider. There are many, and few different ones.
type use struct {
	of   unique.Handle[address.Address]
	by   unique.Handle[string] // the path of the submodule that uses it; empty for the root
	with unique.Handle[string] // the constraint
}

// addUses adds what the module at a path uses, each once.
func (e *Entry) addUses(u *moduledoc.Uses, path string) {
	own := len(e.uses)
	add := func(source, constraint string, names int) {
		for _, a := range ParseSource(source, names) {
			one := use{unique.Make(a.Clone()), unique.Make(path), unique.Make(constraint)}
			if !slices.Contains(e.uses[own:], one) { // two submodules of one package may be called
				e.uses = append(e.uses, one)
			}
		}
	}
	for _, p := range u.Providers {
		add(p.Source, p.Version, 2)
	}
	for _, c := range u.Calls {
		add(c.Source, c.Version, 3)
	}
}

// A UsedBy says which modules use a module or provider. It never changes.
type UsedBy struct {
	users map[unique.Handle[address.Address]][]Caller // in the order of entries
}

// A Caller is a module that calls a module or requires a provider.
type Caller struct {
	Entry      int    // its place among the entries
	Part       string // the path of the submodule that does so; empty for the root
	Constraint string // on the version; empty if there is none
}

// Users are the modules that use a module or provider.
type Users struct {
	callers []Caller // in the order of entries
}

// NewUsedBy returns what these modules use, of their latest versions.
func NewUsedBy(entries []*Entry) *UsedBy {
	u := &UsedBy{users: make(map[unique.Handle[address.Address]][]Caller)}
	for i, e := range entries {
		for _, use := range e.uses {
			u.users[use.of] = append(u.users[use.of], Caller{i, use.by.Value(), use.with.Value()})
		}
	}
	return u
}

// Users returns what uses a module or provider. Its addresses have the HOSTNAMEs by which
// configurations name it.
func (u *UsedBy) Users(addresses ...address.Address) (of Users) {
	for _, a := range addresses {
		one := u.users[unique.Make(a)]
		switch {
		case one == nil:
		case of.callers == nil:
			of.callers = one
		default:
			of.callers = slices.Concat(of.callers, one)
			slices.SortStableFunc(of.callers, func(a, b Caller) int { return a.Entry - b.Entry })
		}
	}
	return of
}

// Modules returns the number of modules. A module counts once, even if several of its submodules are
// callers.
func (u Users) Modules() (modules int) {
	for i, c := range u.callers {
		if i == 0 || u.callers[i-1].Entry != c.Entry {
			modules++
		}
	}
	return modules
}

// Callers returns each use, in the order of the entries.
func (u Users) Callers() iter.Seq[Caller] { return slices.Values(u.callers) }
