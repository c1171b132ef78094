package access

import "github.com/caddy-terraform/caddy-terraform-registry/address"

// A Resource is what rules are about: a provider or a module, and whether it is
// the registry's own. An address without a Name stands for a whole namespace.
//
// Parts of the address compare regardless of case.
type Resource struct {
	// Address it is requested by. The hostname of a hosted resource makes no
	// difference, unless a rule names it: it is the same under all names of the
	// registry.
	address.Address

	// Hosted reports that the registry answers as the hostname. All other
	// resources are mirrored.
	Hosted bool
}

// ParseResource reads an address as users write it. Without HOSTNAME it is
// hosted; with one it is not, unless the caller knows that the hostname is one of
// the registry's and sets Hosted.
func ParseResource(s string) (Resource, error) {
	a, err := address.Parse(s)
	if err != nil {
		return Resource{}, err
	}
	return Resource{Address: a, Hosted: a.Hostname == ""}, nil
}

func (r *Resource) parts() [3]string { return [3]string{r.Namespace, r.Name, r.System} }

// depth is how many parts the address has.
func (r *Resource) depth() int {
	switch {
	case r.System != "":
		return 3
	case r.Name != "":
		return 2
	case r.Namespace != "":
		return 1
	}
	return 0
}
