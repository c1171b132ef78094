package module

import (
	"cmp"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/certmagic"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// A registry without the option hostname answers as whatever name it is asked by,
// and takes every HOSTNAME in a rule for that of another registry. A rule with its
// own name would be void, which is worse than an error when it denies something.

// CheckRuleNames returns an error, and the number of the rule it is about, if one
// has a name in a pattern that is the registry's own by its public URL, and no
// option hostname says so. It is for what a configuration is made of, before any
// placeholder is expanded.
func (h *Handler) CheckRuleNames() (rule int, err error) {
	if h.Access == nil || len(h.Hostnames) > 0 {
		return 0, nil
	}
	rules := make([]access.Rule, len(h.Access.Rules))
	for i, r := range h.Access.Rules {
		// What cannot be read now is found when it is provisioned.
		rules[i], _ = access.ParseRule(append([]string{r.Effect, r.Who, r.Right}, r.Addresses...)...)
	}
	return checkRuleNames(access.NewRules(rules...), h.PublicURL, nil)
}

// checkRuleNames is that of rules that have been read, for a registry without the
// option hostname on a site of these hosts.
func checkRuleNames(rules *access.Rules, publicURL string, site []string) (rule int, err error) {
	publicHost := ""
	if u, err := url.Parse(publicURL); err == nil {
		publicHost = u.Hostname()
	}
	number := 0
	for r := range rules.All() {
		number++
		for pattern, name := range r.Hostnames() {
			var whose string
			switch {
			case publicHost != "" && onSite([]string{publicHost}, string(name)):
				whose = "public_url"
			case onSite(site, string(name)):
				whose = "the site"
			default:
				continue
			}
			_, rest, _ := strings.Cut(pattern, "/")
			return number, fmt.Errorf("access: rule %d: the name in the pattern %q is that of %s, so it is this registry's own: add the option `hostname %s`, or write %q, which covers what is its own under every name",
				number, pattern, whose, name, cmp.Or(rest, "*/*"))
		}
	}
	return 0, nil
}

// siteHosts are the hosts that the routes ask for which a handler is in that is
// being provisioned: those of the innermost that asks for any. Other sites of the
// server are no matter: they may well be mirrored here.
func siteHosts(ctx caddy.Context) (hosts []string) {
	if server, ok := ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server); ok {
		hosts = hostsBeingProvisioned(server.Routes)
	}
	for _, m := range ctx.Modules() {
		if s, ok := m.(*caddyhttp.Subroute); ok {
			if inner := hostsBeingProvisioned(s.Routes); inner != nil {
				hosts = inner
			}
		}
	}
	return hosts
}

// hostsBeingProvisioned are those of the route whose handlers Caddy provisions now:
// it takes the routes in turn, once the matchers of all are there, and drops what
// handlers were made of when they all are.
func hostsBeingProvisioned(routes caddyhttp.RouteList) (hosts []string) {
	for i := range routes {
		if routes[i].HandlersRaw == nil {
			continue
		}
		for _, set := range routes[i].MatcherSets {
			for _, matcher := range set {
				if m, ok := matcher.(*caddyhttp.MatchHost); ok {
					hosts = append(hosts, *m...)
				}
			}
		}
		break
	}
	return hosts
}

// onSite reports whether requests to a hostname reach a site of these hosts. On which
// ports its server listens does not matter: a proxy may be in front.
func onSite(site []string, hostname string) bool {
	if host, _, err := net.SplitHostPort(hostname); err == nil {
		hostname = host
	}
	repl := caddy.NewReplacer()
	return slices.ContainsFunc(site, func(pattern string) bool {
		pattern = repl.ReplaceKnown(pattern, "")
		if h, err := address.ParseHostname(pattern); err == nil {
			pattern = string(h) // as addresses have it, in punycode
		}
		return hostname != "" && certmagic.MatchWildcard(hostname, pattern)
	})
}

// baseURL is the scheme and host by which the client has reached this site, or
// nothing where they are not known for certain: then URLs are paths, which are right
// behind any proxy. Clients insist on HTTPS, so there is no other scheme.
func baseURL(r *http.Request) string {
	encrypted, host := r.TLS != nil, r.Host
	if trusted, _ := caddyhttp.GetVar(r.Context(), caddyhttp.TrustedProxyVarKey).(bool); trusted {
		// What a trusted proxy says comes before what its own connection is like: it
		// may have another name for this server, and encrypt what came in plain.
		if proto, said := forwarded(r, "X-Forwarded-Proto"); said {
			encrypted = strings.EqualFold(proto, "https")
		}
		if name, said := forwarded(r, "X-Forwarded-Host"); said {
			host = name
		}
	} else if name, said := forwarded(r, "X-Forwarded-Host"); said && name != host {
		// A proxy that is not trusted has put its own name for this server in place of
		// the client's. A client that sends this itself harms itself only.
		return ""
	}
	if !encrypted || !isAuthority(host) {
		return ""
	}
	return "https://" + strings.TrimSuffix(host, ":443")
}

// forwarded is what a proxy says in a header field, and whether it says anything. A
// list, of several proxies that may not mean the same, is nothing that can be used.
func forwarded(r *http.Request, field string) (value string, said bool) {
	values := r.Header[field]
	switch len(values) {
	case 0:
		return "", false
	case 1:
		return strings.TrimSpace(values[0]), true
	}
	return "", true
}

// isAuthority reports whether s is a host, with a port or without, that means the
// same to everything that reads it in a URL.
func isAuthority(s string) bool {
	host, port := s, ""
	if i := strings.LastIndexByte(s, ':'); i >= 0 && !strings.HasSuffix(s, "]") {
		host, port = s[:i], s[i+1:]
		if port == "" || len(port) > 5 || strings.Trim(port, "0123456789") != "" {
			return false
		}
	}
	if address, isIPv6 := strings.CutPrefix(host, "["); isIPv6 {
		address, closed := strings.CutSuffix(address, "]")
		ip, err := netip.ParseAddr(address)
		return closed && err == nil && ip.Is6() && ip.Zone() == ""
	}
	if host == "" || len(host) > 253 {
		return false
	}
	for i := range len(host) {
		c := host[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '.' || c == '_') {
			return false
		}
	}
	return true
}
