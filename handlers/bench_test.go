package handlers_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
)

// A sink discards the response, so that only the registry is measured.
type sink struct {
	header http.Header
	status int
	size   int64
}

func (s *sink) Header() http.Header { return s.header }

func (s *sink) WriteHeader(status int) { s.status = status }

func (s *sink) Write(p []byte) (int, error) {
	s.size += int64(len(p))
	return len(p), nil
}

func (s *sink) ReadFrom(r io.Reader) (int64, error) {
	n, err := io.Copy(io.Discard, r)
	s.size += n
	return n, err
}

func BenchmarkServeHTTP(b *testing.B) {
	files := indextest.New(b)
	for _, v := range []string{"1.0.0", "1.1.0", "1.2.0"} {
		files.Provider("acme/demo", v, "linux_amd64", "linux_arm64", "darwin_arm64", "windows_amd64")
		files.Write("modules/acme/vpc/aws/"+v+"/main.tf", `output "a" { value = 1 }`)
	}
	snapshot := scan(b, files)
	const port8443 = "https://" + ownHost + ":8443"
	rows := []struct {
		name, url, public string
		headers           http.Header
	}{
		{"discovery", home + wellKnown, "", nil},
		{"versions", home + "/v1/providers/acme/demo/versions", "", nil},
		{"versions at a port", port8443 + "/v1/providers/acme/demo/versions", "", nil},
		{"versions not modified", home + "/v1/providers/acme/demo/versions", "", http.Header{"If-None-Match": {"*"}}},
		{"download", home + "/v1/providers/acme/demo/1.0.0/download/linux/amd64", "", nil},
		{"download public", home + "/v1/providers/acme/demo/1.0.0/download/linux/amd64", home, nil},
		{"download absolute", home + "/v1/providers/acme/demo/1.0.0/download/linux/amd64", "", nil},
		{"index.json", home + "/v1/mirror/" + ownHost + "/acme/demo/index.json", "", nil},
		{"VERSION.json", home + "/v1/mirror/" + ownHost + "/acme/demo/1.0.0.json", "", nil},
		{"VERSION.json public", home + "/v1/mirror/" + ownHost + "/acme/demo/1.0.0.json", home, nil},
		{"module versions", home + "/v1/modules/acme/vpc/aws/versions", "", nil},
		{"module download", home + "/v1/modules/acme/vpc/aws/1.0.0/download", "", nil},
		{"archive", home + "/v1/mirror/" + ownHost + "/acme/demo/terraform-provider-demo_1.0.0_linux_amd64.zip", "", nil},
		{"module archive of a folder", home + "/v1/modules/acme/vpc/aws/1.0.0/archive.tar.gz", "", nil},
		{"not found", home + "/v1/providers/acme/none/versions", "", nil},
	}
	for _, row := range rows {
		b.Run(row.name, func(b *testing.B) {
			g := registry(snapshot)
			g.PublicURL = row.public
			if strings.HasSuffix(row.name, "absolute") {
				g.BaseURL = func(r *http.Request) string { return "https://" + r.Host }
			}
			r := httptest.NewRequest(http.MethodGet, row.url, nil)
			if row.headers != nil {
				r.Header = row.headers
			}
			w := &sink{header: make(http.Header)}
			b.ReportAllocs()
			for b.Loop() {
				clear(w.header)
				if !g.ServeHTTP(w, r) {
					b.Fatal("the request fell through")
				}
			}
		})
	}
}

// The cost of rules and signed links.
func BenchmarkPrivate(b *testing.B) {
	g := private(b)
	for _, row := range []struct{ name, path, token string }{
		{"versions", "/v1/providers/acme/demo/versions", reader},
		{"download", "/v1/providers/acme/demo/1.0.0/download/linux/amd64", reader},
		{"VERSION.json", "/v1/mirror/" + ownHost + "/acme/demo/1.0.0.json", reader},
		{"module download", "/v1/modules/acme/vpc/aws/1.0.0/download", reader},
		{"public versions", "/v1/providers/open/demo/versions", anonymous},
		{"anonymous", "/v1/providers/acme/demo/versions", anonymous},
	} {
		b.Run(row.name, func(b *testing.B) {
			r := withHeaders(httptest.NewRequest(http.MethodGet, home+row.path, nil), row.token)
			w := &sink{header: make(http.Header)}
			b.ReportAllocs()
			for b.Loop() {
				clear(w.header)
				g.ServeHTTP(w, r)
			}
		})
	}
}

// The registry must not slow down requests for other handlers.
func BenchmarkNotOurs(b *testing.B) {
	g := &handlers.Registry{}
	r := httptest.NewRequest(http.MethodGet, home+"/index.html", nil)
	w := &sink{header: make(http.Header)}
	b.ReportAllocs()
	for b.Loop() {
		if g.ServeHTTP(w, r) {
			b.Fatal("the request did not fall through")
		}
	}
}
