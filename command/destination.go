package command

import (
	"fmt"
	"net/url"
	"strings"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// A destination is where something is published.
type destination struct {
	base     *url.URL // of the registry, without a path
	hostname svchost.Hostname
	address  address.Address // hosted, if it is published
}

// parseRegistry parses HOST[:PORT]/… and returns the names that follow. A registry without
// TLS is written out, as http://HOST/….
func parseRegistry(text string) (d destination, names []string, err error) {
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
	if d.hostname, err = address.ParseHostname(names[0]); err != nil {
		return d, nil, fmt.Errorf("%q is not a hostname: %w", names[0], err)
	}
	d.base = &url.URL{Scheme: scheme, Host: string(d.hostname)}
	return d, names[1:], nil
}

// String is the destination without what is published.
func (d destination) String() string { return d.hostname.ForDisplay() }
