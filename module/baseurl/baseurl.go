// Package baseurl has the URL by which a client has reached the server.
package baseurl

import (
	"net/http"
	"net/netip"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// FromRequest returns the scheme and host by which the client reached this site, or an
// empty string if they are not known for certain: then URLs are paths, which are right
// behind any proxy. The scheme is always https, as clients require it.
func FromRequest(r *http.Request) string {
	encrypted, host := r.TLS != nil, r.Host
	if trusted, _ := caddyhttp.GetVar(r.Context(), caddyhttp.TrustedProxyVarKey).(bool); trusted {
		// The headers of a trusted proxy take precedence over its connection: it may
		// use another name for this server, and TLS for requests that came without.
		if proto, set := forwarded(r, "X-Forwarded-Proto"); set {
			encrypted = strings.EqualFold(proto, "https")
		}
		if name, set := forwarded(r, "X-Forwarded-Host"); set {
			host = name
		}
	} else if name, set := forwarded(r, "X-Forwarded-Host"); set && name != host {
		// A proxy that is not trusted has replaced the client's Host. A client that
		// sends this header itself harms only itself.
		return ""
	}
	if !encrypted || !isAuthority(host) {
		return ""
	}
	return "https://" + strings.TrimSuffix(host, ":443")
}

// forwarded returns the value that a proxy has set in a header field, and whether it is
// set. The value is empty if there are several fields, since their proxies may
// disagree.
func forwarded(r *http.Request, field string) (value string, set bool) {
	values := r.Header[field]
	switch len(values) {
	case 0:
		return "", false
	case 1:
		return strings.TrimSpace(values[0]), true
	}
	return "", true
}

// isAuthority reports whether s is a host, with or without a port, that all parsers of
// URLs read in the same way.
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
