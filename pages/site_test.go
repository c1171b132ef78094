package pages

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/assets"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/route"
	"github.com/caddy-terraform/caddy-terraform-registry/signing"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// vpcFiles writes the files of a version of the tests' module.
func vpcFiles(files *indextest.Tree, version, variables string) {
	dir := "modules/acme/vpc/aws/" + version + "/"
	files.Write(dir+"main.tf", `terraform {
  required_version = ">= 1.3"
}
module "subnets" {
  source = "./modules/subnets"
}
module "labels" {
  source  = "registry.example.com/acme/labels/null"
  version = "~> 1.0"
}
`)
	files.Write(dir+"variables.tf", variables)
	files.Write(dir+"README.md", "# VPC\n\nA network. See [subnets](./modules/subnets), [changes](CHANGELOG.md) and ![a drawing](images/net.svg).\n\n## Usage\n\nUse it.\n\n## More\n\nMore.\n")
	files.Write(dir+"CHANGELOG.md", "# Changes\n\n<script>alert(1)</script>\n")
	files.Write(dir+"images/net.svg", `<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`)
	files.Write(dir+"blob.bin", "\x00\x01\xff")
	files.Write(dir+"modules/subnets/main.tf", "variable \"zones\" {}\n")
}

// siteTree has a module with some history, a labels module, and mirrored ones.
func siteTree(t testing.TB) *indextest.Tree {
	t.Helper()
	files := indextest.New(t)
	vpcFiles(files, "1.2.0", "variable \"cidr\" {}\nvariable \"old\" { default = 1 }\n")
	vpcFiles(files, "1.3.0", "variable \"cidr\" {}\n")
	vpcFiles(files, "1.4.0", "variable \"cidr\" {}\nvariable \"zones\" { default = [] }\n")
	vpcFiles(files, "2.0.0-rc.1", "variable \"cidr\" {}\n")
	vpcFiles(files, "1.1.0", "variable \"cidr\" {}\n")
	files.Write("modules/acme/vpc/aws/registry.hcl", `
owner = "platform team"
source = "https://example.org/vpc"
deprecated "1.2.0" {
  reason = "Subnets overlap."
}
withdrawn "1.1.0" {
  reason = "Its key is public."
}
`)
	files.Write("modules/acme/labels/null/1.0.0/main.tf", "# labels")
	files.Write("modules/registry.terraform.io/acme/tags/null/1.0.0/main.tf", "# tags")
	demoReleases(t, files)
	files.Provider("registry.terraform.io/hashicorp/null", "3.2.0", "linux_amd64")
	return files
}

// snapshotOf returns what a tree offers.
func snapshotOf(t testing.TB, files *indextest.Tree) *index.Snapshot {
	t.Helper()
	return scanned(t, files.Open)
}

// scanned returns what the tree offers that open opens, with all titles of documentation.
func scanned(t testing.TB, open func() (tree.Tree, error)) *index.Snapshot {
	t.Helper()
	key, err := signing.ReadKey([]byte(indextest.NewPublisher(t).PrivateKey()), "")
	if err != nil {
		t.Fatal(err)
	}
	x := index.New(index.Options{Open: open, Signer: key})
	t.Cleanup(func() { x.Close() })
	return indextest.Rescan(t, x)
}

// siteOf serves the pages of a snapshot, under rules if there are any. The user name of
// basic authentication is the user.
func siteOf(t testing.TB, s *index.Snapshot, rules ...string) *Site {
	t.Helper()
	g := &handlers.Registry{Snapshot: func() *index.Snapshot { return s }}
	if rules != nil {
		var list []access.Rule
		for _, line := range rules {
			rule, err := access.ParseRule(strings.Fields(line)...)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, rule)
		}
		g.Rules = access.NewRules(list...)
		g.Authenticate = func(r *http.Request) (access.Subject, error) {
			user, _, _ := r.BasicAuth()
			if user == "unknowable" {
				return access.Subject{}, errors.New("the issuer is down")
			}
			return access.Subject{ID: user}, nil
		}
	}
	return &Site{Registry: g, Challenge: func(h http.Header, _ *http.Request) { h.Add("WWW-Authenticate", `Basic realm="registry"`) }}
}

// notAPage is the status of a request that is not for the pages.
const notAPage = http.StatusTeapot

func (s *Site) do(r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	if !s.ServeHTTP(w, r) {
		w.WriteHeader(notAPage)
	}
	return w
}

// get asks for a path as a user, or anonymously if the name is empty.
func (s *Site) get(path, user string, header ...string) *httptest.ResponseRecorder {
	return s.do(requestOf(http.MethodGet, path, "registry.example.com", user, header...))
}

