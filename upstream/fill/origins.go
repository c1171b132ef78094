package fill

import (
	"maps"
	"slices"

	svchost "github.com/hashicorp/terraform-svchost"
)

// An Origin is a registry that a Filler gets packages from.
type Origin struct {
	Hostname svchost.Hostname
	Modules  bool // and not only providers
}

// Origins returns the registries that packages are taken from, by hostname.
func (f *Filler) Origins() []Origin {
	var origins []Origin
	for _, hostname := range slices.Sorted(maps.Keys(f.sources)) {
		origins = append(origins, Origin{hostname, f.sources[hostname].Policy.Modules})
	}
	return origins
}
