package handlers_test

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
)

// unpack fetches a module package as go-getter does: HEAD first, whose answer
// does not matter, then GET with no token and a user agent of its own, and then
// by the end of the URL's path.
func (s *site) unpack(location *url.URL) map[string]string {
	s.t.Helper()
	agent := "User-Agent: Go-http-client/1.1"
	s.do(http.MethodHead, location.String(), agent)
	a := s.do(http.MethodGet, location.String(), agent)
	if a.StatusCode != http.StatusOK {
		s.t.Fatalf("bad response code: %d", a.StatusCode)
	}
	if strings.HasSuffix(location.Path, ".zip") {
		return s.unzip(a.body)
	}
	return s.untar(a.body)
}

func (s *site) unzip(content string) map[string]string {
	s.t.Helper()
	files := make(map[string]string)
	z, err := zip.NewReader(strings.NewReader(content), int64(len(content)))
	if err != nil {
		s.t.Fatal(err)
	}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			s.t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			s.t.Fatal(err)
		}
		files[f.Name] = string(text)
	}
	return files
}

func (s *site) untar(content string) map[string]string {
	s.t.Helper()
	files := make(map[string]string)
	z, err := gzip.NewReader(strings.NewReader(content))
	if err != nil {
		s.t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return files
		}
		if err != nil {
			s.t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			s.t.Fatal(err)
		}
		files[h.Name] = string(text)
	}
}

// Checklist §6.H.
func TestModulePackages(t *testing.T) {
	tree := moduleTree(t)
	s := serve(t, registry(scan(t, tree)))
	for _, v := range moduleVersions {
		location := s.moduleLocation("acme/vpc/aws/" + v)
		first := s.get(location.String())
		same := func(t *testing.T, a answer) {
			t.Helper()
			if a.StatusCode != http.StatusOK || a.body != first.body {
				t.Errorf("got %d with %d bytes", a.StatusCode, len(a.body))
			}
		}
		s.rule("91 97 it is open to all, by whatever agent: "+v, func(t *testing.T, s *site) {
			for _, header := range []string{"User-Agent: Go-http-client/1.1", "User-Agent: OpenTofu/1.12.6", "User-Agent: ", "Authorization: Basic bmV0cmM6cGFzc3dvcmQ="} {
				same(t, s.get(location.String(), header))
			}
		})
		s.rule("92 HEAD leaves it there: "+v, func(t *testing.T, s *site) {
			for range 2 {
				if a := s.do(http.MethodHead, location.String()); a.StatusCode != http.StatusOK || a.ContentLength != int64(len(first.body)) || a.body != "" {
					t.Errorf("got %d for %d bytes, and a body of %d", a.StatusCode, a.ContentLength, len(a.body))
				}
			}
			same(t, s.get(location.String()))
		})
		s.rule("93 a query and its order do not matter: "+v, func(t *testing.T, s *site) {
			same(t, s.get(location.String()+"?z=1&archive=tar.gz&a=2"))
			same(t, s.get(location.String()+"?a=2&archive=tar.gz&terraform-get=1&z=1"))
		})
		s.rule("94 there is no Content-Encoding: "+v, func(t *testing.T, s *site) {
			a := s.get(location.String(), "Accept-Encoding: gzip, br, zstd")
			if got := a.Header.Get("Content-Encoding"); got != "" {
				t.Errorf("got %q", got)
			}
			want := "application/gzip"
			if strings.HasSuffix(location.Path, ".zip") {
				want = "application/zip"
			}
			if got := a.Header.Get("Content-Type"); got != want {
				t.Errorf("Content-Type is %q, want %q", got, want)
			}
			same(t, a)
		})
		s.rule("95 there is no checksum in the URL that could be wrong: "+v, func(t *testing.T, s *site) {
			if location.RawQuery != "" {
				t.Errorf("got %q", location.RawQuery)
			}
		})
		s.rule("96 the module is at the root: "+v, func(t *testing.T, s *site) {
			if files := s.unpack(location); files["main.tf"] != `output "root" { value = 1 }` {
				t.Errorf("got %v", files)
			}
		})
	}
	s.rule("a package is served only in the form it has", func(t *testing.T, s *site) {
		for _, path := range []string{"1.0.0/archive.zip", "1.2.0/archive.tar.gz", "1.0.0/archive.tgz", "1.0.0/archive.", "1.0.0/main.tf", "1.0.0/archive.tar.gz/main.tf"} {
			mustRefuse(t, s.get("/v1/modules/acme/vpc/aws/"+path), http.StatusNotFound)
		}
	})
	s.rule("an archive is served as it is on the disk", func(t *testing.T, s *site) {
		for name, v := range map[string]string{"1.0.0.tar.gz": "1.0.0", "1.1.0.tgz": "1.1.0", "1.2.0.zip": "1.2.0"} {
			if s.get(s.moduleLocation("acme/vpc/aws/"+v).String()).body != tree.Read("modules/acme/vpc/aws/"+name) {
				t.Errorf("%s is another", name)
			}
		}
	})
	s.rule("the same folder gives the same bytes in every registry", func(t *testing.T, s *site) {
		other := serve(t, registry(scan(t, moduleTree(t))))
		a, b := s.get(s.moduleLocation("acme/vpc/aws/1.10.0").String()), other.get(other.moduleLocation("acme/vpc/aws/1.10.0").String())
		if a.body != b.body || a.Header.Get("Etag") != b.Header.Get("Etag") {
			t.Error("they are different")
		}
	})
	s.rule("a folder that changed is not served under its old digest", func(t *testing.T, _ *site) {
		tree := indextest.New(t)
		tree.Write("modules/acme/vpc/aws/1.0.0/main.tf", "# one")
		s := serve(t, registry(scan(t, tree)))
		location := s.moduleLocation("acme/vpc/aws/1.0.0").String()
		tree.Write("modules/acme/vpc/aws/1.0.0/main.tf", "# longer")
		mustRefuse(t, s.get(location), http.StatusServiceUnavailable)
	})
}
