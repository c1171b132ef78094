package pages

import (
	version "github.com/hashicorp/go-version"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/route"
)

// A usedBy lists the modules that use a module or provider, in their latest versions.
type usedBy struct {
	Modules int    // how many there are
	Latest  string // the version that a user should take
	Callers []caller
	More    int // callers that are left out
}

// A caller is a module, or a submodule, that uses another module or a provider.
type caller struct {
	Name, URL  string
	Version    string // of the caller
	Constraint string // empty: any version
	Takes      bool   // the constraint allows the latest version
}

// maxCallers is how many callers are listed.
const maxCallers = 200

// usedBy returns what uses a module or provider, as far as the visitor may see it: first what
// does not take its latest version.
func (v *visit) usedBy(latest string) (u usedBy, err error) {
	users, err := v.view.UsedBy(v.route.Address)
	if err != nil {
		return u, err
	}
	u.Modules, u.Latest = users.Modules(), latest
	takes := takesOf(v.route.Address, latest)
	known := make(map[string]bool) // there are few constraints
	var groups [2][]handlers.Caller
	all := 0
	for c := range users.Callers() {
		all++
		took, ok := known[c.Constraint]
		if !ok {
			took = takes(c.Constraint)
			known[c.Constraint] = took
		}
		group := &groups[0]
		if took {
			group = &groups[1]
		}
		if len(*group) < maxCallers {
			*group = append(*group, c)
		}
	}
	for i, group := range groups {
		for _, c := range group[:min(len(group), maxCallers-len(u.Callers))] {
			r := route.Of(c.Address)
			name := c.Address.String()
			if c.Part != "" {
				r, name = r.WithPart(c.Part), name+"//"+c.Part
			}
			u.Callers = append(u.Callers, caller{name, v.url(r), c.Version, c.Constraint, i == 1})
		}
	}
	u.More = all - len(u.Callers)
	return u, nil
}

// usedByCount returns the number of modules that use a module or provider. It is zero where
// that cannot be known.
func (v *visit) usedByCount() int {
	users, err := v.view.UsedBy(v.route.Address)
	if err != nil {
		return 0
	}
	return users.Modules()
}

// takesOf returns a function that reports whether a client with a constraint may select a
// version of a module or provider. Clients read the two differently. A constraint that no
// client can read takes none.
func takesOf(a address.Address, latest string) func(constraint string) bool {
	v, err := address.ParseModuleVersion(latest)
	if err != nil {
		return func(string) bool { return false }
	}
	return func(constraint string) bool {
		var c interface{ Allow(*version.Version) bool }
		var err error
		if a.IsModule() {
			c, err = address.ParseModuleConstraints(constraint)
		} else {
			c, err = address.ParseConstraints(constraint)
		}
		return err == nil && c.Allow(v)
	}
}
