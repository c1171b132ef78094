package handlers_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/publish"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

const (
	zipPath       = "/v1/providers/acme/demo/1.2.0/terraform-provider-demo_1.2.0_linux_amd64.zip"
	releasePath   = "/v1/providers/acme/demo/1.2.0/"
	modulePath    = "/v1/modules/acme/vpc/aws/1.0.0.tar.gz"
	publisherOnly = "Authorization: Bearer publisher" // publishes in acme, reads nothing
)

// A shelf is a Publisher that reads each body, and returns the result of put.
type shelf struct {
	put     func(publish.File, publish.Upload) (publish.Result, error) // nil: it is published
	failure error                                                      // the error of State, Drop and Metadata

	file   publish.File
	upload publish.Upload
	body   string
}

func (s *shelf) Put(_ context.Context, f publish.File, u publish.Upload) (publish.Result, error) {
	s.file, s.upload = f, u
	if s.put != nil {
		return s.put(f, u)
	}
	body, err := io.ReadAll(u.Body)
	if err != nil {
		return publish.Result{}, errors.Join(publish.ErrInterrupted, err)
	}
	s.body = string(body)
	return publish.Result{Outcome: publish.Added, Publication: publication(f)}, nil
}

func publication(f publish.File) wire.Publication {
	return wire.Publication{Status: wire.Published, Address: f.Address.String(), Version: f.Version, File: f.Name}
}

func (s *shelf) State(_ context.Context, a address.Address, version string) (wire.Publication, error) {
	return wire.Publication{Status: wire.Staged, Address: a.String(), Version: version, Missing: []string{"SHA256SUMS"}}, s.failure
}

func (s *shelf) Metadata(address.Address) ([]byte, error) { return []byte("owner = 1"), s.failure }

func (s *shelf) Drop(context.Context, address.Address, string) error { return s.failure }

// publishing returns a registry in which two users may publish in acme, and only one of
// them may also read there. A third user only reads, a fourth publishes elsewhere, and
// a fifth manages acme, also its mirrored packages.
func publishing(t testing.TB, p handlers.Publisher) *handlers.Registry {
	t.Helper()
	g := privately(t, registry(scan(t, privateTree(t))),
		"allow anonymous read open", "allow reader read acme", "allow both read acme", "allow both publish acme",
		"allow publisher publish acme", "allow elsewhere publish open",
		"allow manager manage acme registry.terraform.io/acme")
	known := g.Authenticate
	g.Authenticate = func(r *http.Request) (access.Subject, error) {
		if _, token, _ := strings.Cut(r.Header.Get("Authorization"), "Bearer "); slices.Contains([]string{"publisher", "both", "elsewhere", "manager"}, token) {
			return access.Subject{ID: token}, nil
		}
		return known(r)
	}
	g.Publisher = p
	return g
}

// sent sends a body to a registry without a network. A Content-Length in the headers
// becomes the length of the request.
func sent(g *handlers.Registry, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := withHeaders(requestFor(method, path), headers...)
	r.Host, r.Body, r.ContentLength = ownHost, io.NopCloser(strings.NewReader(body)), int64(len(body))
	return serveRecorded(g, r)
}

func TestWhatCanBePublished(t *testing.T) {
	tests := []struct {
		path                             string
		kind                             publish.Kind
		address, version, name, platform string
	}{
		{zipPath, publish.Package, "acme/demo", "1.2.0", "terraform-provider-demo_1.2.0_linux_amd64.zip", "linux_amd64"},
		{releasePath + "terraform-provider-demo_1.2.0_SHA256SUMS", publish.Checksums, "acme/demo", "1.2.0", "terraform-provider-demo_1.2.0_SHA256SUMS", ""},
		{releasePath + "terraform-provider-demo_1.2.0_SHA256SUMS.sig", publish.Signature, "acme/demo", "1.2.0", "terraform-provider-demo_1.2.0_SHA256SUMS.sig", ""},
		{releasePath + "terraform-provider-demo_1.2.0_manifest.json", publish.Manifest, "acme/demo", "1.2.0", "terraform-provider-demo_1.2.0_manifest.json", ""},
		{releasePath + "docs.zip", publish.Docs, "acme/demo", "1.2.0", "docs.zip", ""},
		{releasePath + "docs.tar.gz", publish.Docs, "acme/demo", "1.2.0", "docs.tar.gz", ""},
		{"/v1/providers/acme/demo/registry.hcl", publish.Metadata, "acme/demo", "", "registry.hcl", ""},
		{"/v1/providers/ACME/Demo/1.2.0+b.1/terraform-provider-demo_1.2.0%2Bb.1_SHA256SUMS", publish.Checksums, "acme/demo", "1.2.0+b.1", "terraform-provider-demo_1.2.0+b.1_SHA256SUMS", ""},
		{modulePath, publish.Module, "acme/vpc/aws", "1.0.0", "1.0.0.tar.gz", ""},
		{"/v1/modules/acme/vpc/aws/v1.0.0.zip", publish.Module, "acme/vpc/aws", "1.0.0", "1.0.0.zip", ""},
		{"/v1/modules/acme/vpc/aws/registry.hcl", publish.Metadata, "acme/vpc/aws", "", "registry.hcl", ""},
		{publicPath + "/modules/acme/vpc/aws/registry.hcl", publish.Metadata, publicHost + "/acme/vpc/aws", "", "registry.hcl", ""},
	}
	for _, test := range tests {
		t.Run(test.path, func(t *testing.T) {
			s := new(shelf)
			g := publishing(t, s)
			var told handlers.Exchange
			g.Answered = func(_ *http.Request, e *handlers.Exchange) { told = *e }
			credentials, subject := publisherOnly, "publisher"
			if test.kind == publish.Metadata {
				credentials, subject = managerOnly, "manager"
			}
			a := sent(g, http.MethodPut, test.path, "content", credentials)
			if a.Code != http.StatusCreated || s.body != "content" {
				t.Fatalf("got %d %s, and the body is %q", a.Code, a.Body, s.body)
			}
			if s.upload.Subject != subject {
				t.Errorf("it is sent by %q", s.upload.Subject)
			}
			if f := s.file; f.Kind != test.kind || f.Address.String() != test.address || f.Version != test.version || f.Name != test.name {
				t.Errorf("got %+v", f)
			}
			location := ""
			if test.version != "" {
				location = "/v1/providers/acme/demo/" + test.version
				if test.kind == publish.Module {
					location = "/v1/modules/acme/vpc/aws/" + test.version
				}
			}
			if got := a.Header().Get("Location"); got != location {
				t.Errorf("Location is %q, want %q", got, location)
			}
			if told.Kind != handlers.KindPublish || told.Address() != test.address || told.Version != test.version || told.Platform != test.platform {
				t.Errorf("the exchange is %+v", told)
			}
			if u := told.Upload; u == nil || u.Kind != test.kind || u.Outcome != handlers.UploadPublished || u.Subject != subject || !slices.Equal(u.Files, []string{test.name}) {
				t.Errorf("the upload is %+v", u)
			}
		})
	}
}

