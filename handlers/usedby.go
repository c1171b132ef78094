package handlers

import (
	"iter"
	"slices"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index/catalog"
)

// Users are the modules that the user may see and that call a module or require a provider,
// in their latest versions.
type Users struct {
	catalog.Users
	listed []Listed
}

// A Caller is one of these modules.
type Caller struct {
	*Listed
	Part       string // the path of the submodule that does so; empty for the root
	Constraint string // on the version; empty if there is none
}

// UsedBy returns what uses a module or provider.
func (v *View) UsedBy(a address.Address) (Users, error) {
	l, err := v.listing()
	if err != nil {
		return Users{}, err
	}
	names := []address.Address{a}
	if a.Hostname == "" {
		names = nil
		for _, name := range append(slices.Clone(v.registry.Hostnames), v.request.self) {
			if own := a.At(name); !slices.Contains(names, own) {
				names = append(names, own)
			}
		}
	}
	return Users{l.usedBy().Of(names...), l.modules.entries()}, nil
}

// Callers returns each use, by the address of the caller.
func (u Users) Callers() iter.Seq[Caller] {
	return func(yield func(Caller) bool) {
		for c := range u.Users.Callers() {
			if !yield(Caller{&u.listed[c.Entry], c.Part, c.Constraint}) {
				return
			}
		}
	}
}

// OtherSystems returns the modules of the same name for other systems that the user may see.
func (v *View) OtherSystems(a address.Address) ([]Listed, error) {
	l, err := v.listing()
	if err != nil {
		return nil, err
	}
	name := a
	name.System = ""
	at, _ := l.modules.find(name)
	var others []Listed
	for _, m := range l.modules.entries()[at:] {
		system := m.Address.System
		if m.Address.System = ""; m.Address != name {
			break
		}
		if m.Address.System = system; m.Address != a {
			others = append(others, m)
		}
	}
	return others, nil
}
