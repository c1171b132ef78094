package handlers_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
)

const (
	publicHost = "registry.terraform.io"
	publicPath = "/v1/registries/" + publicHost
)

// standInTree has releases and modules of a public registry. Its publisher signed one
// release, which has a platform that the tree lacks, and did not sign another.
func standInTree(t testing.TB, publisher *indextest.Publisher) *indextest.Tree {
	t.Helper()
	files := indextest.New(t).Keys(publicHost+"/hashicorp", publisher)
	files.Provider(publicHost+"/hashicorp/null", "3.2.0", "darwin_arm64", "linux_amd64", "windows_amd64").Signed(publisher)
	files.Remove("providers/" + publicHost + "/hashicorp/null/terraform-provider-null_3.2.0_windows_amd64.zip")
	files.Provider(publicHost+"/acme/unsigned", "1.0.0", "linux_amd64")
	files.Write("modules/"+publicHost+"/acme/vpc/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", `variable "cidr" {}`))
	files.Write("modules/"+publicHost+"/acme/vpc/aws/1.1.0.tar.gz", indextest.TarGz("main.tf", `variable "cidr" {}`))
	files.Write("modules/"+publicHost+"/acme/vpc/aws/1.2.0.tar.gz", indextest.TarGz("main.tf", `variable "cidr" {}`))
	files.Write("modules/"+publicHost+"/acme/vpc/aws/registry.hcl", "withdrawn \"1.2.0\" {\n  reason = \"CVE-2026-1\"\n}\n")
	files.Write("modules/"+publicHost+"/acme/vpc/google/1.0.0/main.tf", "# a module")
	files.Provider("hashicorp/null", "9.0.0", "linux_amd64")
	files.Write("modules/acme/vpc/azurerm/9.0.0/main.tf", "# a module")
	return files
}

// A client that is told to find another registry's services here installs from them as
// from that registry.
func TestStandIn(t *testing.T) {
	publisher := indextest.NewPublisher(t)
	files := standInTree(t, publisher)
	s := serve(t, registry(scan(t, files)))
	s.original = publicHost

	s.rule("the client verifies the publisher's signature, and locks the hashes of all platforms", func(t *testing.T, s *site) {
		const path = "hashicorp/null/3.2.0/download/linux/amd64"
		zip, locked := s.install(path)
		if zip != files.Read("providers/"+publicHost+"/hashicorp/null/terraform-provider-null_3.2.0_linux_amd64.zip") || len(locked) != 3 {
			t.Errorf("it locks %v", locked)
		}
		if keys := s.download(path).SigningKeys.Keys; len(keys) != 1 || keys[0].ID != publisher.ID() {
			t.Errorf("the keys are %v", keys)
		}
	})
	s.rule("a release that its publisher did not sign is signed by the registry", func(t *testing.T, s *site) {
		s.install("acme/unsigned/1.0.0/download/linux/amd64")
	})
	s.rule("versions are those of that registry", func(t *testing.T, s *site) {
		if got := s.versions("hashicorp/null"); !slices.Equal(got.names(), []string{"3.2.0"}) || len(got.Versions[0].Platforms) != 2 {
			t.Errorf("got %v", got)
		}
		if got := s.moduleVersions("acme/vpc/aws"); !slices.Equal(got, []string{"1.1.0", "1.0.0"}) {
			t.Errorf("got %v", got)
		}
	})
	s.rule("a module is where it lies in the tree", func(t *testing.T, s *site) {
		location := s.moduleLocation("acme/vpc/aws/1.0.0")
		if want := "/v1/modules/" + publicHost + "/acme/vpc/aws/1.0.0/archive.tar.gz"; location.Path != want {
			t.Errorf("got %s, want %s", location, want)
		}
		if files := s.unpack(location); files["main.tf"] == "" {
			t.Errorf("it has %v", files)
		}
	})
	s.rule("the newest of a module is there too", func(t *testing.T, s *site) {
		a := s.get(publicPath + "/modules/acme/vpc/aws/download")
		if got, want := a.Header.Get("Location"), publicPath+"/modules/acme/vpc/aws/1.1.0/download"; a.StatusCode != http.StatusFound || got != want {
			t.Fatalf("got %d %s, want %s", a.StatusCode, got, want)
		}
		if a := s.get(a.Header.Get("Location")); a.StatusCode != http.StatusNoContent {
			t.Errorf("there is %d %s", a.StatusCode, a.body)
		}
	})
	s.rule("a withdrawn version is 410 with its reason", func(t *testing.T, s *site) {
		a := s.get(publicPath + "/modules/acme/vpc/aws/1.2.0/download")
		mustRefuse(t, a, http.StatusGone)
		if !strings.Contains(a.body, publicHost+"/acme/vpc/aws 1.2.0 is withdrawn: CVE-2026-1") {
			t.Errorf("it says %s", a.body)
		}
	})
	s.rule("what is hosted is not there, and a 404 names the other registry", func(t *testing.T, s *site) {
		for path, name := range map[string]string{
			"/modules/acme/vpc/azurerm/versions":                   "module " + publicHost + "/acme/vpc/azurerm",
			"/modules/acme/vpc/azurerm/9.0.0/download":             "module " + publicHost + "/acme/vpc/azurerm",
			"/providers/nobody/null/versions":                      "provider " + publicHost + "/nobody/null",
			"/providers/hashicorp/null/9.0.0/download/linux/amd64": publicHost + "/hashicorp/null",
		} {
			a := s.get(publicPath + path)
			mustRefuse(t, a, http.StatusNotFound)
			if !strings.Contains(a.body, name) {
				t.Errorf("%s: it says %s", path, a.body)
			}
		}
	})
}

