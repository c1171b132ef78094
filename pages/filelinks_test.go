package pages

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	svchost "github.com/hashicorp/terraform-svchost"
	"golang.org/x/net/html/atom"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
)

// The signed links on the pages of private packages lead to the files, whether these lie under
// the registry's own HOSTNAME, under none, or under another one.
func TestSignedLinksOnPagesLeadToFiles(t *testing.T) {
	files := indextest.New(t)
	publisher := indextest.NewPublisher(t)
	files.Keys("acme", publisher)
	for version, dir := range map[string]string{"1.0.0": "", "2.0.0": "registry.example.com/"} {
		files.Provider(dir+"acme/demo", version, "linux_amd64").Signed(publisher)
		files.Write("modules/"+dir+"acme/vpc/aws/"+version+".zip", indextest.Zip("main.tf", "# a module"))
	}
	files.Provider("registry.terraform.io/acme/other", "1.0.0", "linux_amd64")
	files.Write("modules/registry.terraform.io/acme/tags/null/1.0.0.zip", indextest.Zip("main.tf", "# a module"))
	files.Provider("registry.terraform.io/open/demo", "1.0.0", "linux_amd64")
	s := siteOf(t, snapshotOf(t, files), "allow ann read *", "allow anonymous read open")
	s.Registry.Hostnames = []svchost.Hostname{"registry.example.com"}
	keys := access.NewLinkKeys(time.Now())
	s.Registry.Links = &access.Links{Life: time.Hour, Keys: func() *access.LinkKeys { return keys }}

	ofProvider := func(name, version string) []string {
		base := "terraform-provider-" + name + "_" + version
		return []string{base + "_SHA256SUMS", base + "_SHA256SUMS.sig", base + "_linux_amd64.zip"}
	}
	for _, test := range []struct {
		rule, path string
		links      []string
	}{
		{"a release under no HOSTNAME", "/providers/acme/demo/1.0.0?tab=packages", ofProvider("demo", "1.0.0")},
		{"a release under the registry's HOSTNAME", "/providers/acme/demo?tab=packages", ofProvider("demo", "2.0.0")},
		{"a release under no HOSTNAME, by the registry's", "/registries/registry.example.com/providers/acme/demo/1.0.0?tab=packages", ofProvider("demo", "1.0.0")},
		{"a mirrored release", "/registries/registry.terraform.io/providers/acme/other?tab=packages", ofProvider("other", "1.0.0")},
		{"a mirrored release of a namespace that is public where it is hosted", "/registries/registry.terraform.io/providers/open/demo?tab=packages", ofProvider("demo", "1.0.0")},
		{"a module under no HOSTNAME", "/modules/acme/vpc/aws/1.0.0", []string{"archive.zip"}},
		{"a module under the registry's HOSTNAME", "/modules/acme/vpc/aws", []string{"archive.zip"}},
		{"a module under no HOSTNAME, by the registry's", "/registries/registry.example.com/modules/acme/vpc/aws/1.0.0", []string{"archive.zip"}},
		{"a mirrored module", "/registries/registry.terraform.io/modules/acme/tags/null", []string{"archive.zip"}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			var names []string
			for _, a := range elements(parse(t, s.get(test.path, "ann")), atom.A) {
				href, err := url.Parse(attr(a, "href"))
				if err != nil || !href.Query().Has("sig") {
					continue
				}
				names = append(names, path.Base(href.Path))
				w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, href.String(), nil)
				r.Host = "registry.example.com"
				if !s.Registry.ServeHTTP(w, r) || w.Code != http.StatusOK {
					t.Errorf("%s: got %d %s", href, w.Code, w.Body)
				}
			}
			slices.Sort(names)
			if !slices.Equal(names, test.links) {
				t.Errorf("the page links to %q, want %q", names, test.links)
			}
		})
	}
}

// The provider of a source without a hostname may be mirrored from either public registry.
func TestDependenciesFromEitherPublicRegistry(t *testing.T) {
	for _, hostname := range []string{"registry.terraform.io", "registry.opentofu.org"} {
		files := indextest.New(t)
		files.Write("modules/acme/vpc/aws/1.0.0.zip", indextest.Zip("main.tf", "terraform {\n  required_providers {\n    demo = { source = \"acme/demo\" }\n  }\n}\n"))
		files.ProviderIn("providers/"+hostname+"/acme/demo", "demo", "1.0.0", "linux_amd64").Checksums()
		s := siteOf(t, snapshotOf(t, files))
		link := `href="/registries/` + hostname + `/providers/acme/demo"`
		if body := s.get("/modules/acme/vpc/aws?tab=dependencies", "").Body.String(); !strings.Contains(body, link) {
			t.Errorf("%s: the dependencies have no %s", hostname, link)
		}
		if body := s.get("/registries/"+hostname+"/providers/acme/demo?tab=used-by", "").Body.String(); !strings.Contains(body, "acme/vpc/aws") {
			t.Errorf("%s: it is used by nothing", hostname)
		}
	}
}
