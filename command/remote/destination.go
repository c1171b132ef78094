package remote

import (
	"fmt"
	"net/url"
	"strings"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// A Destination is an address at a registry.
type Destination struct {
	Base     *url.URL // of the registry, without a path
	Hostname svchost.Hostname
	Address  address.Address // hosted, if it is published
}

// ParseRegistry parses HOST[:PORT]/… and returns the names after the host. A registry without
// TLS is written as http://HOST/….
func ParseRegistry(text string) (d Destination, names []string, err error) {
	scheme, rest, found := strings.Cut(text, "://")
	if !found {
		scheme, rest = "https", text
	}
	if scheme != "https" && scheme != "http" {
		return d, nil, fmt.Errorf("%q is not a registry: write registry.example.com/acme/demo", text)
	}
	names = strings.Split(strings.TrimSuffix(rest, "/"), "/")
	if !address.IsHostname(names[0]) {
		return d, nil, fmt.Errorf("%q does not begin with the hostname of a registry: write registry.example.com/%s", text, strings.Trim(rest, "/"))
	}
	if d.Hostname, err = address.ParseHostname(names[0]); err != nil {
		return d, nil, fmt.Errorf("%q is not a hostname: %w", names[0], err)
	}
	d.Base = &url.URL{Scheme: scheme, Host: string(d.Hostname)}
	return d, names[1:], nil
}

// String names the registry.
func (d Destination) String() string { return d.Hostname.ForDisplay() }