// The answer says what is wrong with a path without reading the body. It does so for
// every client, since it does not depend on what exists.
func TestWhatCannotBePublished(t *testing.T) {
	tests := []struct {
		rule, path string
		status     int
	}{
		{"a file of another version", releasePath + "terraform-provider-demo_1.3.0_linux_amd64.zip", 422},
		{"a file of another provider", releasePath + "terraform-provider-other_1.2.0_linux_amd64.zip", 422},
		{"a file that is none of a release", releasePath + "README.md", 422},
		{"a version with a v", "/v1/providers/acme/demo/v1.2.0/terraform-provider-demo_v1.2.0_linux_amd64.zip", 422},
		{"a folder as a version", "/v1/providers/acme/demo/../docs.zip", 422},
		{"an invalid platform", releasePath + "terraform-provider-demo_1.2.0_linux.zip", 422},
		{"a package without a version in the path", "/v1/providers/acme/demo/terraform-provider-demo_1.2.0_linux_amd64.zip", 422},
		{"an invalid version of a module", "/v1/modules/acme/vpc/aws/one.zip", 422},
		{"another archive of a module", "/v1/modules/acme/vpc/aws/1.0.0.7z", 422},
		{"a hostname in place of a namespace", "/v1/providers/registry.terraform.io/demo/1.2.0/docs.zip", 422},
		{"localhost as a namespace", "/v1/providers/localhost/demo/1.2.0/docs.zip", 422},
		{"localhost as a module's namespace", "/v1/modules/localhost/vpc/aws/1.0.0.zip", 422},
		{"an escape out of the tree", "/v1/modules/%2e%2e/%2e%2e/aws/1.0.0.zip", 422},
		{"an empty namespace", "/v1/providers//demo/1.2.0/docs.zip", 422},
		{"an escaped slash", "/v1/modules/acme/vpc/aws/..%2f1.0.0.zip", 400},
		{"an escaped NUL", "/v1/modules/acme/vpc/aws/1.0.0.zip%00", 400},
		{"invalid UTF-8", "/v1/modules/acme/vpc/aws/%ff.zip", 400},
		{"a long name", "/v1/modules/acme/vpc/aws/" + strings.Repeat("1", 301) + ".zip", 405},
		{"a path that is too long", "/v1/providers/acme/demo/1.2.0/docs/docs.zip", 405},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			g := publishing(t, &shelf{put: func(publish.File, publish.Upload) (publish.Result, error) {
				t.Error("it is sent to the publisher")
				return publish.Result{}, nil
			}})
			for _, credentials := range []string{anonymous, publisherOnly} {
				r := sent(g, http.MethodPut, test.path, "content", credentials)
				mustRefuse(t, answer{r.Result(), r.Body.String()}, test.status)
			}
		})
	}
}

// A path for publishing accepts the spellings of versions that people and tags use.
// Other requests need the spelling of clients, and the answer names it.
func TestVersionsThatAreNotWrittenOut(t *testing.T) {
	s := new(shelf)
	g := publishing(t, s)
	for _, written := range []string{"v1.2.0", "1.2", "v1.2"} {
		path := "/v1/providers/acme/demo/" + written + "/"
		if a := sent(g, http.MethodPut, path+"docs.zip", "content", publisherOnly); a.Code != http.StatusCreated || s.file.Version != "1.2.0" {
			t.Errorf("PUT to %s: %d, of version %s", path, a.Code, s.file.Version)
		}
		if a := sent(g, http.MethodGet, path, "", publisherOnly); a.Code != http.StatusOK || !strings.Contains(a.Body.String(), `"version":"1.2.0"`) {
			t.Errorf("GET of %s: %d %s", path, a.Code, a.Body)
		}
		if a := sent(g, http.MethodDelete, path, "", publisherOnly); a.Code != http.StatusNoContent {
			t.Errorf("DELETE of %s: %d %s", path, a.Code, a.Body)
		}
		for _, path := range []string{
			"/v1/providers/acme/demo/" + written, "/v1/providers/acme/demo/" + written + "/download/linux/amd64", "/v1/mirror/registry.terraform.io/acme/demo/" + written + ".json",
			"/v1/modules/acme/vpc/aws/" + written, "/v1/modules/acme/vpc/aws/" + written + "/download",
		} {
			a := sent(g, http.MethodGet, path, "", "Authorization: Bearer both")
			if want := `{"errors":["versions are written out here: ask for 1.2.0"]}`; a.Code != http.StatusNotFound || a.Body.String() != want {
				t.Errorf("GET of %s: %d %s", path, a.Code, a.Body)
			}
		}
	}
}