func requestOf(method, path, host, user string, header ...string) *http.Request {
	r := httptest.NewRequest(method, path, nil)
	r.Host = host
	if user != "" {
		r.SetBasicAuth(user, "")
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return r
}

func parse(t *testing.T, w *httptest.ResponseRecorder) *html.Node {
	t.Helper()
	n, err := html.Parse(bytes.NewReader(w.Body.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// mainOf returns the text of what a page is about.
func mainOf(t *testing.T, w *httptest.ResponseRecorder) string {
	t.Helper()
	return textIn(elements(parse(t, w), atom.Main)[0])
}

// checkText checks that a text has all that is wanted, and nothing that it should lack.
func checkText(t *testing.T, of, text string, want, lack []string) {
	t.Helper()
	for _, part := range want {
		if !strings.Contains(text, part) {
			t.Errorf("%s lacks %q:\n%s", of, part, text)
		}
	}
	for _, part := range lack {
		if strings.Contains(text, part) {
			t.Errorf("%s has %q:\n%s", of, part, text)
		}
	}
}

func TestPathsOfThePages(t *testing.T) {
	s := siteOf(t, snapshotOf(t, siteTree(t)))
	for _, test := range []struct {
		path   string
		status int
		to     string // the target of the redirect
	}{
		{"/", 200, ""},
		{"/browse/modules", 200, ""},
		{"/browse/modules/", 308, "/browse/modules"},
		{"/browse/modules/?namespace=acme", 308, "/browse/modules?namespace=acme"},
		{"/browse", 308, "/browse/modules"},
		{"/modules", 308, "/browse/modules"},
		{"/providers/", 308, "/browse/providers"},
		{"/registries", 308, "/browse/modules"},
		{"/search?q=vpc", 200, ""},
		{"/llms.txt", 200, ""},
		{"/feed.atom", 200, ""},
		{"/modules/acme/feed.atom", 200, ""},
		{"/modules/acme/nothing/feed.atom", 404, ""},
		{"/modules/acme/vpc/feed.atom", 200, ""},
		{"/modules/acme/vpc/aws/feed.atom", 200, ""},
		{"/modules/ACME/vpc/aws/feed.atom", 308, "/modules/acme/vpc/aws/feed.atom"},
		{"/modules/acme/vpc/aws/1.4.0/feed.atom", 404, ""},
		{"/modules/acme/vpc/aws/latest/feed.atom", 404, ""},
		{"/providers/acme/feed.atom", 200, ""},
		{"/providers/acme/demo/feed.atom", 200, ""},
		{"/registries/registry.terraform.io/feed.atom", 200, ""},
		{"/registries/registry.terraform.io/modules/acme/tags/null/feed.atom", 200, ""},
		{"/browse/modules/feed.atom", 404, ""},
		{"/other/feed.atom", notAPage, ""},
		{"/feed.atom/feed.atom", notAPage, ""},
		{"/search/modules?q=vpc", 200, ""},
		{"/search/providers?q=demo", 200, ""},
		{"/modules/acme/vpc/aws", 200, ""},
		{"/modules/acme/vpc/aws/latest", 200, ""},
		{"/modules/acme/vpc/aws/1.4.0", 200, ""},
		{"/modules/acme/vpc/aws/v1.4", 308, "/modules/acme/vpc/aws/1.4.0"},
		{"/modules/ACME/VPC/aws/1.4.0?tab=inputs", 308, "/modules/acme/vpc/aws/1.4.0?tab=inputs"},
		{"/modules/acme/vpc/aws?tab=readme", 308, "/modules/acme/vpc/aws"},
		{"/modules/acme/vpc/aws?tab=nothing", 404, ""},
		{"/modules/acme/vpc/aws?tab=changes&from=9.9.9", 404, ""},
		{"/modules/acme/vpc/aws/9.9.9", 404, ""},
		{"/modules/acme/vpc/aws/1.1.0", 410, ""},
		{"/modules/acme/vpc/aws/1.4.0/submodules/subnets", 200, ""},
		{"/modules/acme/vpc/aws/latest/submodules/subnets?tab=inputs", 200, ""},
		{"/modules/acme/vpc/aws/1.4.0/submodules/other", 404, ""},
		{"/modules/acme/vpc/aws/1.4.0/examples/other", 404, ""},
		{"/modules/acme/vpc/aws/1.4.0/other", 404, ""},
		{"/modules/acme/vpc/aws/one", 404, ""},
		{"/modules/acme/vpc", 200, ""},
		{"/modules/ACME/", 308, "/modules/acme"},
		{"/modules/acme", 200, ""},
		{"/modules/nothing", 404, ""},
		{"/modules/acme/nothing", 404, ""},
		{"/providers/acme", 200, ""},
		{"/modules/acme/vpc/aws/1.4.0/submodules", 308, "/modules/acme/vpc/aws/1.4.0?tab=submodules"},
		{"/modules/acme/vpc/aws/1.4.0/examples/?tab=inputs", 308, "/modules/acme/vpc/aws/1.4.0?tab=examples"},
		{"/modules/acme/vpc/aws/1.4.0?tab=examples", 200, ""},
		{"/modules/acme/vpc/aws/1.4.0/files", 308, "/modules/acme/vpc/aws/1.4.0"},
		{"/modules/acme/nothing/aws", 404, ""},
		{"/modules/acme/vpc/aws/1.4.0/files/CHANGELOG.md", 200, ""},
		{"/modules/acme/vpc/aws/1.4.0/files/nothing.md", 404, ""},
		{"/modules/acme/vpc/aws/1.4.0/files/modules", 404, ""},
		{"/modules/acme/vpc/aws/1.4.0/files/../registry.hcl", 404, ""},
		{"/modules/acme/vpc/aws/1.4.0/files/%2e%2e/registry.hcl", 404, ""},
		{"/modules/acme/vpc/aws/1.4.0/files/a%2fb", 404, ""},
		{"/registries/registry.terraform.io/modules/acme/tags/null", 200, ""},
		{"/registries/registry.terraform.io/modules/acme/vpc/aws", 404, ""},
		{"/registries/registry.terraform.io", 200, ""},
		{"/registries/registry.terraform.io/providers", 308, "/registries/registry.terraform.io"},
		{"/registries/registry.terraform.io/modules/acme", 200, ""},
		{"/registries/registry.terraform.io/modules/nothing", 404, ""},
		{"/registries/nothing.example.com", 404, ""},
		{"/_registry/report", 404, ""},
		{"/_registry/login?to=/browse/modules", 302, "/?sign-in=%2Fbrowse%2Fmodules"},
		{"/_registry/style.css", 404, ""},
		{"/v1/modules/acme/vpc/aws/versions", notAPage, ""},
		{"/.well-known/terraform.json", notAPage, ""},
		{"/favicon.ico", notAPage, ""},
		{"/%ff", notAPage, ""},
		{"//", notAPage, ""},
	} {
		t.Run(test.path, func(t *testing.T) {
			w := s.get(test.path, "")
			if w.Code != test.status || w.Header().Get("Location") != test.to {
				t.Errorf("%d to %q, want %d to %q", w.Code, w.Header().Get("Location"), test.status, test.to)
			}
			if w.Code == notAPage && (len(w.Header()) > 0 || w.Body.Len() > 0) {
				t.Errorf("something was written: %v", w.Header())
			}
		})
	}
}

func TestPagesBelowAPath(t *testing.T) {
	s := siteOf(t, snapshotOf(t, siteTree(t)))
	s.Path = "/ui"
	for path, want := range map[string]int{
		"/ui": 308, "/ui/": 200, "/ui/modules/acme/vpc/aws": 200, "/": notAPage, "/modules/acme/vpc/aws": notAPage, "/uix": notAPage, "/uimodules/acme/vpc/aws": notAPage, "/uisearch": notAPage, "/ui/nothing": notAPage, "/ui/modules/nothing": 404,
	} {
		if w := s.get(path, ""); w.Code != want {
			t.Errorf("%s: %d, want %d", path, w.Code, want)
		}
	}
	for _, path := range []string{"/ui/", "/ui/modules/acme/vpc/aws", "/ui/modules/acme/vpc/aws?tab=versions", "/ui/browse/modules", "/ui/search?q=vpc", "/ui/modules/nothing"} {
		for n := range parse(t, s.get(path, "")).Descendants() {
			for _, key := range []string{"href", "src", "action"} {
				v := attr(n, key)
				if strings.HasPrefix(v, "/") && !strings.HasPrefix(v, "/ui/") && !strings.HasPrefix(v, "/v1/") {
					t.Errorf("%s: <%s %s=%q> leaves the pages", path, n.Data, key, v)
				}
			}
		}
	}
}

// Every link within the registry leads somewhere, except to pages of documentation that
// another version may lack.
func TestLinksLeadSomewhere(t *testing.T) {
	s := siteOf(t, snapshotOf(t, siteTree(t)))
	seen := s.crawl("", []string{"/"}, func(path string, w *httptest.ResponseRecorder) {
		if w.Code == notAPage && strings.HasPrefix(path, "/v1/") {
			w = httptest.NewRecorder()
			request := httptest.NewRequest(http.MethodGet, path, nil)
			request.Host = "registry.example.com"
			if !s.Registry.ServeHTTP(w, request) {
				t.Errorf("nobody answers %s", path)
			}
		}
		if w.Code >= 400 && w.Code != http.StatusGone && !strings.HasPrefix(path, "/providers/acme/demo/1.1.0/docs/") {
			t.Errorf("%s: %d", path, w.Code)
		}
	})
	for _, path := range []string{
		"/modules/acme/vpc/aws", "/modules/acme/vpc/aws/latest/submodules/subnets", "/modules/acme/vpc/aws/latest/files/images/net.svg",
		"/modules/acme/vpc/aws/1.4.0?tab=changes", "/modules/acme/labels/null", "/registries/registry.terraform.io/modules/acme/tags/null",
		"/modules/acme", "/registries/registry.terraform.io", "/v1/modules/acme/vpc/aws/1.4.0/archive.tar.gz",
		"/providers/acme/demo/latest/docs/resources/thing", "/providers/acme/demo?tab=versions", "/registries/registry.terraform.io/providers/hashicorp/null",
		"/v1/mirror/registry.example.com/acme/demo/terraform-provider-demo_1.2.0_linux_amd64.zip", "/v1/mirror/registry.example.com/acme/demo/terraform-provider-demo_1.2.0_SHA256SUMS.sig",
	} {
		if !seen[path] {
			t.Errorf("no page links to %s", path)
		}
	}
}

func TestHeadersOfPages(t *testing.T) {
	s := siteOf(t, snapshotOf(t, siteTree(t)))
	for _, path := range []string{"/", "/modules/acme/vpc/aws", "/modules/acme/nothing/aws", "/search?q=vpc"} {
		h := s.get(path, "").Header()
		for name, want := range map[string]string{
			"Content-Type":                 "text/html; charset=utf-8",
			"Content-Security-Policy":      "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
			"X-Content-Type-Options":       "nosniff",
			"Referrer-Policy":              "same-origin",
			"Cross-Origin-Opener-Policy":   "same-origin",
			"Cross-Origin-Resource-Policy": "same-origin",
			"Cache-Control":                "no-cache",
		} {
			if got := h.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", path, name, got, want)
			}
		}
	}
}

func TestPagesAreRevalidated(t *testing.T) {
	s := siteOf(t, snapshotOf(t, siteTree(t)))
	for _, path := range []string{"/", "/modules/acme/vpc/aws?tab=inputs", "/browse/modules", "/search?q=vpc", "/modules/acme/vpc/aws/1.4.0/files/CHANGELOG.md"} {
		first := s.get(path, "")
		etag := first.Header().Get("Etag")
		if etag == "" || first.Header().Get("Content-Length") == "" {
			t.Errorf("%s: no validator or length: %v", path, first.Header())
		}
		for _, condition := range []string{etag, "W/" + etag, `"other", ` + etag, "*"} {
			if w := s.get(path, "", "If-None-Match", condition); w.Code != http.StatusNotModified || w.Body.Len() > 0 || w.Header().Get("Etag") != etag {
				t.Errorf("%s: %s: %d with %d bytes", path, condition, w.Code, w.Body.Len())
			}
		}
		if w := s.get(path, "", "If-None-Match", `"other"`); w.Code != http.StatusOK {
			t.Errorf("%s: another validator: %d", path, w.Code)
		}
	}
}

// A cached page is compressed for clients that accept it.
func TestKeptPagesAreCompressed(t *testing.T) {
	s := siteOf(t, snapshotOf(t, siteTree(t)))
	for path, kept := range map[string]bool{
		"/modules/acme/vpc/aws": true, assets.Path("style.css"): true, "/search?q=vpc": false,
	} {
		plain := s.get(path, "")
		for accepted, want := range map[string]bool{"gzip": kept, "br": false, "": false} {
			w := s.get(path, "", "Accept-Encoding", accepted)
			if zipped := w.Header().Get("Content-Encoding") == "gzip"; zipped != want {
				t.Errorf("%s: with %q it is compressed: %v", path, accepted, zipped)
				continue
			}
			if slices.Contains(w.Header().Values("Vary"), "Accept-Encoding") != kept || w.Header().Get("Content-Length") != strconv.Itoa(w.Body.Len()) {
				t.Errorf("%s: %v", path, w.Header())
			}
			if !want {
				continue
			}
			z, err := gzip.NewReader(w.Body)
			if err != nil {
				t.Fatal(err)
			}
			if body, err := io.ReadAll(z); err != nil || !bytes.Equal(body, plain.Body.Bytes()) {
				t.Errorf("%s: it is not the same page compressed: %v", path, err)
			}
			etag := w.Header().Get("Etag")
			if etag == plain.Header().Get("Etag") {
				t.Errorf("%s: other bytes have the same validator", path)
			}
			if again := s.get(path, "", "Accept-Encoding", accepted, "If-None-Match", etag); again.Code != http.StatusNotModified || again.Header().Get("Content-Encoding") != "" {
				t.Errorf("%s: %d, %v", path, again.Code, again.Header())
			}
		}
	}
}

func TestMethodsOfPages(t *testing.T) {
	s := siteOf(t, snapshotOf(t, siteTree(t)))
	head := s.do(httptest.NewRequest(http.MethodHead, "/browse/modules", nil))
	get := s.do(httptest.NewRequest(http.MethodGet, "/browse/modules", nil))
	if head.Code != 200 || head.Body.Len() > 0 || head.Header().Get("Content-Length") != get.Header().Get("Content-Length") {
		t.Errorf("HEAD: %d, %d bytes, %v", head.Code, head.Body.Len(), head.Header())
	}
	post := s.do(httptest.NewRequest(http.MethodPost, "/browse/modules", nil))
	if post.Code != http.StatusMethodNotAllowed || post.Header().Get("Allow") != "GET, HEAD" {
		t.Errorf("POST: %d, %v", post.Code, post.Header())
	}
	if w := s.do(httptest.NewRequest(http.MethodPost, "/other", nil)); w.Code != notAPage {
		t.Errorf("POST to a path of somebody else: %d", w.Code)
	}
}

func TestAssetsAreKeptForGood(t *testing.T) {
	s := siteOf(t, snapshotOf(t, siteTree(t)))
	doc := parse(t, s.get("/", ""))
	var paths []string
	for n := range doc.Descendants() {
		if n.DataAtom == atom.Link && attr(n, "rel") != "alternate" && attr(n, "rel") != "canonical" {
			paths = append(paths, attr(n, "href"))
		} else if n.DataAtom == atom.Script || n.DataAtom == atom.Img {
			paths = append(paths, attr(n, "src"))
		}
	}
	types := map[string]int{}
	for _, path := range paths {
		w := s.get(path, "")
		types[w.Header().Get("Content-Type")]++
		if w.Code != 200 || w.Body.Len() == 0 || w.Header().Get("Cache-Control") != "public, max-age=31536000, immutable" {
			t.Errorf("%s: %d, %v", path, w.Code, w.Header())
		}
	}
	if types["text/css; charset=utf-8"] != 1 || types["text/javascript; charset=utf-8"] != 1 || types["image/svg+xml"] != 2 || len(types) != 3 {
		t.Errorf("types: %v", types)
	}
}

// Anyone may have written the files in packages, so they must not become part of the
// site.
func TestFilesOfPackagesDoNothing(t *testing.T) {
	s := siteOf(t, snapshotOf(t, siteTree(t)))
	for _, test := range []struct {
		file, contentType string
		status            int
	}{
		{"CHANGELOG.md", "text/plain; charset=utf-8", 200},
		{"main.tf", "text/plain; charset=utf-8", 200},
		{"images/net.svg", "image/svg+xml", 200},
		{"blob.bin", "text/html; charset=utf-8", 404},
	} {
		w := s.get("/modules/acme/vpc/aws/1.4.0/files/"+test.file, "")
		h := w.Header()
		if w.Code != test.status || h.Get("Content-Type") != test.contentType || h.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %d, %v", test.file, w.Code, h)
		}
		if policy := h.Get("Content-Security-Policy"); w.Code == 200 && (!strings.Contains(policy, "sandbox;") || !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "script-src")) {
			t.Errorf("%s: %s", test.file, policy)
		}
	}
}

func TestVersionsSayWhatTheyAre(t *testing.T) {
	s := siteOf(t, snapshotOf(t, siteTree(t)))
	for _, test := range []struct {
		name, path string
		want, lack []string
	}{
		{"the latest", "/modules/acme/vpc/aws", []string{"latest", "platform team"}, []string{"There is a newer version", "deprecated."}},
		{"an old one leads to the latest", "/modules/acme/vpc/aws/1.3.0", []string{"There is a newer version. Use 1.4.0"}, nil},
		{"a deprecated one says why", "/modules/acme/vpc/aws/1.2.0", []string{"This version is deprecated. Subnets overlap."}, nil},
		{"a prerelease", "/modules/acme/vpc/aws/2.0.0-rc.1", []string{"This is a prerelease. Use 1.4.0"}, []string{"newer version"}},
		{"a withdrawn one says why", "/modules/acme/vpc/aws/1.1.0", []string{"has been withdrawn", "Its key is public.", "Latest version 1.4.0"}, nil},
		{"one that never was", "/modules/acme/vpc/aws/0.1.0", []string{"There is no version 0.1.0", "Latest version 1.4.0", "All versions"}, nil},
		{"one between others leads to both", "/modules/acme/vpc/aws/1.2.5", []string{"There is no version 1.2.5", "Latest version 1.4.0", "1.3.0", "1.2.0"}, nil},
		{"a submodule that it lacks", "/modules/acme/vpc/aws/1.4.0/submodules/other", []string{"Version 1.4.0 of acme/vpc/aws has no modules/other.", "acme/vpc/aws 1.4.0"}, nil},
		{"what is no version", "/modules/acme/vpc/aws/one/two", []string{"acme/vpc/aws has no page “one/two”.", "All versions"}, nil},
		{"below what is not there", "/modules/acme/nothing/aws/one", []string{"This page does not exist", "All of acme"}, []string{"All versions"}},
		{"below a provider that is not there", "/providers/acme/nothing/one", []string{"This page does not exist", "All of acme"}, []string{"All versions"}},
		{"what is no page", "/modules/acme/vpc/aws/1.4.0/other", []string{"acme/vpc/aws has no page “1.4.0/other”."}, nil},
		{"another system", "/modules/acme/vpc/google", []string{"Not found", "acme/vpc/aws", "All of acme"}, nil},
		{"the list has them all", "/modules/acme/vpc/aws?tab=versions", []string{"1.1.0 withdrawn", "1.2.0 deprecated", "2.0.0-rc.1 prerelease", "1.4.0 latest", "+ zones", "− old"}, nil},
		{"one without examples says so", "/modules/acme/vpc/aws?tab=examples", []string{"It has none."}, nil},
		{"changes are judged", "/modules/acme/vpc/aws/1.3.0?tab=changes", []string{"1 breaking change in a minor release.", "input old removed"}, nil},
		{"the latest has a snippet for what is compatible", "/modules/acme/vpc/aws", []string{`version = "~> 1.4"`}, nil},
		{"an old one has a snippet for itself", "/modules/acme/vpc/aws/1.3.0?tab=inputs", []string{`version = "1.3.0"`, `cidr = null # any`}, []string{"~>"}},
		{"the list counts what is offered", "/modules/acme/vpc/aws", []string{"Versions 4"}, nil},
		{"any two can be compared", "/modules/acme/vpc/aws/1.3.0?tab=changes&from=1.4.0", []string{"What changed after 1.3.0", "No breaking changes.", "input zones"}, []string{"1 breaking change"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			checkText(t, test.path, mainOf(t, s.get(test.path, "")), test.want, test.lack)
		})
	}
}

// Everyone who may see a version learns that its bytes have changed.
func TestVersionsSayThatTheirBytesHaveChanged(t *testing.T) {
	const zip = "providers/acme/demo/terraform-provider-demo_1.0.0_linux_amd64.zip"
	files := indextest.New(t).Write(zip, indextest.ProviderZip("demo", "1.0.0", "linux_amd64")).Write("modules/acme/vpc/aws/1.0.0/main.tf", "# a module")
	x := index.New(index.Options{Open: files.Open})
	defer x.Close()
	if _, err := x.Rescan(t.Context()); err != nil {
		t.Fatal(err)
	}
	files.Write(zip, indextest.Zip("terraform-provider-demo_v1.0.0", "another program")).Write("modules/acme/vpc/aws/1.0.0/main.tf", "# another module")
	snapshot, err := x.Rescan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := siteOf(t, snapshot)
	for path, want := range map[string]string{
		"/providers/acme/demo/1.0.0":  "The package for linux_amd64 has changed.",
		"/modules/acme/vpc/aws/1.0.0": "The files of this version have changed.",
	} {
		checkText(t, path, mainOf(t, s.get(path, "")), []string{want}, []string{zip, "modules/acme/vpc/aws/1.0.0/main.tf"})
	}
}

// A package that publishing would refuse today may still be in the tree or come from
// elsewhere.
func TestModulesSayWhatIsWrongWithThem(t *testing.T) {
	files := indextest.New(t).
		Write("modules/acme/vpc/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", "locals {\n  a = 1 +\n}\n", "more.tf", "locals {\n", "terraform.tfstate", "{}", "a.tfvars", "")).
		Write("modules/acme/vpc/aws/1.1.0/main.tf", "# a module\n")
	s := siteOf(t, snapshotOf(t, files))
	wants := []string{
		"Terraform and OpenTofu cannot read all of this version.", "Its publisher has to correct main.tf:2, which clients cannot parse: Invalid expression",
		". Its publisher also has to correct more.tf:1, which", "elsewhere in this file.This version has",
		"This version has secrets in it.", "It contains terraform.tfstate (state), which everyone who downloads the module gets: pack it without.",
	}
	checkText(t, "a broken one", mainOf(t, s.get("/modules/acme/vpc/aws/1.0.0", "")), wants, []string{"a.tfvars"})
	checkText(t, "another", mainOf(t, s.get("/modules/acme/vpc/aws/1.1.0", "")), nil, append(wants, "a.tfvars"))
}

