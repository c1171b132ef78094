package clientconfig

import (
	"fmt"
	"strings"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// A Registry describes a registry for its clients.
type Registry struct {
	// Hostnames are the registry's names as users write them, with a port unless it is
	// 443. Clients are told the first one.
	Hostnames []string

	// URL is the beginning of the URLs of its services, such as
	// "https://registry.example.com/v1".
	URL string

	// HostsProviders reports whether the registry hosts providers. Clients get them by
	// the protocol of registries, which provides the hashes of all platforms for lock
	// files.
	HostsProviders bool

	// Private reports whether some of the hosted addresses require a token.
	Private bool

	// Login reports whether `terraform login` gets a token.
	Login bool

	// Origins are the other registries from which this registry has files or fetches
	// them.
	Origins []Origin
}

// An Origin is a registry for which another registry stands in.
type Origin struct {
	Hostname svchost.Hostname

	// Whether there are providers and modules of the origin.
	Providers, Modules bool

	// Private reports whether some of them require a token.
	Private bool
}

// String returns the hostname as users write it.
func (o Origin) String() string { return address.DisplayHostname(o.Hostname) }

// Mirror returns the block with which clients get the providers of all other registries
// from this registry.
//
// The registry's own providers are excluded if it hosts some, since a mirror provides
// only the hashes of one platform for lock files. A name with a port has to be excluded
// in any case: clients treat the port as a part of a URL when they look for the name in
// a mirror, and fail (checklist 74).
func (r Registry) Mirror() string {
	var own []string
	for _, name := range r.Hostnames {
		if r.HostsProviders || strings.Contains(name, ":") {
			own = append(own, quote(name+"/*/*"))
		}
	}
	url := quote(r.URL + "/mirror/")
	if len(own) == 0 {
		return `provider_installation {
  network_mirror {
    url = ` + url + `
  }
  direct {} # leave this out where the public registries cannot be reached
}
`
	}
	patterns := strings.Join(own, ", ")
	return `provider_installation {
  network_mirror {
    url     = ` + url + `
    exclude = [` + patterns + `]
  }
  direct {
    # Where the public registries cannot be reached:
    # include = [` + patterns + `]
  }
}
`
}

// publicServices are the base URLs of the public registries' services. Clients with a
// host block do not discover services, so services missing in it do not exist for them.
var publicServices = map[svchost.Hostname]string{
	address.TerraformHost: "https://registry.terraform.io/v1",
	address.OpenTofuHost:  "https://registry.opentofu.org/v1",
}

// StandIn returns the block with which clients use this registry in place of the
// origin.
func (r Registry) StandIn(o Origin) string {
	base := r.URL + "/registries/" + string(o.Hostname)
	var b strings.Builder
	fmt.Fprintf(&b, "host %s {\n  services = {\n", quote(o.String()))
	for _, s := range []struct {
		there             bool
		name, path, nouns string
	}{
		{o.Providers, `"providers.v1" = `, "/providers/", "providers"},
		{o.Modules, `"modules.v1"   = `, "/modules/", "modules"},
	} {
		public := publicServices[o.Hostname]
		switch {
		case s.there:
			fmt.Fprintf(&b, "    %s%s\n", s.name, quote(base+s.path))
		case public == "":
			fmt.Fprintf(&b, "    # Its %s are not here.\n", s.nouns)
		default:
			fmt.Fprintf(&b, "    # Its %s are not here. Where the public registry can be reached:\n    # %s%s\n", s.nouns, s.name, quote(public+s.path))
		}
	}
	b.WriteString("  }\n}\n")
	return b.String()
}

// Host returns the block with which clients find the services of a hostname of the
// registry without discovery.
func (r Registry) Host(hostname string) string {
	return fmt.Sprintf(`host %s {
  services = {
    "providers.v1" = %s
    "modules.v1"   = %s
  }
}
`, quote(hostname), quote(r.URL+"/providers/"), quote(r.URL+"/modules/"))
}

// quote returns a string of a CLI configuration. Neither hostnames nor URLs contain the
// start of an interpolation.
func quote(s string) string { return fmt.Sprintf("%q", s) }