// The rights to publish and to read are separate, and answers do not tell what exists.
func TestWhoPublishesWhat(t *testing.T) {
	s := serve(t, publishing(t, new(shelf)))
	users := []string{"", "garbage", "reader", "elsewhere", "publisher", "both"}
	const none, denied = http.StatusUnauthorized, http.StatusForbidden
	for _, request := range []struct {
		rule, method string
		paths        []string // of something that exists, and of something that does not
		status       int
	}{
		{"a package", http.MethodPut, []string{"/v1/providers/acme/demo/1.0.0/terraform-provider-demo_1.0.0_linux_amd64.zip", "/v1/providers/acme/none/1.0.0/terraform-provider-none_1.0.0_linux_amd64.zip"}, 201},
		{"a module", http.MethodPut, []string{"/v1/modules/acme/vpc/aws/1.0.0.zip", "/v1/modules/acme/none/aws/1.0.0.zip"}, 201},
		{"what is staged", http.MethodGet, []string{"/v1/providers/acme/demo/1.0.0/", "/v1/providers/acme/none/1.0.0/"}, 200},
		{"the header of what is staged", http.MethodHead, []string{"/v1/providers/acme/demo/1.0.0/", "/v1/providers/acme/none/1.0.0/"}, 200},
		{"dropping what is staged", http.MethodDelete, []string{"/v1/providers/acme/demo/1.0.0/", "/v1/providers/acme/none/1.0.0/"}, 204},
	} {
		s.rule(request.rule, func(t *testing.T, s *site) {
			for i, want := range []int{none, none, denied, denied, request.status, request.status} {
				var seen []string
				for _, path := range request.paths {
					a := s.do(request.method, home+path, "Authorization: Bearer "+users[i])
					if a.StatusCode != want {
						t.Errorf("%q gets %d %s, want %d: %s", users[i], a.StatusCode, a.body, want, path)
					}
					if (a.StatusCode == none) != (a.Header.Get("Www-Authenticate") != "") {
						t.Errorf("%d has the challenge %q", a.StatusCode, a.Header.Get("Www-Authenticate"))
					}
					a.Header.Del("Date")
					seen = append(seen, strings.ReplaceAll(fmt.Sprint(a.Header, a.body), "none", "demo"))
				}
				if want >= 400 && !strings.Contains(request.paths[0], "vpc") && seen[0] != seen[1] {
					t.Errorf("%q is told what exists: %q", users[i], seen)
				}
			}
		})
	}
	s.rule("a signed link is no right to publish", func(t *testing.T, s *site) {
		const file = "/v1/mirror/-/acme/demo/terraform-provider-demo_1.0.0_linux_amd64.zip"
		var d download
		s.json("/v1/providers/acme/demo/1.0.0/download/linux/amd64", &d, reader)
		_, query, _ := strings.Cut(d.DownloadURL, "?")
		if a := s.get(file + "?" + query); a.StatusCode != http.StatusOK {
			t.Fatalf("it does not read: %d", a.StatusCode)
		}
		mustRefuse(t, s.do(http.MethodPut, home+zipPath+"?"+query), none)
		mustRefuse(t, s.do(http.MethodPut, home+zipPath+"?"+query, reader), denied)
		mustRefuse(t, s.do(http.MethodGet, home+releasePath+"?"+query), none)
	})
	s.rule("credentials that cannot be checked are 503", func(t *testing.T, s *site) {
		a := s.do(http.MethodPut, home+zipPath, "Authorization: Bearer unknowable")
		mustRefuse(t, a, http.StatusServiceUnavailable)
	})
	s.rule("without rules nobody publishes", func(t *testing.T, _ *site) {
		g := registry(scan(t, privateTree(t)))
		g.Publisher = new(shelf)
		a := serve(t, g).do(http.MethodPut, home+zipPath)
		mustRefuse(t, a, denied)
		if !strings.Contains(a.body, "allow ci publish acme") {
			t.Errorf("got %s", a.body)
		}
	})
}

