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
// false if the path does not belong to the registry.
func splitServicePath(path string) (s servicePath, ok bool) {
	var nested bool
	s.protocol, s.rest, nested = strings.Cut(path, "/")
	switch s.protocol {
	case "modules", "providers":
		return s, true
	case "mirror", "tlog":
		return s, nested
	case "ready", "refresh":
		return s, !nested
	case "registries":
		s.original, path, _ = strings.Cut(s.rest, "/")
		s.protocol, s.rest, _ = strings.Cut(path, "/")
		return s, s.original != "" && (s.protocol == "modules" || s.protocol == "providers")
	}
	return s, false
}

// ForClients reports whether a path, given without the registry's prefix, is kept for
// clients, so that pages cannot be there.
func ForClients(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return slices.Contains([]string{"modules", "providers", "mirror", "tlog", "ready", "refresh", "registries"}, first)
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
