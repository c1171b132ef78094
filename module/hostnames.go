package module

import (
	"cmp"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/certmagic"
	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// parseHostnames parses the hostnames in an option.
func parseHostnames(option string, names []string) ([]svchost.Hostname, error) {
	var hostnames []svchost.Hostname
	for _, name := range names {
		hostname, err := address.ParseHostname(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %q is not a hostname that clients can use: %w", option, name, err)
		}
		hostnames = append(hostnames, hostname)
	}
	return hostnames, nil
}

// CheckRuleHostnames returns an error, and the number of the rule, counted from 1, if
// an address pattern of a rule has the hostname of the public URL and the option
// hostname is not set. It is meant for configurations whose placeholders are not
// replaced yet; Provision checks the hostnames of the site, too.
//
// Without the option hostname, a registry answers under every hostname and assumes that
// each hostname in a rule belongs to another registry. A rule with a hostname of this
// registry would match nothing, which is dangerous for a rule that denies something.
func (h *Handler) CheckRuleHostnames() (rule int, err error) {
	if h.Access == nil || len(h.Hostnames) > 0 {
		return 0, nil
	}
	rules := make([]access.Rule, len(h.Access.Rules))
	for i, r := range h.Access.Rules {
		// Provision reports the errors.
		rules[i], _ = access.ParseRule(r.words()...)
	}
	return checkRuleHostnames(access.NewRules(rules...), h.PublicURL, nil)
}

// checkRuleHostnames is like CheckRuleHostnames, for parsed rules and a site with the
// given hosts.
func checkRuleHostnames(rules *access.Rules, publicURL string, site []string) (rule int, err error) {
	publicHost := ""
	if u, err := url.Parse(publicURL); err == nil {
		publicHost = u.Hostname()
	}
	number := 0
	for r := range rules.All() {
		number++
		for pattern, name := range r.Hostnames() {
			var origin string
			switch {
			case publicHost != "" && matchesHost([]string{publicHost}, string(name)):
				origin = "public_url"
			case matchesHost(site, string(name)):
				origin = "the site"
			default:
				continue
			}
			_, rest, _ := strings.Cut(pattern, "/")
			return number, fmt.Errorf("access: rule %d: the hostname in the pattern %q is that of %s, so it is one of this registry's: add the option `hostname %s`, or write %q, which matches under every hostname of this registry",
				number, pattern, origin, name, cmp.Or(rest, "*/*"))
		}
	}
	return 0, nil
}

// matchesHost reports whether a site with the given hosts, which may have wildcards
// and placeholders, gets the requests to a hostname. Ports are ignored: a proxy may
// be in front of the server.
func matchesHost(site []string, hostname string) bool {
	if host, _, err := net.SplitHostPort(hostname); err == nil {
		hostname = host
	}
	repl := caddy.NewReplacer()
	return slices.ContainsFunc(site, func(pattern string) bool {
		pattern = repl.ReplaceKnown(pattern, "")
		if h, err := address.ParseHostname(pattern); err == nil {
			pattern = string(h) // in punycode, like the hostname
		}
		return hostname != "" && certmagic.MatchWildcard(hostname, pattern)
	})
}

// clientAddress returns the IP address of the client, which trusted proxies may set.
func clientAddress(r *http.Request) string {
	address, _ := caddyhttp.GetVar(r.Context(), caddyhttp.ClientIPVarKey).(string)
	return address
}