func TestMethodsOfPublishing(t *testing.T) {
	files, paths := everything(t)
	g := registry(scan(t, files))
	g.Publisher = new(shelf)
	s := serve(t, g)
	allow := map[string]string{
		zipPath: "PUT", releasePath: "GET, HEAD, DELETE", modulePath: "GET, HEAD, PUT", "/v1/providers/acme/demo/registry.hcl": "GET, HEAD, PUT",
		"/v1/providers/acme/demo/versions": "GET, HEAD", "/v1/modules/acme/vpc/aws/download": "GET, HEAD", "/v1/mirror/-/acme/demo/docs.zip": "GET, HEAD",
		"/v1/modules/acme/vpc/aws/1.0.0/": "GET, HEAD", "/v1/providers/acme/demo/": "GET, HEAD, PUT", wellKnown: "GET, HEAD",
	}
	for path, want := range allow {
		for _, method := range []string{http.MethodPost, http.MethodPatch, http.MethodPut, http.MethodDelete, http.MethodOptions} {
			if slices.Contains(strings.Split(want, ", "), method) {
				continue
			}
			s.rule(method+" is 405: "+path, func(t *testing.T, s *site) {
				a := s.do(method, home+path)
				mustRefuse(t, a, http.StatusMethodNotAllowed)
				if got := a.Header.Get("Allow"); got != want {
					t.Errorf("Allow is %q, want %q", got, want)
				}
			})
		}
	}
	for _, method := range []string{http.MethodPost, http.MethodPatch, http.MethodPut, http.MethodDelete} {
		for _, path := range []string{"/v1/provider/acme/demo/1.0.0/" + "terraform-provider-demo_1.0.0_linux_amd64.zip", "/v1/x", "/v1/registries/", "/v1/registries/registry.terraform.io/x"} {
			s.rule(method+" below the prefix never reaches the next handler: "+path, func(t *testing.T, s *site) {
				a := s.do(method, home+path)
				mustRefuse(t, a, http.StatusNotFound)
				if !strings.Contains(a.body, "/v1/modules/NAMESPACE/NAME/SYSTEM/VERSION.tar.gz") {
					t.Errorf("got %s", a.body)
				}
				if a := s.get(path); a.StatusCode != fallenThrough {
					t.Errorf("GET is %d", a.StatusCode)
				}
			})
		}
	}
	for _, test := range []struct{ rule, method, path, says string }{
		{"what is staged is deleted with a slash at the end", http.MethodDelete, strings.TrimSuffix(releasePath, "/"), "a slash is missing"},
		{"a file of a release has a name", http.MethodPut, releasePath, "the name of the file is missing"},
		{"a file of a release has a name after a slash", http.MethodPut, strings.TrimSuffix(releasePath, "/"), "the name of the file is missing"},
		{"a module has a name", http.MethodPut, "/v1/modules/acme/vpc/aws", "the name of the file is missing"},
		{"a path with one name more says where files go", http.MethodPut, modulePath + "/x", "/v1/providers/NAMESPACE/TYPE/VERSION/FILE"},
		{"so does one that is only read", http.MethodPut, "/v1/modules/acme/vpc/aws/versions", "/v1/providers/NAMESPACE/TYPE/VERSION/FILE"},
	} {
		s.rule(test.rule, func(t *testing.T, s *site) {
			a := s.do(test.method, home+test.path)
			mustRefuse(t, a, http.StatusMethodNotAllowed)
			if !strings.Contains(a.body, test.says) {
				t.Errorf("got %s", a.body)
			}
		})
	}
	s.rule("GET of a path that takes files only is 405", func(t *testing.T, s *site) {
		a := s.get(zipPath)
		mustRefuse(t, a, http.StatusMethodNotAllowed)
		if got := a.Header.Get("Allow"); got != "PUT" {
			t.Errorf("Allow is %q", got)
		}
	})
	s.rule("what is read stays the same", func(t *testing.T, s *site) {
		off := serve(t, registry(g.Snapshot()))
		for _, path := range paths {
			if a, want := s.get(path), off.get(path); a.StatusCode != want.StatusCode || a.body != want.body || a.Header.Get("Etag") != want.Header.Get("Etag") {
				t.Errorf("%s: got %d %s", path, a.StatusCode, a.body)
			}
		}
	})
	s.rule("where publishing is off its paths are as any other", func(t *testing.T, _ *site) {
		off := serve(t, registry(g.Snapshot()))
		mustRefuse(t, off.get(releasePath), http.StatusNotFound)
		mustRefuse(t, off.get(zipPath), http.StatusNotFound)
		for _, path := range []string{releasePath, zipPath, modulePath} {
			a := off.do(http.MethodPut, home+path)
			mustRefuse(t, a, http.StatusMethodNotAllowed)
			if got := a.Header.Get("Allow"); got != "GET, HEAD" {
				t.Errorf("Allow is %q", got)
			}
		}
	})
}

// The answer to a file names other files only if they are published with it.
func TestFilesOfAnswersOfPublishing(t *testing.T) {
	for _, test := range []struct {
		rule    string
		outcome publish.Outcome
		want    string
	}{
		{"staged", publish.Waiting, ""},
		{"the last of a release", publish.Added, `,"files":[{"name":"SHA256SUMS","sha256":"","size":1}]`},
	} {
		g := publishing(t, &shelf{put: func(f publish.File, _ publish.Upload) (publish.Result, error) {
			p := publication(f)
			p.Files, p.Missing = []wire.PublishedFile{{Name: "SHA256SUMS", Size: 1}}, []string{"a.zip"}
			return publish.Result{Outcome: test.outcome, Publication: p}, nil
		}})
		want := `{"status":"published","address":"acme/demo","version":"1.2.0","file":"` + path.Base(zipPath) + `"` + test.want + `,"missing":["a.zip"]}` + "\n"
		if a := sent(g, http.MethodPut, zipPath, "content", publisherOnly); a.Body.String() != want {
			t.Errorf("%s: %s", test.rule, a.Body)
		}
	}
}

