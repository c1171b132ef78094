package handlers_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
)

func TestMethods(t *testing.T) {
	files, paths := everything(t)
	s := serve(t, registry(scan(t, files)))
	for _, path := range paths {
		s.rule("HEAD is GET without a body: "+path, func(t *testing.T, s *site) {
			get, head := s.get(path), s.do(http.MethodHead, home+path)
			get.Header.Del("Date")
			head.Header.Del("Date")
			if got, want := fmt.Sprint(head.StatusCode, head.Header), fmt.Sprint(get.StatusCode, get.Header); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			if head.body != "" {
				t.Errorf("got %q", head.body)
			}
		})
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions, "PROPFIND"} {
			s.rule(method+" is 405: "+path, func(t *testing.T, s *site) {
				a := s.do(method, home+path)
				mustRefuse(t, a, http.StatusMethodNotAllowed)
				if got := a.Header.Get("Allow"); got != "GET, HEAD" {
					t.Errorf("Allow is %q", got)
				}
			})
		}
	}
	s.rule("other methods on other paths fall through", func(t *testing.T, s *site) {
		if a := s.do(http.MethodPost, home+"/login"); a.StatusCode != fallenThrough {
			t.Errorf("got %d", a.StatusCode)
		}
	})
}

func TestValidators(t *testing.T) {
	files, paths := everything(t)
	s := serve(t, registry(scan(t, files)))
	for _, path := range paths {
		a := s.get(path)
		etag := a.Header.Get("Etag")
		if a.StatusCode != http.StatusOK {
			continue
		}
		s.rule("the ETag is strong: "+path, func(t *testing.T, s *site) {
			if len(etag) < 3 || etag[0] != '"' || etag[len(etag)-1] != '"' || strings.ContainsAny(etag[1:len(etag)-1], "\", ") {
				t.Errorf("got %s", etag)
			}
		})
		for _, header := range []string{etag, "W/" + etag, "*", `"a", ` + etag, `"a",W/"b" , W/` + etag} {
			for _, method := range []string{http.MethodGet, http.MethodHead} {
				s.rule(method+" with If-None-Match "+header+" is 304: "+path, func(t *testing.T, s *site) {
					n := s.do(method, home+path, "If-None-Match: "+header)
					if n.StatusCode != http.StatusNotModified || n.body != "" || n.Header.Get("Etag") != etag || n.Header.Get("Content-Type") != "" {
						t.Errorf("got %d %q with %v", n.StatusCode, n.body, n.Header)
					}
					if got, want := n.Header.Get("Cache-Control"), a.Header.Get("Cache-Control"); got != want {
						t.Errorf("Cache-Control is %q, want %q", got, want)
					}
				})
			}
		}
		for _, header := range []string{`"another"`, `"a", "b"`, `""`, ",", strings.Trim(etag, `"`), `W/` + etag[:5] + `"`} {
			s.rule("If-None-Match "+header+" is 200: "+path, func(t *testing.T, s *site) {
				if n := s.get(path, "If-None-Match: "+header); n.StatusCode != http.StatusOK || n.body != a.body {
					t.Errorf("got %d", n.StatusCode)
				}
			})
		}
		s.rule("Cache-Control depends on whether it may change: "+path, func(t *testing.T, s *site) {
			want := "no-cache"
			if strings.HasSuffix(path, ".zip") || strings.HasSuffix(path, "/1.0.0/archive.tar.gz") { // the other is packed from a folder, which may be edited
				want = "public, max-age=31536000, immutable"
			}
			if got := a.Header.Get("Cache-Control"); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
	s.rule("an error has no validator and is not cached", func(t *testing.T, s *site) {
		for _, path := range []string{"/v1/providers/acme/none/versions", "/v1/mirror/" + ownHost + "/acme/demo/none.zip", "/v1/modules/acme/vpc/aws/9.9.9/archive.zip"} {
			a := s.get(path, "If-None-Match: *")
			mustRefuse(t, a, http.StatusNotFound)
			if a.Header.Get("Etag") != "" || a.Header.Get("Cache-Control") != "no-cache" {
				t.Errorf("%s: got %v", path, a.Header)
			}
		}
	})
	s.rule("after another scan, the ETag is the same if the bytes are", func(t *testing.T, s *site) {
		files.Provider("acme/demo", "1.1.0", "linux_amd64")
		other := serve(t, registry(scan(t, files)))
		for path, same := range map[string]bool{
			"/v1/providers/acme/demo/versions":                           false,
			"/v1/mirror/" + ownHost + "/acme/demo/index.json":            false,
			"/v1/mirror/registry.terraform.io/hashicorp/null/index.json": true,
			"/v1/modules/acme/vpc/aws/versions":                          true,
			"/v1/modules/acme/vpc/aws/1.10.0/archive.tar.gz":             true,
		} {
			if got := s.get(path).Header.Get("Etag") == other.get(path).Header.Get("Etag"); got != same {
				t.Errorf("%s: the ETag is the same: %v", path, got)
			}
		}
	})
}

// A file that changes after a scan is never served as the verified one.
func TestChangedFiles(t *testing.T) {
	const zip = "providers/acme/demo/terraform-provider-demo_1.0.0_linux_amd64.zip"
	const path = "/v1/mirror/" + ownHost + "/acme/demo/terraform-provider-demo_1.0.0_linux_amd64.zip"
	for rule, change := range map[string]func(*indextest.Tree){
		"a longer file":  func(files *indextest.Tree) { files.Write(zip, files.Read(zip)+"x") },
		"a removed file": func(files *indextest.Tree) { files.Remove(zip) },
		"a file of the same size and another time": func(files *indextest.Tree) {
			if err := afero.WriteFile(files.Fs, zip, []byte(files.Read(zip)), 0o644); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(rule+" is 503 and triggers a scan", func(t *testing.T) {
			files := indextest.New(t)
			files.Provider("acme/demo", "1.0.0", "linux_amd64")
			changed := 0
			g := registry(scan(t, files))
			g.Changed = func(...string) { changed++ }
			s := serve(t, g)
			s.install("acme/demo/1.0.0/download/linux/amd64")
			change(files)

			a := s.get(path)
			mustRefuse(t, a, http.StatusServiceUnavailable)
			if a.Header.Get("Retry-After") != "1" || a.Header.Get("Etag") != "" || a.Header.Get("Cache-Control") != "no-cache" {
				t.Errorf("got %v", a.Header)
			}
			if changed != 1 {
				t.Errorf("Changed was called %d times", changed)
			}
			g.Changed = nil // a nil Changed is allowed
			mustRefuse(t, s.get(path), http.StatusServiceUnavailable)
		})
	}
}

// A file that is gone although a scan keeps it, as on a volume that is not mounted, has each request
// for it cause one scan. The requests would otherwise have one scan follow the other.
func TestAChangedFileCausesOneScan(t *testing.T) {
	const zip = "providers/acme/demo/terraform-provider-demo_1.0.0_linux_amd64.zip"
	files := indextest.New(t)
	files.Provider("acme/demo", "1.0.0", "linux_amd64")
	same := []*index.Snapshot{scan(t, files), scan(t, files), scan(t, files)}
	files.Remove(zip)
	changed, waited := 0, 0
	g := registry(same[0])
	g.Changed = func(...string) { changed++ }
	g.Next = func(context.Context, *index.Snapshot, ...index.Selection) *index.Snapshot {
		if waited++; waited < len(same) {
			return same[waited]
		}
		return nil // it has waited long enough
	}
	s := serve(t, g)
	mustRefuse(t, s.get("/v1/mirror/"+ownHost+"/acme/demo/terraform-provider-demo_1.0.0_linux_amd64.zip"), http.StatusServiceUnavailable)
	if changed != 1 || waited != len(same) {
		t.Errorf("a request for %d snapshots has caused %d scans", waited, changed)
	}
}

// unreadable fails to open a file, with an error that names its path.
type unreadable struct{ afero.Fs }

func (u unreadable) Open(name string) (afero.File, error) {
	if strings.HasSuffix(name, ".zip") {
		return nil, &fs.PathError{Op: "open", Path: "/srv/secret/" + name, Err: fs.ErrPermission}
	}
	return u.Fs.Open(name)
}

func TestFailuresAreLoggedAndNotExplained(t *testing.T) {
	files := indextest.New(t)
	files.Provider("acme/demo", "1.0.0", "linux_amd64")
	broken := indextest.On(t, &switchFs{Fs: files.Fs})
	s := scan(t, broken)
	broken.Fs.(*switchFs).Fs = unreadable{files.Fs}

	var log bytes.Buffer
	g := registry(s)
	g.Logger = slog.New(slog.NewTextHandler(&log, nil))
	a := serve(t, g).get("/v1/mirror/" + ownHost + "/acme/demo/terraform-provider-demo_1.0.0_linux_amd64.zip")
	mustRefuse(t, a, http.StatusServiceUnavailable)
	if strings.Contains(a.body, "secret") || strings.Contains(a.body, "providers/") {
		t.Errorf("the answer has the path of a file: %s", a.body)
	}
	if !strings.Contains(log.String(), "status=503") {
		t.Errorf("the log has %q", log.String())
	}
}

// switchFs is a file system that can be replaced by another.
type switchFs struct{ afero.Fs }

func (s *switchFs) Open(name string) (afero.File, error) { return s.Fs.Open(name) }

// There is no snapshot while the first scan runs.
func TestBeforeTheFirstScan(t *testing.T) {
	s := serve(t, registry((*index.Snapshot)(nil)))
	_, paths := everything(t)
	for _, path := range paths[1:] {
		s.rule("it is 503: "+path, func(t *testing.T, s *site) {
			a := s.get(path)
			mustRefuse(t, a, http.StatusServiceUnavailable)
			if got := a.Header.Get("Retry-After"); got != "1" {
				t.Errorf("Retry-After is %q", got)
			}
		})
	}
}

// everything returns a tree with providers and modules, and a path of each kind.
func everything(t testing.TB) (*indextest.Tree, []string) {
	t.Helper()
	files := moduleTree(t)
	files.Provider("acme/demo", "1.0.0", "linux_amd64", "darwin_arm64").Signed(indextest.NewPublisher(t))
	files.Provider("registry.terraform.io/hashicorp/null", "3.2.0", "linux_amd64")
	return files, []string{
		wellKnown,
		"/v1/providers/acme/demo/versions",
		"/v1/providers/acme/demo/1.0.0/download/linux/amd64",
		"/v1/mirror/registry.terraform.io/hashicorp/null/index.json",
		"/v1/mirror/registry.terraform.io/hashicorp/null/3.2.0.json",
		"/v1/mirror/registry.terraform.io/hashicorp/null/0.0.1.json",
		"/v1/mirror/" + ownHost + "/acme/demo/index.json",
		"/v1/mirror/" + ownHost + "/acme/demo/terraform-provider-demo_1.0.0_SHA256SUMS",
		"/v1/mirror/" + ownHost + "/acme/demo/terraform-provider-demo_1.0.0_SHA256SUMS.sig",
		"/v1/mirror/" + ownHost + "/acme/demo/terraform-provider-demo_1.0.0_linux_amd64.zip",
		"/v1/modules/acme/vpc/aws/versions",
		"/v1/modules/acme/vpc/aws/1.0.0/download",
		"/v1/modules/acme/vpc/aws/1.0.0/archive.tar.gz",
		"/v1/modules/acme/vpc/aws/1.2.0/archive.zip",
		"/v1/modules/acme/vpc/aws/1.10.0/archive.tar.gz",
		"/v1/providers/acme/none/versions",
		"/v1/modules/acme/none/aws/1.0.0/download",
		"/v1/modules?limit=1",
		"/v1/modules/acme/vpc",
		"/v1/modules/search?q=vpc",
		"/v1/modules/acme/vpc/aws",
		"/v1/modules/acme/vpc/aws/1.0.0",
		"/v1/modules/acme/vpc/aws/9.9.9",
		"/v1/providers",
		"/v1/providers/search?q=%27demo%27",
		"/v1/providers/acme/demo/1.0.0",
		"/v1/registries/registry.terraform.io/providers/hashicorp/null/versions",
		"/v1/registries/registry.terraform.io/providers/hashicorp/null/3.2.0/download/linux/amd64",
		"/v1/registries/registry.terraform.io/providers?limit=1",
		"/v1/registries/registry.terraform.io/modules/acme/vpc/aws/versions",
		"/v1/registries/" + ownHost + "/modules/acme/vpc/aws/1.0.0/download",
	}
}

// Checklist, group J.
func TestCrossCutting(t *testing.T) {
	files, paths := everything(t)
	g := registry(scan(t, files))
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
	s.rule("107 public answers do not depend on the client", func(t *testing.T, s *site) {
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
					path := paths[(i*5+client*3)%len(paths)] // 5 and 26 are coprime: each once
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
	s.rule("110 no request needs another before it", func(t *testing.T, s *site) {
		for _, path := range paths {
			w := serveRecorded(registry(g.Snapshot()), httptest.NewRequest(http.MethodGet, home+path, nil))
			if w.Code != want[path].StatusCode || w.Body.String() != want[path].body {
				t.Errorf("%s: got %d", path, w.Code)
			}
		}
	})
}

// No answer repeats credentials or has a part of a stack trace.
func TestAnswersHaveNoSecrets(t *testing.T) {
	files, paths := everything(t)
	s := serve(t, registry(scan(t, files)))
	const token = "s3cret"
	for _, path := range append(paths, "/v1/mirror/x/y/z/"+token, "/v1/providers/"+token) {
		a := s.get(path+"?token="+token, "Authorization: Bearer "+token)
		if text := fmt.Sprint(a.Header, a.body); strings.Contains(text, token) || strings.Contains(text, "goroutine") || strings.Contains(text, ".go:") {
			t.Errorf("%s: got %s", path, text)
		}
	}
}
