package clientconfig

import (
	"fmt"
	"strings"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// A Registry is what its clients have to know of it.
type Registry struct {
	// Hostnames are its names as users write them, with a port if that is not 443. The
	// first is the one that clients are given.
	Hostnames []string

	// URL begins the URLs of its services, such as "https://registry.example.com/v1".
	URL string

	// HostsProviders reports whether it has providers of its own that clients get by the
	// protocol of registries, which gives lock files the hashes of all platforms.
	HostsProviders bool

	// Private reports whether some of what it hosts requires a token.
	Private bool

	// Login reports whether `terraform login` gets a token.
	Login bool

	// Origins are the other registries of which it has something, or gets it.
	Origins []Origin
}

// An Origin is a registry that another one stands in for.
type Origin struct {
	Hostname svchost.Hostname

	// What there is of it.
	Providers, Modules bool

	// Private reports whether some of that requires a token.
	Private bool
}

// String returns the hostname as users write it.
func (o Origin) String() string { return address.DisplayHostname(o.Hostname) }

// Mirror returns the block with which clients get the providers of all other registries
// from this one.
//
// The registry's own providers are excluded if it hosts some, as a mirror gives lock files
// the hashes of one platform only. A name with a port has to be excluded in any case:
// clients take the port for a part of a URL when they look for it in a mirror, and fail
// (checklist 74).
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

// publicServices begin the URLs of the services of the public registries. Clients that
// are given a host block discover none, so what it leaves out does not exist for them.
var publicServices = map[svchost.Hostname]string{
	"registry.terraform.io": "https://registry.terraform.io/v1",
	"registry.opentofu.org": "https://registry.opentofu.org/v1",
}

// StandIn returns the block with which clients take this registry for the origin.
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

// Credentials returns the block that has a token for a hostname.
func Credentials(hostname, token string) string {
	return fmt.Sprintf("credentials %s {\n  token = %s\n}\n", quote(hostname), quote(token))
}

// quote returns a string of a CLI configuration. Neither hostnames nor URLs have
// anything that begins an interpolation.
func quote(s string) string { return fmt.Sprintf("%q", s) }