func TestAnswersOfPublishing(t *testing.T) {
	reasons := []string{"the first reason", "the second reason"}
	refusal := func(kind error) error { return &publish.Refusal{Kind: kind, Reasons: reasons} }
	secret := errors.New("open /srv/tree/secret: input/output error")
	tests := []struct {
		rule    string
		outcome publish.Outcome
		err     error
		status  int
		counted handlers.UploadOutcome
		errors  []string // nil: any
	}{
		{"published", publish.Added, nil, 201, handlers.UploadPublished, nil},
		{"staged", publish.Waiting, nil, 202, handlers.UploadStaged, nil},
		{"the same bytes", publish.Unchanged, nil, 200, handlers.UploadUnchanged, nil},
		{"refused, with each reason", 0, refusal(publish.ErrRefused), 422, handlers.UploadRefused, reasons},
		{"refused, without a reason", 0, publish.ErrRefused, 422, handlers.UploadRefused, nil},
		{"other bytes", 0, refusal(publish.ErrConflict), 409, handlers.UploadConflict, reasons},
		{"too large", 0, refusal(publish.ErrTooLarge), 413, handlers.UploadTooLarge, reasons},
		{"too much is staged", 0, refusal(publish.ErrNoRoom), 507, handlers.UploadDiskFull, reasons},
		{"an upload that ended early", 0, fmt.Errorf("%w: %w", publish.ErrInterrupted, secret), 400, handlers.UploadInterrupted, []string{publish.ErrInterrupted.Error()}},
		{"no room", 0, fmt.Errorf("%w: %w", tree.ErrDiskFull, secret), 507, handlers.UploadDiskFull, nil},
		{"another registry.hcl than was meant", 0, publish.ErrChanged, 412, handlers.UploadConflict, []string{publish.ErrChanged.Error()}},
		{"a tree that cannot be written to", 0, fmt.Errorf("%w: %w", tree.ErrNotWritable, secret), 503, handlers.UploadUnavailable, nil},
		{"a store that fails", 0, fmt.Errorf("%w: %w", tree.ErrStore, secret), 503, handlers.UploadUnavailable, nil},
		{"no lock", 0, fmt.Errorf("%w: %w", publish.ErrUnavailable, secret), 503, handlers.UploadUnavailable, nil},
		{"a client that has left", 0, context.Canceled, 503, handlers.UploadUnavailable, nil},
		{"another failure", 0, secret, 500, handlers.UploadFailed, nil},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			g := publishing(t, &shelf{put: func(f publish.File, _ publish.Upload) (publish.Result, error) {
				return publish.Result{Outcome: test.outcome, Publication: publication(f)}, test.err
			}})
			var told handlers.Exchange
			g.Answered = func(_ *http.Request, e *handlers.Exchange) { told = *e }
			a := sent(g, http.MethodPut, zipPath, "content", publisherOnly)
			if a.Code != test.status || told.Upload == nil || told.Upload.Outcome != test.counted {
				t.Fatalf("got %d %s, counted as %v", a.Code, a.Body, told.Upload)
			}
			if got := a.Header().Get("Content-Length"); got != fmt.Sprint(a.Body.Len()) {
				t.Errorf("Content-Length is %s for %d bytes", got, a.Body.Len())
			}
			if (test.status == 503) != (a.Header().Get("Retry-After") != "") {
				t.Errorf("Retry-After is %q", a.Header().Get("Retry-After"))
			}
			if body := a.Body.String(); strings.Count(body, "\n") != 1 || !strings.HasSuffix(body, "\n") {
				t.Errorf("it is not one line: %q", body)
			}
			if strings.Contains(a.Body.String(), "/srv") {
				t.Errorf("it tells %s", a.Body)
			}
			if test.err == nil {
				if got := a.Header().Get("Cache-Control"); got != "no-store" {
					t.Errorf("Cache-Control is %q", got)
				}
				var p wire.Publication
				if err := json.Unmarshal(a.Body.Bytes(), &p); err != nil || p.Address != "acme/demo" {
					t.Errorf("got %s", a.Body)
				}
				return
			}
			var document struct{ Errors []string }
			if err := json.Unmarshal(a.Body.Bytes(), &document); err != nil || len(document.Errors) == 0 || test.errors != nil && !slices.Equal(document.Errors, test.errors) {
				t.Errorf("got %s", a.Body)
			}
			t.Run("for clients of Artifactory", func(t *testing.T) {
				a := sent(g, http.MethodPut, zipPath, "content", publisherOnly, "X-Checksum-Sha1: da39a3ee5e6b4b0d3255bfef95601890afd80709")
				var inTheirs struct {
					Errors []struct {
						Status  int
						Message string
					}
				}
				if err := json.Unmarshal(a.Body.Bytes(), &inTheirs); err != nil || len(inTheirs.Errors) != len(document.Errors) {
					t.Fatalf("got %s", a.Body)
				}
				for i, e := range inTheirs.Errors {
					if e.Status != test.status || e.Message != document.Errors[i] {
						t.Errorf("got %+v", e)
					}
				}
			})
		})
	}
}

func TestStaging(t *testing.T) {
	g := publishing(t, new(shelf))
	s := serve(t, g)
	s.rule("the state of a version", func(t *testing.T, s *site) {
		var p wire.Publication
		a := s.json(releasePath, &p, publisherOnly)
		if p.Status != wire.Staged || p.Address != "acme/demo" || p.Version != "1.2.0" || a.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("got %s with %v", a.body, a.Header)
		}
	})
	s.rule("no version", func(t *testing.T, s *site) {
		for _, version := range []string{"..", "1.2.3.4", "v", "1.2.0%20"} {
			for _, method := range []string{http.MethodGet, http.MethodDelete} {
				a := serveRecorded(g, withHeaders(requestFor(method, "/v1/providers/acme/demo/"+version+"/"), publisherOnly))
				mustRefuse(t, answer{a.Result(), a.Body.String()}, http.StatusNotFound)
			}
		}
	})
	s.rule("a hostname in place of a namespace", func(t *testing.T, _ *site) {
		g := privately(t, registry(g.Snapshot()), "allow reader publish *")
		g.Publisher = new(shelf)
		a := serve(t, g).get("/v1/providers/localhost/demo/1.2.0/", reader)
		mustRefuse(t, a, http.StatusNotFound)
	})
	s.rule("nothing of the version", func(t *testing.T, _ *site) {
		s := serve(t, publishing(t, &shelf{failure: publish.ErrNothing}))
		mustRefuse(t, s.get(releasePath, publisherOnly), http.StatusNotFound)
		mustRefuse(t, s.do(http.MethodDelete, home+releasePath, publisherOnly), http.StatusNotFound)
	})
}