func TestARegistryBegins(t *testing.T) {
	s := siteOf(t, snapshotOf(t, indextest.New(t)))
	checkText(t, "/", mainOf(t, s.get("/", "")), []string{"Nothing here yet", "modules/NAMESPACE/NAME/SYSTEM/1.0.0.tar.gz", "providers/NAMESPACE/TYPE/1.0.0/"}, nil)
	none := &Site{Registry: &handlers.Registry{Snapshot: func() *index.Snapshot { return nil }}}
	if w := none.get("/", ""); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
		t.Errorf("before the first scan: %d, %v", w.Code, w.Header())
	}
}

// A page shows only verified files: after files were replaced, it waits for the next
// scan.
func TestFilesThatChangedUnderneath(t *testing.T) {
	files := siteTree(t)
	first := snapshotOf(t, files)
	s := siteOf(t, first)
	files.Write("modules/acme/vpc/aws/1.4.0/variables.tf", "variable \"other_than_before\" {}\n")
	scans := 0
	s.Registry.Changed = func(...string) { scans++ }
	if w := s.get("/modules/acme/vpc/aws?tab=inputs", ""); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" || scans != 1 {
		t.Errorf("%d, %v, and %d scans", w.Code, w.Header(), scans)
	}
	second := snapshotOf(t, files)
	s.Registry.Next = func(_ context.Context, after *index.Snapshot, wanted ...index.Selection) *index.Snapshot {
		if len(wanted) == 0 || wanted[0].Address.Name != "vpc" {
			t.Errorf("it waits for %v", wanted)
		}
		if after == second {
			return nil
		}
		return second
	}
	if w := s.get("/modules/acme/vpc/aws?tab=inputs", ""); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "other_than_before") {
		t.Errorf("after the next scan: %d", w.Code)
	}
}

