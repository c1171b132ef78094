package baseurl

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

func TestBaseURL(t *testing.T) {
	const host = "registry.example.com"
	proto := func(value string) http.Header { return http.Header{"X-Forwarded-Proto": {value}} }
	said := func(proto, host string) http.Header {
		return http.Header{"X-Forwarded-Proto": {proto}, "X-Forwarded-Host": {host}}
	}
	for _, test := range []struct {
		rule    string
		host    string
		tls     bool
		trusted bool
		header  http.Header
		want    string
	}{
		{"TLS", host, true, false, nil, "https://" + host},
		{"TLS at a port", host + ":8443", true, false, nil, "https://" + host + ":8443"},
		{"TLS at the default port", host + ":443", true, false, nil, "https://" + host},
		{"TLS at an IPv4 address", "127.0.0.1:8443", true, false, nil, "https://127.0.0.1:8443"},
		{"TLS at an IPv6 address", "[::1]:8443", true, false, nil, "https://[::1]:8443"},
		{"TLS at an IPv6 address without port", "[::1]", true, false, nil, "https://[::1]"},
		{"plain HTTP", host, false, false, nil, ""},

		{"a trusted proxy with https", host, false, true, proto("https"), "https://" + host},
		{"in upper case", host, false, true, proto("HTTPS"), "https://" + host},
		{"a trusted proxy with the host", "internal:8080", false, true, said("https", host), "https://" + host},
		{"with a port", "internal:8080", false, true, said("https", host+":8443"), "https://" + host + ":8443"},
		{"a trusted proxy that connects by TLS to another host", "internal:8443", true, true, said("https", host), "https://" + host},
		{"a trusted proxy that connects by TLS for plain HTTP", "internal:8443", true, true, said("http", host), ""},
		{"a trusted proxy with http", host, false, true, proto("http"), ""},
		{"a trusted proxy without headers", host, false, true, nil, ""},
		{"a trusted proxy without headers, by TLS", host, true, true, nil, "https://" + host},
		{"a trusted proxy with two schemes", host, false, true, proto("https, http"), ""},
		{"in two fields", host, false, true, http.Header{"X-Forwarded-Proto": {"https", "http"}}, ""},
		{"a trusted proxy with two hosts", host, false, true, said("https", host+", internal"), ""},

		{"a client that sends https", host, false, false, proto("https"), ""},
		{"a client that sends another host", host, true, false, said("https", "evil.example.com"), ""},
		{"an untrusted proxy that keeps the host", host, true, false, said("https", host), "https://" + host},
		{"an untrusted proxy with http", host, true, false, proto("http"), "https://" + host},
	} {
		t.Run(test.rule, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, "http://x/", nil)
			r.Host, r.Header = test.host, test.header
			if test.tls {
				r.TLS = new(tls.ConnectionState)
			}
			r = caddyhttp.PrepareRequest(r, caddy.NewReplacer(), httptest.NewRecorder(), new(caddyhttp.Server))
			caddyhttp.SetVar(r.Context(), caddyhttp.TrustedProxyVarKey, test.trusted)
			if got := FromRequest(r); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	t.Run("a request without Caddy's server", func(t *testing.T) {
		r := httptest.NewRequest(http.MethodGet, "https://"+host+"/", nil)
		if got := FromRequest(r); got != "https://"+host {
			t.Errorf("got %q", got)
		}
	})
}

// A URL made of an accepted Host header has that host, and no other part of the URL
// comes from it.
func FuzzIsAuthority(f *testing.F) {
	for _, s := range []string{
		"registry.example.com", "registry.example.com:8443", "[::1]:8443", "[::1]", "[fe80::1%25eth0]", "[fe80::1%eth0]", "[127.0.0.1]", "::1", "a:", ":443", "", "a:b", "a:123456", "[::1", "::1]",
		"user@host", "user:password@host", "host/path", "host?query", "host#fragment", "host name", "host\r\nX: y", `host"`, "host\x00", "bücher.example.com", "a,b", "a%2fb", "[::1]x", "[::1]:8443:1",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !isAuthority(s) {
			return
		}
		u, err := url.Parse("https://" + s + "/path")
		if err != nil || u.Host != s || u.User != nil || u.Path != "/path" || u.RawQuery != "" || strings.ContainsAny(s, "\"<>\\") {
			t.Errorf("%q is %#v, %v", s, u, err)
		}
	})
}

func TestIsAuthority(t *testing.T) {
	for _, s := range []string{
		"", ":", ":443", "a:", "a:b", "a:123456", "::1", "[::1", "[::1]x", "[127.0.0.1]", "[fe80::1%eth0]", "user@host", "user:password@host", "host/path", "host?query", "host#fragment",
		"host name", "host\r\nX: y", `host"`, "host\x00", "bücher.example.com", "a,b", "a%2fb", strings.Repeat("a", 254),
	} {
		if isAuthority(s) {
			t.Errorf("%q is one", s)
		}
	}
}