func TestUploadHeader(t *testing.T) {
	sum, other := sha256.Sum256([]byte("content")), sha256.Sum256([]byte("other"))
	encoded, encodedOther := base64.StdEncoding.EncodeToString(sum[:]), base64.StdEncoding.EncodeToString(other[:])
	hex := wire.SHA256(sum).String()
	tests := []struct {
		rule    string
		headers []string
		want    wire.SHA256
		status  int
	}{
		{"none", nil, wire.SHA256{}, 201},
		{"GoReleaser's and Artifactory's", []string{"X-Checksum-SHA256: " + hex}, sum, 201},
		{"in capitals", []string{"X-Checksum-Sha256: " + strings.ToUpper(hex)}, sum, 201},
		{"RFC 3230", []string{"Digest: SHA-256=" + encoded}, sum, 201},
		{"RFC 3230, in a list", []string{"Digest: unixsum=30637, sha-256=" + encoded}, sum, 201},
		{"RFC 9530, of the content", []string{"Content-Digest: sha-256=:" + encoded + ":"}, sum, 201},
		{"RFC 9530, of the representation", []string{"Repr-Digest: sha-512=:AAAA:, sha-256=:" + encoded + ":"}, sum, 201},
		{"all the same", []string{"X-Checksum-Sha256: " + hex, "Digest: sha-256=" + encoded, "Content-Digest: sha-256=:" + encoded + ":", "Repr-Digest: sha-256=:" + encoded + ":"}, sum, 201},
		{"other algorithms only", []string{"Digest: md5=AAAA", "X-Checksum-Md5: 00", "X-Checksum-Sha1: 00"}, wire.SHA256{}, 201},
		{"two that differ", []string{"X-Checksum-Sha256: " + hex, "Digest: sha-256=" + encodedOther}, sum, 400},
		{"two in one field that differ", []string{"Digest: sha-256=" + encoded + ",sha-256=" + encodedOther}, sum, 400},
		{"not hexadecimal", []string{"X-Checksum-Sha256: " + encoded}, sum, 400},
		{"too short", []string{"X-Checksum-Sha256: " + hex[:62]}, sum, 400},
		{"an empty digest", []string{"Digest: sha-256="}, sum, 400},
		{"not base64", []string{"Digest: sha-256=" + hex}, sum, 400},
		{"RFC 9530 without colons", []string{"Content-Digest: sha-256=" + encoded}, sum, 400},
		{"one colon", []string{"Repr-Digest: sha-256=:"}, sum, 400},
		{"a part of a file", []string{"Content-Range: bytes 0-6/100"}, sum, 400},
		{"a compressed file", []string{"Content-Encoding: gzip"}, sum, 422},
		{"a file as it is", []string{"Content-Encoding: identity"}, wire.SHA256{}, 201},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			s := new(shelf)
			a := sent(publishing(t, s), http.MethodPut, zipPath, "content", append(test.headers, publisherOnly)...)
			if a.Code != test.status {
				t.Fatalf("got %d %s, want %d", a.Code, a.Body, test.status)
			}
			if test.status == 201 && (s.upload.SHA256 != test.want || s.upload.Size != 7 || s.upload.Bodiless) {
				t.Errorf("got %+v", s.upload)
			}
		})
	}
}

// A file that looks like a secret is accepted if its publisher permits it.
func TestAllowingSecrets(t *testing.T) {
	for field, want := range map[string]bool{"": false, "1": true, "true": true, "0": false, "yes please": false} {
		s := new(shelf)
		headers := []string{publisherOnly}
		if field != "" {
			headers = append(headers, "X-Allow-Secrets: "+field)
		}
		if a := sent(publishing(t, s), http.MethodPut, modulePath, "content", headers...); a.Code != http.StatusCreated || s.upload.AllowSecrets != want {
			t.Errorf("%q: got %d, and they are allowed: %t", field, a.Code, s.upload.AllowSecrets)
		}
	}
}

// Clients of Artifactory ask for a file by its checksum before they send it.
func TestChecksumDeploy(t *testing.T) {
	const deploy, sum = "X-Checksum-Deploy: true", "X-Checksum-Sha256: ed7002b439e9ac845f22357d822bac1444730fbdb6016d3ec9432297b9ec9f73"
	present := false
	s := &shelf{put: func(f publish.File, u publish.Upload) (publish.Result, error) {
		if !u.Bodiless {
			t.Error("the body is read")
		}
		if !present {
			return publish.Result{}, publish.ErrNothing
		}
		return publish.Result{Outcome: publish.Unchanged, Publication: publication(f)}, nil
	}}
	g := publishing(t, s)
	var told handlers.Exchange
	g.Answered = func(_ *http.Request, e *handlers.Exchange) { told = *e }
	for _, test := range []struct {
		rule    string
		present bool
		headers []string
		status  int
	}{
		{"not there", false, []string{deploy, sum}, 404},
		{"there", true, []string{deploy, sum}, 200},
		{"by another checksum", true, []string{deploy, "X-Checksum-Sha1: da39a3ee5e6b4b0d3255bfef95601890afd80709"}, 404},
	} {
		t.Run(test.rule, func(t *testing.T) {
			present = test.present
			a := sent(g, http.MethodPut, zipPath, "", append(test.headers, publisherOnly)...)
			if a.Code != test.status {
				t.Errorf("got %d %s, want %d", a.Code, a.Body, test.status)
			}
			if counted := told.Upload != nil; counted != (test.status == 200) {
				t.Errorf("it is counted as an upload: %v", counted)
			}
		})
	}
}