func TestListsAreFilteredAndPaged(t *testing.T) {
	files := indextest.New(t)
	for _, name := range []string{"a", "b"} {
		for i := range 20 {
			files.Write("modules/"+name+"/m"+strings.Repeat("x", i)+"/aws/1.0.0/main.tf", "#")
		}
	}
	files.Write("modules/a/m/google/1.0.0/main.tf", "#")
	s := siteOf(t, snapshotOf(t, files))
	for path, want := range map[string]int{
		"/browse/modules": 30, "/browse/modules?offset=30": 11, "/browse/modules?offset=99999": 1, "/browse/modules?offset=-3": 30,
		"/browse/modules?namespace=a": 21, "/browse/modules?namespace=a&provider=google": 1, "/browse/modules?provider=azure": 0,
	} {
		if got := len(with(elements(parse(t, s.get(path, "")), atom.P), "class", "name")); got != want {
			t.Errorf("%s has %d, want %d", path, got, want)
		}
	}
	next := with(elements(parse(t, s.get("/browse/modules?provider=aws", "")), atom.A), "rel", "next")[0]
	if next := attr(next, "href"); next != "/browse/modules?provider=aws&offset=30" {
		t.Errorf("the next part of a filtered list is %q", next)
	}
}

func TestARenderedPageIsKept(t *testing.T) {
	files := siteTree(t)
	s := siteOf(t, snapshotOf(t, files))
	body := func() string { return s.get("/modules/acme/vpc/aws?tab=inputs", "").Body.String() }
	first := body()
	kept := s.cache.latest.Load()
	keptPage := func(path, query string) *answer {
		rt, _ := route.Parse(path)
		a, _ := kept.Get(pageKey{Route: rt, query: readQuery(rt, query, nil), self: "registry.example.com"})
		return a
	}
	page := keptPage("/modules/acme/vpc/aws", "tab=inputs")
	if page == nil || string(page.body) != first {
		t.Error("the page is not kept")
	}
	if body() != first || keptPage("/modules/acme/vpc/aws", "tab=inputs") != page {
		t.Error("the page was made again")
	}
	s.get("/search?q=vpc", "")
	s.get("/modules/acme/nothing/aws", "")
	if keptPage("/search", "q=vpc") != nil || keptPage("/modules/acme/nothing/aws", "") != nil {
		t.Error("searches or errors are kept")
	}

	next := snapshotOf(t, files.Write("modules/acme/vpc/aws/1.5.0/variables.tf", "variable \"new\" {}"))
	s.Registry.Snapshot = func() *index.Snapshot { return next }
	if !strings.Contains(body(), "input_new") {
		t.Error("the page of an earlier snapshot is shown")
	}
}

