package module

import (
	"crypto/tls"
	"encoding/json"
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

		{"a trusted proxy that says TLS", host, false, true, proto("https"), "https://" + host},
		{"in upper case", host, false, true, proto("HTTPS"), "https://" + host},
		{"a trusted proxy that says its name", "internal:8080", false, true, said("https", host), "https://" + host},
		{"with a port", "internal:8080", false, true, said("https", host+":8443"), "https://" + host + ":8443"},
		{"a trusted proxy that encrypts anew under another name", "internal:8443", true, true, said("https", host), "https://" + host},
		{"a trusted proxy that encrypts what came in plain", "internal:8443", true, true, said("http", host), ""},
		{"a trusted proxy that says plain HTTP", host, false, true, proto("http"), ""},
		{"a trusted proxy that says nothing", host, false, true, nil, ""},
		{"a trusted proxy that says nothing, by TLS", host, true, true, nil, "https://" + host},
		{"a trusted proxy that says two things", host, false, true, proto("https, http"), ""},
		{"in two fields", host, false, true, http.Header{"X-Forwarded-Proto": {"https", "http"}}, ""},
		{"a trusted proxy that says two names", host, false, true, said("https", host+", internal"), ""},

		{"a client that says TLS", host, false, false, proto("https"), ""},
		{"a client that says another name", host, true, false, said("https", "evil.example.com"), ""},
		{"a proxy that is not trusted and keeps the name", host, true, false, said("https", host), "https://" + host},
		{"a proxy that is not trusted and says plain HTTP", host, true, false, proto("http"), "https://" + host},
	} {
		t.Run(test.rule, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, "http://x/", nil)
			r.Host, r.Header = test.host, test.header
			if test.tls {
				r.TLS = new(tls.ConnectionState)
			}
			r = caddyhttp.PrepareRequest(r, caddy.NewReplacer(), httptest.NewRecorder(), new(caddyhttp.Server))
			caddyhttp.SetVar(r.Context(), caddyhttp.TrustedProxyVarKey, test.trusted)
			if got := baseURL(r); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	t.Run("a request that did not come by Caddy's server", func(t *testing.T) {
		r := httptest.NewRequest(http.MethodGet, "https://"+host+"/", nil)
		if got := baseURL(r); got != "https://"+host {
			t.Errorf("got %q", got)
		}
	})
}

// Whatever is in a Host header, a URL that is made of it has that host, and nothing
// else of a URL.
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

// The URLs that some tools do not resolve are absolute where the name is known, and
// lead to what they are of. All others stay as they are.
func TestAbsoluteURLs(t *testing.T) {
	guest, tokens := tokensGuest(t, "ci")
	root := sampleTree(t)
	c := newConfiguration(t)
	plain := c.mustHandle(Handler{Root: root})
	private := c.mustHandle(Handler{Root: root, AuthRaw: []json.RawMessage{guest}})
	public := c.mustHandle(Handler{Root: root, PublicURL: "https://public.example.com"})
	c.mustStart()
	snapshot(t, plain)
	const home = "https://registry.example.com"
	const (
		download = "/v1/providers/acme/demo/1.2.0/download/linux/amd64"
		module   = "/v1/modules/acme/vpc/aws/1.0.0/download"
		newest   = "/v1/modules/acme/vpc/aws/download"
		archives = "/v1/mirror/registry.example.com/acme/demo/1.2.0.json"
	)
	unencrypted := func(r *http.Request, _ *caddy.Replacer) { r.TLS = nil }
	for _, test := range []struct {
		rule    string
		h       *Handler
		token   string
		prepare func(*http.Request, *caddy.Replacer)
		want    string
	}{
		{"by TLS", plain, "", nil, home},
		{"not by TLS", plain, "", unencrypted, ""},
		{"with a public URL", public, "", nil, "https://public.example.com"},
		{"with a public URL, not by TLS", public, "", unencrypted, "https://public.example.com"},
		{"signed", private, tokens["ci"], nil, home},
		{"signed, not by TLS", private, tokens["ci"], unencrypted, ""},
	} {
		t.Run(test.rule, func(t *testing.T) {
			w := ask(t, test.h, download, test.token, test.prepare)
			var d map[string]any
			if err := json.Unmarshal(w.Body.Bytes(), &d); err != nil {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
			for _, name := range []string{"download_url", "shasums_url", "shasums_signature_url"} {
				got := d[name].(string)
				if !strings.HasPrefix(got, test.want+"/v1/mirror/-/acme/demo/") {
					t.Errorf("%s is %s, want it at %s", name, got, test.want)
				}
				if w := ask(t, test.h, strings.TrimPrefix(got, test.want), "", nil); w.Code != http.StatusOK {
					t.Errorf("%s is %d %s", got, w.Code, w.Body)
				}
			}
			got := ask(t, test.h, module, test.token, test.prepare).Header().Get("X-Terraform-Get")
			if !strings.HasPrefix(got, test.want+"/v1/modules/acme/vpc/aws/1.0.0/archive.tar.gz") {
				t.Errorf("X-Terraform-Get is %s, want it at %s", got, test.want)
			}
			if w := ask(t, test.h, strings.TrimPrefix(got, test.want), "", nil); w.Code != http.StatusOK {
				t.Errorf("%s is %d %s", got, w.Code, w.Body)
			}
			if got := ask(t, test.h, newest, test.token, test.prepare).Header().Get("Location"); got != test.want+module {
				t.Errorf("Location is %s, want it at %s", got, test.want)
			}
			if test.h == public {
				return
			}
			if got := ask(t, test.h, archives, test.token, test.prepare).Body.String(); !strings.Contains(got, `"url":"terraform-provider-demo_1.2.0_`) {
				t.Errorf("VERSION.json is %s", got)
			}
			if got := ask(t, test.h, "/.well-known/terraform.json", "", test.prepare).Body.String(); !strings.Contains(got, `"/v1/providers/"`) {
				t.Errorf("discovery is %s (checklist 11)", got)
			}
		})
	}
	t.Run("a host that no URL can have", func(t *testing.T) {
		for _, host := range []string{"user@evil.example.com", `a"b`, "a b", "a/b", "", "[::1%25x]"} {
			w := ask(t, plain, download, "", func(r *http.Request, _ *caddy.Replacer) { r.Host = host })
			if !json.Valid(w.Body.Bytes()) || !strings.Contains(w.Body.String(), `"download_url":"/v1/mirror/-/`) {
				t.Errorf("%q: got %s", host, w.Body)
			}
		}
	})
	t.Run("other URLs have another ETag", func(t *testing.T) {
		seen := make(map[string]string)
		for _, host := range []string{"registry.example.com", "other.example.com", "registry.example.com:8443", "registry.example.com", ""} {
			for _, h := range []*Handler{plain, public} {
				w := ask(t, h, download, "", func(r *http.Request, _ *caddy.Replacer) { r.Host = host })
				etag := w.Header().Get("Etag")
				if other, known := seen[etag]; known && other != w.Body.String() {
					t.Errorf("%s is of two documents", etag)
				}
				seen[etag] = w.Body.String()
				again := ask(t, h, download, "", func(r *http.Request, _ *caddy.Replacer) {
					r.Host = host
					r.Header.Set("If-None-Match", etag)
				})
				if again.Code != http.StatusNotModified {
					t.Errorf("again: got %d", again.Code)
				}
			}
		}
		if len(seen) != 5 { // of three hosts, of none, and of the public URL
			t.Errorf("there are %d documents", len(seen))
		}
	})
}