// dial connects to a server and sends text as it is.
func dial(t *testing.T, addr, text string) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(time.Minute)) // only a failing test takes as long
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	return conn, bufio.NewReader(conn)
}

// A client that asks first is asked for the body only if the body is needed.
func TestExpectContinue(t *testing.T) {
	unread := func(f publish.File, _ publish.Upload) (publish.Result, error) {
		return publish.Result{Outcome: publish.Unchanged, Publication: publication(f)}, nil
	}
	for _, test := range []struct {
		rule, path, header string
		put                func(publish.File, publish.Upload) (publish.Result, error)
		status             int
	}{
		{"it is needed", zipPath, publisherOnly, nil, 100},
		{"the bytes are there", zipPath, publisherOnly, unread, 200},
		{"without credentials", zipPath, "X: y", nil, 401},
		{"without the right", zipPath, reader, nil, 403},
		{"an invalid name", releasePath + "x", publisherOnly, nil, 422},
		{"a malformed header", zipPath, publisherOnly + "\r\nDigest: sha-256=x", nil, 400},
	} {
		t.Run(test.rule, func(t *testing.T) {
			server := httptest.NewServer(handler{publishing(t, &shelf{put: test.put})})
			t.Cleanup(server.Close)
			conn, received := dial(t, server.Listener.Addr().String(), "PUT "+test.path+" HTTP/1.1\r\nHost: "+ownHost+"\r\nExpect: 100-continue\r\nContent-Length: 7\r\n"+test.header+"\r\n\r\n")
			a, err := http.ReadResponse(received, nil)
			if err != nil || a.StatusCode != test.status {
				t.Fatalf("got %v and error %v, want %d", a, err, test.status)
			}
			if test.status != 100 {
				return
			}
			io.WriteString(conn, "content")
			if a, err := http.ReadResponse(received, nil); err != nil || a.StatusCode != http.StatusCreated {
				t.Errorf("got %v and error %v", a, err)
			}
		})
	}
}

// A client need not wait for an answer to its Expect, and many wait only for a second.
func TestBodySentUnasked(t *testing.T) {
	g := publishing(t, new(shelf))
	synctest.Test(t, func(t *testing.T) {
		conn, end := servePipe(handler{g})
		defer end()
		begun := time.Now()
		io.WriteString(conn, "PUT "+zipPath+" HTTP/1.1\r\nHost: "+ownHost+"\r\nExpect: 100-continue\r\nContent-Length: 7\r\n\r\n")
		a, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || a.StatusCode != http.StatusUnauthorized || time.Since(begun) > 0 {
			t.Fatalf("got %v and error %v after %v", a, err, time.Since(begun))
		}
		synctest.Wait() // the server does nothing more by itself
		if _, err := io.WriteString(conn, "content"); err != nil {
			t.Errorf("sending the body: %v", err)
		}
	})
}

