package pages

import (
	"cmp"
	"slices"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// A usedBy lists the modules that use a module or provider, in their latest versions.
type usedBy struct {
	Latest  string // the version that a user should take
	Callers []caller
	More    int // callers that are left out
}

// A caller is a module that uses another module or a provider.
type caller struct {
	Name, URL  string
	Version    string // of the caller
	Constraint string // empty: any version
	Takes      bool   // the constraint allows the latest version
}

// maxCallers is how many callers are listed.
const maxCallers = 200

// usedBy returns what uses a module or provider, as far as the visitor may see it: those
// first that do not take its latest version.
func (v *visit) usedBy(latest string) (u usedBy, err error) {
	callers, err := v.view.UsedBy(v.route.address)
	if err != nil {
		return u, err
	}
	u.Latest = latest
	for _, c := range callers {
		r := addressRoute(c.Address)
		name := c.Address.String()
		if c.Part != "" {
			r, name = r.withPart(c.Part), name+"//"+c.Part
		}
		u.Callers = append(u.Callers, caller{name, v.url(r), c.Version, c.Constraint, takes(c.Constraint, latest)})
	}
	slices.SortStableFunc(u.Callers, func(a, b caller) int {
		if a.Takes != b.Takes {
			if a.Takes {
				return 1
			}
			return -1
		}
		return cmp.Compare(a.Name, b.Name)
	})
	if n := len(u.Callers); n > maxCallers {
		u.More, u.Callers = n-maxCallers, u.Callers[:maxCallers]
	}
	return u, nil
}

// usedByCount returns the number of modules that use a module or provider. It is zero where
// that cannot be known.
func (v *visit) usedByCount() int {
	callers, err := v.view.UsedBy(v.route.address)
	if err != nil {
		return 0
	}
	return len(callers)
}

// takes reports whether a client with a constraint may select a version. A constraint that no
// client can read takes none.
func takes(constraint, version string) bool {
	v, err := address.ParseModuleVersion(version)
	if err != nil {
		return false
	}
	if constraint == "" {
		return true
	}
	c, err := address.ParseConstraints(constraint)
	return err == nil && c.Allow(v)
}