// A cached page keeps no request in memory: a request line can have a megabyte.
func TestKeptPagesDoNotKeepRequests(t *testing.T) {
	const requests, line = 64, 128 << 10
	files := indextest.New(t)
	vpcFiles(files, "1.0.0", "")
	s := siteOf(t, snapshotOf(t, files))
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	for name, path := range map[string]string{
		"a list": "/browse/modules?namespace=none%d&", "a module": "/modules/acme/vpc/aws/1.0.0?%d&",
	} {
		t.Run(name, func(t *testing.T) {
			before := heap()
			for i := range requests {
				target := fmt.Sprintf(path, i) + strings.Repeat("x", line)
				r := httptest.NewRequest(http.MethodGet, target, nil)
				r.Host = fmt.Sprintf("n%d.example.com", i)
				if w := s.do(r); w.Code != http.StatusOK {
					t.Fatalf("%d", w.Code)
				}
			}
			if grown := int64(heap() - before); grown > requests*line/2 {
				t.Errorf("%d kept pages take %d bytes", requests, grown)
			}
		})
	}
	runtime.KeepAlive(s)
}

// The registry is told of every answer of its pages, as of answers to clients: of the
// version that a page shows, and of nothing that does not exist.
func TestRegistryIsToldOfPages(t *testing.T) {
	s := siteOf(t, snapshotOf(t, siteTree(t)))
	var told *handlers.Exchange
	s.Registry.Answered = func(_ *http.Request, e *handlers.Exchange) { told = e }
	const whole = -1 // the length of the body
	for _, test := range []struct {
		method, path, header, value string
		status, bytes               int
		address, version            string
	}{
		{"GET", "/", "", "", 200, whole, "", ""},
		{"GET", "/search?q=vpc", "", "", 200, whole, "", ""},
		{"GET", "/modules/acme/vpc/aws", "", "", 200, whole, "acme/vpc/aws", "1.4.0"},
		{"GET", "/modules/acme/vpc/aws", "", "", 200, whole, "acme/vpc/aws", "1.4.0"}, // which is cached now
		{"GET", "/modules/acme/vpc/aws", "Accept-Encoding", "gzip", 200, whole, "acme/vpc/aws", "1.4.0"},
		{"GET", "/modules/acme/vpc/aws", "If-None-Match", "*", 304, 0, "acme/vpc/aws", "1.4.0"},
		{"HEAD", "/modules/acme/vpc/aws", "", "", 200, 0, "acme/vpc/aws", "1.4.0"},
		{"GET", "/modules/acme/vpc/aws/1.3.0?tab=dependencies", "", "", 200, whole, "acme/vpc/aws", "1.3.0"},
		{"GET", "/modules/acme/vpc/aws/1.3.0/files/CHANGELOG.md", "", "", 200, whole, "acme/vpc/aws", "1.3.0"},
		{"GET", "/modules/acme/vpc/aws/1.1.0", "", "", 410, whole, "acme/vpc/aws", "1.1.0"},
		{"GET", "/modules/acme/vpc/aws/7.0.0", "", "", 404, whole, "", ""},
		{"GET", "/modules/acme/nothing/aws", "", "", 404, whole, "", ""},
		{"GET", "/modules/ACME/vpc/aws", "", "", 308, 0, "", ""},
		{"GET", "/registries/registry.terraform.io/providers/hashicorp/null", "", "", 200, whole, "registry.terraform.io/hashicorp/null", "3.2.0"},
		{"GET", "/_registry/report", "", "", 404, whole, "", ""},
		{"GET", assets.Path("style.css"), "", "", 200, whole, "", ""},
		{"POST", "/", "", "", 405, whole, "", ""},
	} {
		told = nil
		r := httptest.NewRequest(test.method, test.path, nil)
		r.Host = "registry.example.com"
		if test.header != "" {
			r.Header.Set(test.header, test.value)
		}
		w := s.do(r)
		if test.bytes == whole {
			test.bytes = w.Body.Len()
		}
		if told == nil || told.Kind != handlers.KindPage || w.Code != test.status || told.Status != test.status || told.Bytes != int64(test.bytes) ||
			told.Address() != test.address || told.Version != test.version {
			t.Errorf("%s %s: %d, told %+v of %q, want %+v", test.method, test.path, w.Code, told, told.Address(), test)
		}
	}
	told = nil
	if w := s.get("/elsewhere", ""); w.Code != notAPage || told != nil {
		t.Errorf("what is not for the pages: %d, told %+v", w.Code, told)
	}
}

func FuzzWithin(f *testing.F) {
	for _, to := range []string{"/browse/modules", "//evil.example/", "https://evil.example", "/\\evil.example", "/search?q=%0d%0a", "/ui/", "javascript:alert(1)", "/search?q=a\tb"} {
		f.Add(to)
	}
	f.Fuzz(func(t *testing.T, to string) {
		for _, path := range []string{"", "/ui"} {
			s := &Site{Path: path}
			got := s.within(to)
			if !strings.HasPrefix(got, path+"/") || strings.HasPrefix(got, "//") || strings.ContainsAny(got, "\\\r\n\t") {
				t.Errorf("%q leads to %q", to, got)
			}
		}
	})
}
