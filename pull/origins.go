package pull

import (
	"maps"
	"slices"

	svchost "github.com/hashicorp/terraform-svchost"
)

// An Origin is a registry from which a Filler fetches packages.
type Origin struct {
	Hostname svchost.Hostname
	Modules  bool // modules, too, and not only providers
}

// Origins returns the registries from which packages are fetched, by hostname. The repositories of
// hosted modules are none.
func (f *Filler) Origins() []Origin {
	var origins []Origin
	for _, hostname := range slices.Sorted(maps.Keys(f.sources)) {
		if hostname == "" {
			continue
		}
		origins = append(origins, Origin{hostname, f.sources[hostname].Policy.Modules})
	}
	return origins
}
