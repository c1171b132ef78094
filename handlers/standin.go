package handlers

import (
	"net/http"
	"slices"
	"strings"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// Below registries/HOSTNAME/ this registry stands in for the registry at HOSTNAME: the
// provider and module registry protocols, and the API beside them, are for addresses of
// that registry. Clients learn of these paths from a `host` block of their own
// configuration, so there is no discovery below them. Nothing is published there except
// a registry.hcl, which says which versions of that registry are offered here. Files
// have the same URLs as in all other answers.

// A servicePath is a path of the registry, in its parts.
type servicePath struct {
	original string // the HOSTNAME of the registry that it stands in for, escaped; empty: none
	protocol string // providers, modules, mirror, tlog, ready or refresh; empty: discovery
	rest     string // the rest of the path, escaped
}

// splitServicePath splits the part of a path after the registry's prefix. It reports
// false if the path does not belong to the registry. Then the protocol is empty, unless the
// path begins like one of the registry.
func splitServicePath(path string) (s servicePath, ok bool) {
	first, rest, nested := strings.Cut(path, "/")
	s = servicePath{protocol: first, rest: rest}
	switch first {
	case "modules", "providers":
		return s, true
	case "mirror", "tlog":
		return s, nested
	case "ready", "refresh":
		return s, !nested
	case "registries":
		original, below, _ := strings.Cut(rest, "/")
		if protocol, rest, _ := strings.Cut(below, "/"); original != "" && (protocol == "modules" || protocol == "providers") {
			return servicePath{original, protocol, rest}, true
		}
		return s, false
	}
	return servicePath{}, false
}

// ForClients reports whether a path, given without the registry's prefix, is kept for
// clients, so that pages cannot be there.
func ForClients(path string) bool {
	s, _ := splitServicePath(path)
	return s.protocol != ""
}

// standInFor notes that the path of r stands in for the registry at a hostname. The
// hostname of this registry itself changes nothing.
func (g *Registry) standInFor(r *request, escaped string) error {
	var array [1]string
	decoded, err := split(escaped, array[:0])
	if err != nil {
		return err
	}
	original, err := address.ParseHostname(decoded[0])
	if err != nil {
		return fail(http.StatusNotFound, "that is not the hostname of a registry: use registries/HOSTNAME/")
	}
	r.root = "/registries/" + string(original)
	if g.isName(r.self, original) {
		r.self = original
	} else {
		r.original = original
	}
	return nil
}

// isName reports whether a hostname is a name of the registry. self is the name in the
// request.
func (g *Registry) isName(self, hostname svchost.Hostname) bool {
	if len(g.Hostnames) > 0 {
		return slices.Contains(g.Hostnames, hostname)
	}
	return hostname == self
}
