package handlers_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
)

// everything is a tree with providers and modules, and a path of each kind.
func everything(t testing.TB) (*indextest.Tree, []string) {
	t.Helper()
	tree := moduleTree(t)
	tree.Provider("acme/demo", "1.0.0", "linux_amd64", "darwin_arm64").Signed(indextest.NewPublisher(t))
	tree.Provider("registry.terraform.io/hashicorp/null", "3.2.0", "linux_amd64")
	return tree, []string{
		wellKnown,
		"/v1/providers/acme/demo/versions",
		"/v1/providers/acme/demo/1.0.0/download/linux/amd64",
		"/v1/mirror/registry.terraform.io/hashicorp/null/index.json",
		"/v1/mirror/registry.terraform.io/hashicorp/null/3.2.0.json",
		"/v1/mirror/registry.terraform.io/hashicorp/null/0.0.1.json",
		"/v1/mirror/" + own + "/acme/demo/index.json",
		"/v1/mirror/" + own + "/acme/demo/terraform-provider-demo_1.0.0_SHA256SUMS",
		"/v1/mirror/" + own + "/acme/demo/terraform-provider-demo_1.0.0_SHA256SUMS.sig",
		"/v1/mirror/" + own + "/acme/demo/terraform-provider-demo_1.0.0_linux_amd64.zip",
		"/v1/modules/acme/vpc/aws/versions",
		"/v1/modules/acme/vpc/aws/1.0.0/download",
		"/v1/modules/acme/vpc/aws/1.0.0/archive.tar.gz",
		"/v1/modules/acme/vpc/aws/1.2.0/archive.zip",
		"/v1/modules/acme/vpc/aws/1.10.0/archive.tar.gz",
		"/v1/providers/acme/none/versions",
		"/v1/modules/acme/none/aws/1.0.0/download",
	}
}

// Checklist §6.J.
func TestCrossCutting(t *testing.T) {
	tree, paths := everything(t)
	g := registry(scan(t, tree))
	s := serve(t, g)
	want := make(map[string]answer)
	for _, path := range paths {
		want[path] = s.get(path)
	}
	same := func(t *testing.T, path string, a answer) {
		t.Helper()
		if w := want[path]; a.StatusCode != w.StatusCode || a.body != w.body || a.Header.Get("Etag") != w.Header.Get("Etag") {
			t.Errorf("%s: got %d %q, want %d %q", path, a.StatusCode, a.body, w.StatusCode, w.body)
		}
	}
	s.rule("107 answers are the same whatever client says it asks", func(t *testing.T, s *site) {
		for _, path := range paths {
			same(t, path, s.get(path, "User-Agent: Terraform/1.15.9", "X-Terraform-Version: 1.15.9"))
			same(t, path, s.get(path, "User-Agent: OpenTofu/1.12.6", "X-Terraform-Version: 1.12.6"))
			same(t, path, s.get(path, "X-Terraform-Version: a module's"))
		}
	})
	s.rule("108 every JSON answer says so, and how long it is", func(t *testing.T, s *site) {
		for _, path := range paths {
			a := want[path]
			isJSON := strings.HasPrefix(a.body, "{")
			if got := a.Header.Get("Content-Type"); isJSON != (got == "application/json") {
				t.Errorf("%s: Content-Type is %q", path, got)
			}
			if a.ContentLength != int64(len(a.body)) {
				t.Errorf("%s: Content-Length is %d for %d bytes", path, a.ContentLength, len(a.body))
			}
		}
	})
	for version, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2.0": true} {
		s.rule("109 it works over "+version, func(t *testing.T, _ *site) {
			s := serveOver(t, g, http2)
			for _, path := range paths {
				a := s.get(path)
				if a.Proto != version {
					t.Fatalf("it was %s", a.Proto)
				}
				same(t, path, a)
			}
			s.install("acme/demo/1.0.0/download/linux/amd64")
		})
	}
	s.rule("110 the order of requests does not matter, nor how many there are at once", func(t *testing.T, s *site) {
		var clients sync.WaitGroup
		for client := range 8 {
			clients.Go(func() {
				for i := range paths {
					path := paths[(i*5+client*3)%len(paths)] // 5 and 17 are coprime: each once
					response, err := s.client.Get(home + path)
					if err != nil {
						t.Error(err)
						return
					}
					response.Body.Close()
					if w := want[path]; response.StatusCode != w.StatusCode || response.Header.Get("Etag") != w.Header.Get("Etag") {
						t.Errorf("%s: got %d", path, response.StatusCode)
					}
				}
			})
		}
		clients.Wait()
	})
	s.rule("110 a first request for any file needs none before it", func(t *testing.T, s *site) {
		for _, path := range paths {
			w := serveRecorded(registry(g.Snapshot()), httptest.NewRequest(http.MethodGet, home+path, nil))
			if w.Code != want[path].StatusCode || w.Body.String() != want[path].body {
				t.Errorf("%s: got %d", path, w.Code)
			}
		}
	})
}

// What peers got wrong, in one place: no answer says where files are or what
// runs, and no request can make it.
func TestAnswersKeepTheServersSecrets(t *testing.T) {
	tree, paths := everything(t)
	s := serve(t, registry(scan(t, tree)))
	const token = "s3cret"
	for _, path := range append(paths, "/v1/mirror/x/y/z/"+token, "/v1/providers/"+token) {
		a := s.get(path+"?token="+token, "Authorization: Bearer "+token)
		if text := fmt.Sprint(a.Header, a.body); strings.Contains(text, token) || strings.Contains(text, "goroutine") || strings.Contains(text, ".go:") {
			t.Errorf("%s: got %s", path, text)
		}
	}
}