// If the answer needs no body, a client that sends a large one without asking sees the
// answer.
func TestEarlyAnswer(t *testing.T) {
	for version, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2.0": true} {
		t.Run(version, func(t *testing.T) {
			s := serveOver(t, publishing(t, new(shelf)), http2)
			for _, size := range []int64{100 << 10, 64 << 20} {
				r, err := http.NewRequest(http.MethodPut, home+zipPath, io.LimitReader(zeros{}, size))
				if err != nil {
					t.Fatal(err)
				}
				r.ContentLength = size
				mustRefuse(t, s.send(r), http.StatusUnauthorized)
			}
		})
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// A pause is a part of a body for which nothing is sent.
type pause time.Duration

func (p pause) Read([]byte) (int, error) {
	time.Sleep(time.Duration(p))
	return 0, io.EOF
}

// servePipe serves one connection without a network, in a bubble of synctest.
func servePipe(h http.Handler) (conn net.Conn, end func()) {
	l := pipeListener{make(chan net.Conn), make(chan struct{})}
	server := &http.Server{Handler: h}
	go server.Serve(l)
	conn, served := net.Pipe()
	l.conns <- served
	return conn, func() {
		conn.Close()
		close(l.done)
		server.Close()
		synctest.Wait()
	}
}

// sendOverPipe sends a PUT without a network, in a bubble of synctest, and returns its answer's status.
func sendOverPipe(h http.Handler, http2 bool, body io.Reader, size int64) (status int, err error) {
	l := pipeListener{make(chan net.Conn), make(chan struct{})}
	var protocols http.Protocols
	protocols.SetHTTP1(!http2)
	protocols.SetUnencryptedHTTP2(http2)
	server := &http.Server{Handler: h, Protocols: &protocols}
	go server.Serve(l)
	client := &http.Transport{Protocols: &protocols, DialContext: func(context.Context, string, string) (net.Conn, error) {
		conn, served := net.Pipe()
		l.conns <- served
		return conn, nil
	}}
	defer func() {
		client.CloseIdleConnections()
		close(l.done)
		server.Close()
		time.Sleep(time.Hour) // the client may be in a pause, and time stops with this goroutine
	}()
	r, err := http.NewRequest(http.MethodPut, "http://"+ownHost+zipPath, body)
	if err != nil {
		return 0, err
	}
	r.ContentLength = size
	a, err := client.RoundTrip(withHeaders(r, publisherOnly))
	if err != nil {
		return 0, err
	}
	return a.StatusCode, a.Body.Close()
}

// pipeListener accepts the other end of a pipe, so that a server runs without a network.
type pipeListener struct {
	conns chan net.Conn
	done  chan struct{}
}

func (l pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l pipeListener) Close() error   { return nil }
func (l pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

func TestStalledUpload(t *testing.T) {
	for _, test := range []struct {
		rule  string
		pause time.Duration // between the bytes
		want  int
	}{
		{"a client that stalls is interrupted", 2 * time.Minute, http.StatusBadRequest},
		{"a slow client is not, however long it takes", 50 * time.Second, http.StatusCreated},
	} {
		t.Run(test.rule, func(t *testing.T) {
			g := publishing(t, new(shelf))
			synctest.Test(t, func(t *testing.T) {
				conn, end := servePipe(handler{g})
				defer end()
				go func() {
					io.WriteString(conn, "PUT "+zipPath+" HTTP/1.1\r\nHost: "+ownHost+"\r\nContent-Length: 7\r\n"+publisherOnly+"\r\n\r\n")
					for _, c := range "content" {
						time.Sleep(test.pause)
						io.WriteString(conn, string(c))
					}
				}()
				a, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err != nil || a.StatusCode != test.want {
					t.Fatalf("got %v and error %v, want %d", a, err, test.want)
				}
			})
		})
	}
	for version, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		for _, test := range []struct {
			rule             string
			reading, sending time.Duration // how long the registry does not read, and the client does not send
			want             int
		}{
			{"the time in which the registry does not read is not the client's", 10 * time.Minute, 0, http.StatusCreated},
			{"nor has the client less time then", 10 * time.Minute, 10*time.Minute + 50*time.Second, http.StatusCreated},
			{"nor more", 10 * time.Minute, 20 * time.Minute, http.StatusBadRequest},
		} {
			t.Run(test.rule+", with "+version, func(t *testing.T) {
				const size = 4 << 20
				g := publishing(t, &shelf{put: func(f publish.File, u publish.Upload) (publish.Result, error) {
					n, err := io.CopyN(io.Discard, u.Body, size/2)
					if err != nil {
						return publish.Result{}, err
					}
					time.Sleep(test.reading) // as a disk does that hangs
					rest, err := io.Copy(io.Discard, u.Body)
					if err != nil || n+rest != size {
						return publish.Result{}, publish.ErrInterrupted
					}
					return publish.Result{Outcome: publish.Added, Publication: publication(f)}, nil
				}})
				synctest.Test(t, func(t *testing.T) {
					half := func() io.Reader { return io.LimitReader(zeros{}, size/2) }
					status, err := sendOverPipe(handler{g}, http2, io.MultiReader(half(), pause(test.sending), half()), size)
					if err != nil || status != test.want {
						t.Errorf("got %d and error %v, want %d", status, err, test.want)
					}
				})
			})
		}
	}
	t.Run("the time it takes to publish the file is not the client's", func(t *testing.T) {
		g := publishing(t, &shelf{put: func(f publish.File, u publish.Upload) (publish.Result, error) {
			io.Copy(io.Discard, u.Body)
			time.Sleep(10 * time.Minute)
			return publish.Result{Outcome: publish.Added, Publication: publication(f)}, nil
		}})
		synctest.Test(t, func(t *testing.T) {
			var canceled error
			conn, end := servePipe(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				g.ServeHTTP(w, r)
				canceled = r.Context().Err()
			}))
			defer end()
			go io.WriteString(conn, "PUT "+zipPath+" HTTP/1.1\r\nHost: "+ownHost+"\r\nContent-Length: 7\r\n"+publisherOnly+"\r\n\r\ncontent")
			a, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil || a.StatusCode != http.StatusCreated || canceled != nil {
				t.Errorf("got %v and errors %v, %v", a, err, canceled)
			}
		})
	})
}

// For every path and header, the answer is valid, and only files with valid names reach
// the publisher.
func FuzzPublish(f *testing.F) {
	s := new(shelf)
	g := publishing(f, s)
	f.Add("PUT", zipPath, "X-Checksum-Sha256", strings.Repeat("a", 64))
	f.Add("PUT", modulePath, "Digest", "sha-256=AAAA,,=,sha-256")
	f.Add("PUT", "/v1/providers/acme/../1.0.0/docs.zip", "Repr-Digest", "sha-256=:")
	f.Add("PUT", "/v1/modules/a%2fb/..%00/c/registry.hcl", "Content-Digest", "sha-256=::")
	f.Add("GET", releasePath, "Content-Range", "bytes")
	f.Add("DELETE", releasePath, "X-Checksum-Deploy", "true")
	f.Add("PUT", "/v1/modules/", "Content-Encoding", "br, identity")
	statuses := []int{200, 201, 204, 304, 400, 401, 403, 404, 405, 422, fallenThrough}
	f.Fuzz(func(t *testing.T, method, path, field, value string) {
		*s = shelf{}
		r := withHeaders(requestFor(method, path), publisherOnly)
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader("content")), 7
		r.Header[http.CanonicalHeaderKey(field)] = []string{value}
		w := serveRecorded(g, r)
		if !slices.Contains(statuses, w.Code) {
			t.Fatalf("status is %d: %s", w.Code, w.Body)
		}
		if w.Code >= 400 && w.Code != fallenThrough && method != http.MethodHead && !json.Valid(w.Body.Bytes()) {
			t.Fatalf("body is %q", w.Body)
		}
		for _, name := range []string{s.file.Name, s.file.Version, s.file.Address.Namespace, s.file.Address.Name, s.file.Address.System} {
			if strings.ContainsAny(name, "/\\\x00:@") || name == ".." || name == "." {
				t.Fatalf("%+v is published", s.file)
			}
		}
	})
}
