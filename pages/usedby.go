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
	Takes      string // the version that clients select; empty: one before the latest, or none
}

// maxCallers is how many callers are listed.
const maxCallers = 200

// usedBy returns what uses a module or provider, as far as the visitor may see it: first what
// does not take its latest version. The offered versions have the newest first.
func (v *visit) usedBy(latest string, offered []string) (u usedBy, err error) {
	users, err := v.view.UsedBy(v.route.Address)
	if err != nil {
		return u, err
	}
	u.Modules, u.Latest = users.Modules(), latest
	takes := takesOf(v.route.Address, latest, offered)
	known := make(map[string]string) // there are few constraints
	var groups [2][]handlers.Caller
	all := 0
	for c := range users.Callers() {
		all++
		taken, ok := known[c.Constraint]
		if !ok {
			taken = takes(c.Constraint)
			known[c.Constraint] = taken
		}
		group := &groups[0]
		if taken == latest {
			group = &groups[1]
		}
		if len(*group) < maxCallers {
			*group = append(*group, c)
		}
	}
	for _, group := range groups {
		for _, c := range group[:min(len(group), maxCallers-len(u.Callers))] {
			r := route.ForAddress(c.Address)
			name := c.Address.String()
			if c.Part != "" {
				r, name = r.WithPart(c.Part), name+"//"+c.Part
			}
			u.Callers = append(u.Callers, caller{name, v.url(r), c.Version, c.Constraint, known[c.Constraint]})
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

// takesOf returns a function that returns the version of a module or provider that clients with a
// constraint select, if it is the latest or a newer one, which is deprecated or a pre-release. Clients
// read the constraints of the two differently. A constraint that no client can read takes none.
func takesOf(a address.Address, latest string, offered []string) func(constraint string) string {
	var newest []*version.Version
	for _, text := range offered {
		v, err := address.ParseModuleVersion(text)
		if err != nil {
			continue
		}
		newest = append(newest, v)
		if text == latest {
			break
		}
	}
	return func(constraint string) string {
		var c interface{ Allow(*version.Version) bool }
		var err error
		if a.IsModule() {
			c, err = address.ParseModuleConstraints(constraint)
		} else {
			c, err = address.ParseConstraints(constraint)
		}
		if err != nil {
			return ""
		}
		for _, v := range newest {
			if c.Allow(v) {
				return v.String()
			}
		}
		return ""
	}
}
