package e2e_test

import (
	"net"
	"slices"
	"strings"
)

// Site is a site of a Caddyfile.
type Site struct {
	// Address is the hostname, with a port if it is not 443.
	Address string

	// TLS is the directive for its certificate. Default: "tls internal".
	TLS string

	// HTTP1 limits the server to HTTP/1.1, as the README does.
	HTTP1 bool

	// Root is the folder that the registry serves, and Options are further
	// lines of its block. A site without Root has no registry.
	Root    string
	Options []string

	// Directives are further lines of the site.
	Directives []string
}

// site serves a tree as a registry, as the README says to.
func site(address string, files *Tree, options ...string) Site {
	return Site{Address: address, Root: files.Dir, Options: options}
}

// Caddyfile returns the site as a user would write it, with an access log.
func (s Site) Caddyfile() string {
	lines := []string{"log"}
	if s.TLS == "" {
		lines = append(lines, "tls internal")
	} else {
		lines = append(lines, s.TLS)
	}
	lines = append(lines, s.Directives...)
	if s.Root != "" {
		lines = append(lines, "terraform_registry {", `root "`+s.Root+`"`)
		lines = append(lines, s.Options...)
		lines = append(lines, "}")
	}
	return s.Address + " {\n" + strings.Join(lines, "\n") + "\n}\n"
}

// hasRegistry reports whether the site has a registry.
func (s Site) hasRegistry() bool {
	return s.Root != "" || slices.ContainsFunc(s.Directives, func(d string) bool { return strings.Contains(d, "terraform_registry {") })
}

// Host returns the address without a port.
func (s Site) Host() string {
	if host, _, err := net.SplitHostPort(s.Address); err == nil {
		return host
	}
	return s.Address
}

// HostPort returns the address with the port.
func (s Site) HostPort() string {
	if s.Host() != s.Address {
		return s.Address
	}
	return net.JoinHostPort(s.Address, "443")
}