// The API below registries/ is only about that registry, and its URLs stay there.
func TestStandInAPI(t *testing.T) {
	s := serve(t, registry(scan(t, standInTree(t, indextest.NewPublisher(t)))))
	for _, test := range []struct {
		rule, path string
		want       []string
	}{
		{"modules", "/modules", []string{"acme/vpc/aws/1.1.0", "acme/vpc/google/1.0.0"}},
		{"modules of a name", "/modules/acme/vpc", []string{"acme/vpc/aws/1.1.0", "acme/vpc/google/1.0.0"}},
		{"modules of a system", "/modules?provider=google", []string{"acme/vpc/google/1.0.0"}},
		{"a search for modules", "/modules/search?q=vpc", []string{"acme/vpc/aws/1.1.0", "acme/vpc/google/1.0.0"}},
		{"providers", "/providers", []string{"acme/unsigned/1.0.0", "hashicorp/null/3.2.0"}},
		{"providers of a namespace", "/providers/hashicorp", []string{"hashicorp/null/3.2.0"}},
		{"a search for providers", "/providers/search?q=null", []string{"hashicorp/null/3.2.0"}},
	} {
		s.rule(test.rule, func(t *testing.T, s *site) {
			var page struct{ Modules, Providers []map[string]any }
			s.json(publicPath+test.path, &page)
			if got := idsOf(append(page.Modules, page.Providers...)); !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
	s.rule("the next page is below registries/ too", func(t *testing.T, s *site) {
		var page modulePage
		s.json(publicPath+"/modules?limit=1", &page)
		next, _ := page.Meta["next_url"].(string)
		if want := publicPath + "/modules?limit=1&offset=1"; next != want {
			t.Fatalf("it is %s, want %s", next, want)
		}
		if s.json(next, &page); !slices.Equal(page.ids(), []string{"acme/vpc/google/1.0.0"}) {
			t.Errorf("it has %v", page.ids())
		}
	})
	s.rule("a list of what is hosted is another one", func(t *testing.T, s *site) {
		var page modulePage
		if s.json("/v1/modules?limit=1", &page); !slices.Equal(page.ids(), []string{"acme/vpc/azurerm/9.0.0"}) {
			t.Errorf("it has %v", page.ids())
		}
	})
	s.rule("a detail has the systems of that registry", func(t *testing.T, s *site) {
		var d moduleDetail
		if s.json(publicPath+"/modules/acme/vpc/aws", &d); !slices.Equal(d.Providers, []string{"aws", "google"}) || d.ID != "acme/vpc/aws/1.1.0" {
			t.Errorf("got %v of %s", d.Providers, d.ID)
		}
	})
	s.rule("the detail of a provider", func(t *testing.T, s *site) {
		var d struct{ ID string }
		if s.json(publicPath+"/providers/hashicorp/null", &d); d.ID != "hashicorp/null/3.2.0" {
			t.Errorf("got %s", d.ID)
		}
	})
}

// Answers below registries/ are counted by their kind.
func TestStandInIsCountedByKind(t *testing.T) {
	g := registry(scan(t, standInTree(t, indextest.NewPublisher(t))))
	var told handlers.Exchange
	g.Answered = func(_ *http.Request, e *handlers.Exchange) { told = *e }
	for path, want := range map[string]handlers.Kind{
		"/providers/hashicorp/null/versions":                   handlers.KindProviderVersions,
		"/providers/hashicorp/null/3.2.0/download/linux/amd64": handlers.KindProviderDownload,
		"/modules/acme/vpc/aws/versions":                       handlers.KindModuleVersions,
		"/modules/acme/vpc/aws/1.0.0/download":                 handlers.KindModuleDownload,
		"/modules/acme/vpc/aws":                                handlers.KindModuleDetail,
	} {
		ask(g, ownHost, publicPath+path)
		if told.Kind != want || !strings.HasPrefix(told.Address(), publicHost+"/") {
			t.Errorf("%s is %v of %s", path, told.Kind, told.Address())
		}
	}
}

// The HOSTNAME in a path has the same form as in addresses.
func TestStandInHostnames(t *testing.T) {
	snapshot := scan(t, hostTree(t))
	for _, test := range []struct {
		rule       string
		configured []string
		under      string
		want       []string
	}{
		{"another registry", nil, "b.example.com", []string{"3.0.0"}},
		{"in upper case with the default port", nil, "B.Example.com:443", []string{"3.0.0"}},
		{"with a port", nil, "a.example.com:8443", []string{"4.0.0"}},
		{"in punycode", nil, "xn--bcher-kva.example.com", []string{"5.0.0"}},
		{"in Unicode, escaped", nil, "b%C3%BCcher.example.com", []string{"5.0.0"}},
		{"a name by which the registry is asked is the registry itself", nil, "a.example.com", []string{"1.0.0", "2.0.0"}},
		{"another configured name of the registry", []string{"a.example.com", "b.example.com"}, "b.example.com", []string{"1.0.0", "3.0.0"}},
		{"nothing of that registry", nil, "c.example.com", nil},
		{"an empty label", nil, "a..example.com", nil},
		{"the place of what is hosted", nil, "-", nil},
		{"an escaped slash", nil, "a.example.com%2fx", nil},
	} {
		t.Run(test.rule, func(t *testing.T) {
			g := registry(snapshot)
			g.Hostnames = hostnames(t, test.configured...)
			for _, path := range []string{"/providers/acme/demo/versions", "/modules/acme/vpc/aws/versions"} {
				w := ask(g, "a.example.com", "/v1/registries/"+test.under+path)
				if !slices.Equal(versionsIn(w.Body.String()), test.want) || (w.Code == http.StatusOK) != (test.want != nil) {
					t.Errorf("%s: got %d %s", path, w.Code, w.Body)
				}
			}
		})
	}
}

// Below registries/ there are only paths of the registry's services.
func TestNothingElseBelowRegistries(t *testing.T) {
	g := publishing(t, new(shelf))
	for _, test := range []struct {
		method, path string
		want         int
	}{
		{"GET", "/v1/registries", fallenThrough},
		{"GET", "/v1/registries/" + publicHost, fallenThrough},
		{"GET", "/v1/registries//modules", fallenThrough},
		{"GET", publicPath + "/.well-known/terraform.json", fallenThrough},
		{"GET", publicPath + "/mirror/" + publicHost + "/hashicorp/null/index.json", fallenThrough},
		{"GET", publicPath + "/modules/" + publicHost + "/acme/vpc/aws/1.0.0/archive.tar.gz", http.StatusNotFound},
		{"GET", publicPath + "/providers/acme/demo/1.0.0/", http.StatusNotFound},
		{"PUT", publicPath + "/providers/acme/demo/1.0.0/terraform-provider-demo_1.0.0_linux_amd64.zip", http.StatusMethodNotAllowed},
		{"PUT", "/v1/registries/" + ownHost + "/modules/acme/vpc/aws/1.0.0.tar.gz", http.StatusMethodNotAllowed},
		{"DELETE", publicPath + "/providers/acme/demo/1.0.0/", http.StatusMethodNotAllowed},
	} {
		if w := serveRecorded(g, httptest.NewRequest(test.method, test.path, strings.NewReader("x"))); w.Code != test.want {
			t.Errorf("%s %s: got %d %s", test.method, test.path, w.Code, w.Body)
		}
	}
}

// The rules for addresses of the registry apply, and clients send the credentials that
// they have for it.
func TestPrivateStandIn(t *testing.T) {
	g := privately(t, registry(scan(t, standInTree(t, indextest.NewPublisher(t)))), "allow reader read "+publicHost+"/hashicorp "+publicHost+"/acme")
	s := serve(t, g)
	const download, vpc = publicPath + "/providers/hashicorp/null/3.2.0/download/linux/amd64", publicPath + "/modules/acme/vpc/aws/1.0.0/download"
	s.rule("a 401 says which token is needed", func(t *testing.T, s *site) {
		a := s.get(vpc)
		mustRefuse(t, a, http.StatusUnauthorized)
		if want := publicHost + "/acme/vpc/aws is private: give your client a token for registry.terraform.io in TF_TOKEN_registry_terraform_io"; !strings.Contains(a.body, want) {
			t.Errorf("it says %s", a.body)
		}
	})
	s.rule("who may not read it does not learn of it", func(t *testing.T, s *site) {
		mustRefuse(t, s.get(download, stranger), http.StatusNotFound)
		mustRefuse(t, s.get(vpc, stranger), http.StatusNotFound)
		var page modulePage
		if s.json(publicPath+"/modules", &page, stranger); len(page.Modules) != 0 {
			t.Errorf("the list has %v", page.ids())
		}
		if s.json(publicPath+"/modules", &page, reader); len(page.Modules) != 2 {
			t.Errorf("the reader's has %v", page.ids())
		}
	})
	s.rule("files are fetched by signed links", func(t *testing.T, s *site) {
		a := s.get(download, reader)
		var d struct {
			DownloadURL string `json:"download_url"`
			Sums        string `json:"shasums_url"`
			Signature   string `json:"shasums_signature_url"`
		}
		if err := json.Unmarshal([]byte(a.body), &d); err != nil {
			t.Fatalf("%d %s", a.StatusCode, a.body)
		}
		for _, link := range []string{d.DownloadURL, d.Sums, d.Signature, s.get(vpc, reader).Header.Get("X-Terraform-Get")} {
			if a := s.get(link); a.StatusCode != http.StatusOK || !strings.HasPrefix(a.Header.Get("Cache-Control"), "private") {
				t.Errorf("%s: got %d %v", link, a.StatusCode, a.Header)
			}
			bare, _, _ := strings.Cut(link, "?")
			mustRefuse(t, s.get(bare), http.StatusUnauthorized)
		}
	})
	s.rule("an upstream is asked for nobody who may not read it", func(t *testing.T, _ *site) {
		g := privately(t, registry(g.Snapshot()), "allow reader read "+originHost)
		g.Upstream = releasing{release: unsignedRelease(t, indextest.New(t))}
		const path = originStandIn + "/providers/acme/demo/1.0.0/download/linux/amd64"
		if w := do(g, http.MethodGet, path, reader); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "_SHA256SUMS?exp=") {
			t.Errorf("the reader gets %d %s", w.Code, w.Body)
		}
		g.Upstream = releasing{} // a call panics
		if w := do(g, http.MethodGet, path, stranger); w.Code != http.StatusNotFound {
			t.Errorf("a stranger gets %d %s", w.Code, w.Body)
		}
	})
	s.rule("OpenTofu fetches a module with the token of that registry", func(t *testing.T, s *site) {
		var location struct {
			Location string
			Use      bool `json:"use_registry_credentials"`
		}
		s.json(vpc, &location, reader, "User-Agent: OpenTofu/1.12.6")
		if a := s.get(location.Location, reader); !location.Use || a.StatusCode != http.StatusOK {
			t.Errorf("%+v: got %d %s", location, a.StatusCode, a.body)
		}
	})
}
