package handlers_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// A path that no client asks for is a plain 4xx, or falls through.
func TestPaths(t *testing.T) {
	files, _ := everything(t)
	g := registry(scan(t, files))
	const notOurs = fallenThrough
	long := strings.Repeat("a", 100_000)
	tests := []struct {
		rule, path string
		want       int
	}{
		{"the root", "/", notOurs},
		{"the prefix", "/v1", notOurs},
		{"the prefix with a slash", "/v1/", notOurs},
		{"a longer prefix", "/v1x/providers/acme/demo/versions", notOurs},
		{"another protocol", "/v1/provider/acme/demo/versions", notOurs},
		{"a protocol in upper case", "/v1/Providers/acme/demo/versions", notOurs},
		{"a protocol that begins like one", "/v1/modulesx/acme/vpc/aws/versions", notOurs},
		{"an encoded protocol", "/v1/%70roviders/acme/demo/versions", notOurs},
		{"an encoded prefix", "/%761/providers/acme/demo/versions", notOurs},
		{"two slashes at the start", "//v1/providers/acme/demo/versions", notOurs},
		{"two slashes after the prefix", "/v1//providers/acme/demo/versions", notOurs},
		{"discovery with a slash behind", wellKnown + "/", notOurs},
		{"discovery in upper case", "/.well-known/Terraform.json", notOurs},
		{"a file beside discovery", "/.well-known/acme-challenge/x", notOurs},
		{"dots before the prefix", "/x/../v1/providers/acme/demo/versions", notOurs},

		{"two slashes for a list of providers", "/v1/providers//", 404},
		{"two slashes for a list of modules", "/v1/modules//", 404},
		{"a slash behind a list", "/v1/modules/acme/", 404},
		{"a slash behind a search", "/v1/providers/search/", 404},
		{"a namespace with a symbol", "/v1/providers/ac%24me", 404},
		{"a namespace of modules with a symbol", "/v1/modules/ac%24me", 404},
		{"mirror and nothing", "/v1/mirror/", 404},
		{"two dots", "/v1/providers/../demo/versions", 404},
		{"two dots that would leave the tree", "/v1/mirror/../../../../etc/passwd", 404},
		{"two dots for a hostname", "/v1/mirror/../acme/demo/index.json", 404},
		{"two dots for a file", "/v1/mirror/" + ownHost + "/acme/demo/..", 404},
		{"one dot for a namespace", "/v1/providers/./demo/versions", 404},
		{"encoded dots", "/v1/providers/%2e%2e/demo/versions", 404},
		{"encoded dots for a hostname", "/v1/mirror/%2e%2e/acme/demo/index.json", 404},
		{"encoded dots for a file", "/v1/mirror/" + ownHost + "/acme/demo/%2e%2e", 404},
		{"an encoded slash", "/v1/providers/acme%2fdemo/versions", 400},
		{"an encoded slash in a name", "/v1/providers/acme/demo%2F/versions", 400},
		{"an encoded path for a file", "/v1/mirror/" + ownHost + "/acme/demo/..%2f..%2fkeys%2facme.asc", 400},
		{"a slash encoded twice", "/v1/providers/acme%252fdemo/x/versions", 404},
		{"a NUL", "/v1/providers/acme/de%00mo/versions", 400},
		{"a NUL before a suffix", "/v1/mirror/" + ownHost + "/acme/demo/x%00.zip", 400},
		{"a line feed", "/v1/providers/acme/demo%0A/versions", 404},
		{"a header in a name", "/v1/modules/acme/vpc/aws/1.0.0%0d%0aX:%20y/download", 404},
		{"an escape cut short", "/v1/providers/acme/demo%/versions", 404},
		{"an invalid escape", "/v1/providers/acme/demo%zz/versions", 404},
		{"invalid UTF-8", "/v1/providers/acme/%ff%fe/versions", 400},
		{"a surrogate in UTF-8", "/v1/providers/acme/%ed%a0%80/versions", 400},
		{"a symbol in a name", "/v1/providers/acme/%E2%98%83/versions", 404},
		{"a direction override", "/v1/providers/acme/%E2%80%AEdemo/versions", 404},
		{"an empty namespace", "/v1/providers//demo/versions", 404},
		{"an empty type", "/v1/providers/acme//versions", 404},
		{"an empty version", "/v1/providers/acme/demo//download/linux/amd64", 404},
		{"an empty platform", "/v1/providers/acme/demo/1.0.0/download//", 404},
		{"an empty hostname", "/v1/mirror//acme/demo/index.json", 404},
		{"an empty file", "/v1/mirror/" + ownHost + "/acme/demo/", 404},
		{"an empty version of a module", "/v1/modules/acme/vpc/aws//download", 404},
		{"a slash behind", "/v1/providers/acme/demo/versions/", 404},
		{"a slash behind a file", "/v1/modules/acme/vpc/aws/1.2.0/archive.zip/", 404},
		{"a segment more", "/v1/providers/acme/demo/1.0.0/download/linux/amd64/x", 404},
		{"a segment less", "/v1/providers/acme/demo/1.0.0/download/linux", 404},
		{"a thousand slashes", "/v1/providers" + strings.Repeat("/", 1000), 404},
		{"fifty thousand segments", "/v1/mirror" + strings.Repeat("/a", 50_000), 404},
		{"a long namespace", "/v1/providers/" + long + "/demo/versions", 404},
		{"a long module", "/v1/modules/acme/" + long + "/aws/versions", 404},
		{"a long hostname", "/v1/mirror/" + long + ".example/acme/demo/index.json", 404},
		{"a hostname of long labels", "/v1/mirror/" + strings.Repeat("xn--a-", 40) + ".example/acme/demo/index.json", 404},
		{"a long version", "/v1/mirror/" + ownHost + "/acme/demo/1.0.0-" + long + ".json", 404},
		{"a version of large numbers", "/v1/mirror/" + ownHost + "/acme/demo/99999999999999999999.0.0.json", 404},
		{"a long file", "/v1/mirror/" + ownHost + "/acme/demo/" + long + ".zip", 404},
		{"a backslash", `/v1/providers/acme\demo/x/versions`, 404},
		{"an encoded backslash", "/v1/mirror/" + ownHost + "/acme/demo/..%5c..%5cx", 404},
		{"a semicolon", "/v1/providers/acme;a=b/demo/versions", 404},
		{"a semicolon behind", "/v1/providers/acme/demo/versions;x", 404},
		{"a space", "/v1/providers/ac%20me/demo/versions", 404},
		{"a plus for a space", "/v1/providers/ac+me/demo/versions", 404},
		{"a wildcard", "/v1/providers/acme/*/versions", 404},
		{"a hostname with a user", "/v1/mirror/user@" + ownHost + "/acme/demo/index.json", 404},
		{"a URL for a hostname", "/v1/mirror/https:/acme/demo/index.json", 404},
		{"an address for a hostname", "/v1/mirror/[::1]/acme/demo/index.json", 404},

		{"providers", "/v1/providers", 200},
		{"providers and a slash", "/v1/providers/", 200},
		{"modules", "/v1/modules", 200},
		{"modules and a slash", "/v1/modules/", 200},
		{"an encoded letter in a name", "/v1/providers/acme/d%65mo/versions", 200},
		{"a query", "/v1/providers/acme/demo/versions?version=../../etc/passwd", 200},
		{"an invalid query", "/v1/providers/acme/demo/versions?%zz;&&=%00", 200},
		{"an empty query", "/v1/providers/acme/demo/versions?", 200},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			w := serveRecorded(g, requestFor(http.MethodGet, test.path))
			if w.Code != test.want {
				t.Errorf("got %d %.200s, want %d", w.Code, w.Body, test.want)
			}
			switch body := w.Body.String(); w.Code {
			case notOurs:
				if body != "" || len(w.Header()) != 0 {
					t.Errorf("something was written: %v %q", w.Header(), body)
				}
			case 200:
			default:
				checkError(t, w.Header(), body)
				if strings.Contains(body, "etc") || strings.Contains(body, "keys") || strings.Contains(body, "providers/") {
					t.Errorf("the answer repeats the path: %s", body)
				}
			}
		})
	}
}

// requestFor makes a request for a path as it is on the wire. net/http would refuse
// some such paths, but another handler may have rewritten them.
func requestFor(method, path string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, home, nil)
	r.Method = method
	path, r.URL.RawQuery, _ = strings.Cut(path, "?")
	r.URL.Path, r.URL.RawPath = path, path
	if decoded, err := url.PathUnescape(path); err == nil {
		r.URL.Path = decoded
	}
	return r
}
