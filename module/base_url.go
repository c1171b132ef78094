package module

import (
	"net/http"
	"net/netip"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

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
