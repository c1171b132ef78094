package handlers_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
)

// Clients understand every answer, and no answer tells anything about the server.
func FuzzServeHTTP(f *testing.F) {
	files, paths := everything(f)
	files.Keys("acme", indextest.NewPublisher(f))
	plain, public := registry(scan(f, files)), registry(scan(f, files))
	public.PublicURL = "https://public.example.com"
	public.Hostnames = hostnames(f, ownHost, "other.example.com:8443")

	for _, path := range paths {
		f.Add(path, "GET", ownHost, "", "", "")
		f.Add(path, "HEAD", "127.0.0.1:8443", "*", "", "")
		f.Add(path, "POST", "[::1]", "", "", "")
	}
	zip := paths[9]
	f.Add(zip, "GET", ownHost, "", "bytes=0-4,5-9", "")
	f.Add(zip, "GET", ownHost, `"a", W/"b"`, "bytes=-1", `"c"`)
	f.Add(zip, "GET", ownHost, "", "bytes=999999-", "")
	f.Add(zip, "HEAD", ownHost, "", "items=1", "")
	f.Add(zip, "GET", ownHost, "", "items=1", "")
	for _, path := range []string{
		"/v1/mirror/-/acme/demo/terraform-provider-demo_1.0.0_linux_amd64.zip", "/v1/mirror/-/acme/demo/index.json", "/v1/modules/acme/vpc/aws/download",
		"/v1/modules/registry.terraform.io/acme/vpc/aws/9.0.0/archive.zip", "/v1/modules/-/acme/vpc/aws/1.0.0/archive.zip", "/v1/modules//acme/vpc/aws/1.0.0/archive.zip",
		"/v1/mirror/../../etc/passwd", "/v1/mirror/%2e%2e/%2e%2e/x/y", "/v1/providers/a%2fb/c/versions", "/v1/providers/a%00/b/versions",
		"/v1/providers/%ff/b/versions", "/v1/providers/%/b/versions", "/v1/modules/a/b/c/1.0.0+b/download", "/v1/mirror/xn--a/b/c/1.0.0.json",
		"/v1/mirror/a:443/b/c/index.json", `/v1/providers/a\b/c/versions`, "/v1/providers//////", "/v1/modules", "/", "*", "",
		"/v1/registries/", "/v1/registries//modules", "/v1/registries/-/modules", "/v1/registries/%/providers/", "/v1/registries/a%2fb.c/modules/", "/v1/registries/xn--a/modules/a/b/c/versions",
		"/v1/registries/a:443/providers/a/b/versions", "/v1/registries/registry.terraform.io/modules/registry.terraform.io/acme/vpc/aws/9.0.0/archive.zip", "/v1/registries/../providers/a/b",
		"/v1/modules?limit=1&offset=1", "/v1/modules/?limit=-1&offset=99999999999999999999", "/v1/modules/search?q=%27%00%27&provider=%ff", "/v1/modules/search?q=vpc&limit=100&offset=1",
		"/v1/modules/acme?namespace=%zz;&provider==", "/v1/modules/acme/vpc?verified=true", "/v1/modules/search/search/search/search", "/v1/providers/search?q=a/b/c", "/v1/providers/m%c3%bcnchen",
	} {
		f.Add(path, "GET", "XN--BCHER-KVA.example.:443", "", "", "")
	}

	var told handlers.Exchange
	for _, g := range []*handlers.Registry{plain, public} {
		g.Answered = func(_ *http.Request, e *handlers.Exchange) { told = *e }
	}
	statuses := []int{200, 204, 206, 302, 304, 400, 404, 405, 412, 416, 503, fallenThrough}
	f.Fuzz(func(t *testing.T, path, method, host, ifNoneMatch, ranges, ifRange string) {
		for _, g := range []handler{{plain}, {public}} {
			r := requestFor(method, path)
			r.Host = host
			r.Header = http.Header{"If-None-Match": {ifNoneMatch}, "Range": {ranges}, "If-Range": {ifRange}}
			w := httptest.NewRecorder()
			g.ServeHTTP(w, r)
			body := w.Body.String()

			if w.Code != fallenThrough && told.Status != w.Code {
				t.Fatalf("status is %d and reported as %d", w.Code, told.Status)
			}
			if size, err := strconv.ParseInt(w.Header().Get("Content-Length"), 10, 64); err == nil && method == http.MethodGet && told.Bytes != size {
				t.Fatalf("there are %d bytes, reported as %d", size, told.Bytes)
			}
			if !slices.Contains(statuses, w.Code) {
				t.Fatalf("status is %d", w.Code)
			}
			switch {
			case w.Code == fallenThrough:
				if body != "" || len(w.Header()) != 0 {
					t.Fatalf("the request fell through after something was written: %v %q", w.Header(), body)
				}
			case w.Code == 416: // written by net/http, which also drops HEAD's body
			case method == http.MethodHead:
				if body != "" {
					t.Fatalf("HEAD has the body %q", body)
				}
			case w.Code == 204 || w.Code == 304:
				if body != "" {
					t.Fatalf("%d has the body %q", w.Code, body)
				}
			case w.Header().Get("Content-Type") == "application/json":
				if !json.Valid([]byte(body)) {
					t.Fatalf("body is %q", body)
				}
				if w.Code >= 400 {
					checkError(t, w.Header(), body)
				}
				fallthrough
			case w.Code == 200 || w.Code == 206:
				if got := w.Header().Get("Content-Length"); got != strconv.Itoa(len(body)) {
					t.Fatalf("Content-Length is %s for %d bytes", got, len(body))
				}
			}
			if method != http.MethodGet && method != http.MethodHead && w.Code != fallenThrough && w.Code != 405 {
				t.Fatalf("%q is %d", method, w.Code)
			}
			for name, values := range w.Header() {
				if len(values) != 1 || strings.ContainsAny(values[0], "\r\n\x00") {
					t.Fatalf("%s is %q", name, values)
				}
			}
			if strings.Contains(body, "BEGIN PGP PRIVATE") || strings.Contains(body, "goroutine ") {
				t.Fatalf("body is %q", body)
			}
		}
	})
}
