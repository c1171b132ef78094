package handlers_test

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	version "github.com/hashicorp/go-version"

	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
)

// moduleTree has modules in every form, with a submodule each.
func moduleTree(t testing.TB) *indextest.Tree {
	t.Helper()
	const main, sub = `output "root" { value = 1 }`, `output "sub" { value = 2 }`
	files := []string{"main.tf", main, "modules/sub/main.tf", sub}
	tree := indextest.New(t)
	tree.Write("modules/acme/vpc/aws/1.0.0.tar.gz", indextest.TarGz(files...))
	tree.Write("modules/acme/vpc/aws/1.1.0.tgz", indextest.TarGz(files...))
	tree.Write("modules/acme/vpc/aws/1.2.0.zip", indextest.Zip(files...))
	tree.Write("modules/acme/vpc/aws/v1.10.0/main.tf", main)
	tree.Write("modules/acme/vpc/aws/v1.10.0/modules/sub/main.tf", sub)
	tree.Write("modules/acme/vpc/aws/1.10.0-rc.1.zip", indextest.Zip(files...))
	tree.Write("modules/acme/vpc/aws/1.0.0+build.5.zip", indextest.Zip(files...))
	tree.Write("modules/acme/vpc/aws/2.tar.gz", indextest.TarGz(files...))
	tree.Write("modules/ACME_Corp/My_Module/aws/1.0.0/main.tf", main)
	tree.Write("modules/other.example.com/acme/vpc/aws/9.0.0/main.tf", main)
	return tree
}

// moduleVersions are those of acme/vpc/aws, the newest first.
var moduleVersions = []string{"2.0.0", "1.10.0", "1.10.0-rc.1", "1.2.0", "1.1.0", "1.0.0+build.5", "1.0.0"}

func (s *site) moduleVersions(address string) []string {
	s.t.Helper()
	var l struct {
		Modules []struct {
			Versions []struct {
				Version string `json:"version"`
			} `json:"versions"`
		} `json:"modules"`
	}
	s.json(s.resolve(s.service("modules.v1").String(), address+"/versions").String(), &l)
	if len(l.Modules) != 1 {
		s.t.Fatalf("there are %d elements in modules", len(l.Modules))
	}
	var names []string
	for _, v := range l.Modules[0].Versions {
		names = append(names, v.Version)
	}
	return names
}

// moduleLocation asks for "ns/name/system/version" and resolves what it is
// given as clients do: against the URL they asked for, and only what starts
// like a relative path.
func (s *site) moduleLocation(path string) *url.URL {
	s.t.Helper()
	u := s.resolve(s.service("modules.v1").String(), path+"/download").String()
	a := s.get(u)
	if a.StatusCode != http.StatusNoContent || a.body != "" {
		s.t.Fatalf("%s: got %d %q, want 204 without a body", path, a.StatusCode, a.body)
	}
	location := a.Header.Get("X-Terraform-Get")
	if strings.HasPrefix(location, "/") || strings.HasPrefix(location, "./") || strings.HasPrefix(location, "../") {
		return s.resolve(u, location)
	}
	return s.resolve("", location)
}

// Checklist §6.F.
func TestModuleVersions(t *testing.T) {
	s := serve(t, registry(scan(t, moduleTree(t))))
	const path = "/v1/modules/acme/vpc/aws/versions"
	first := s.get(path)

	s.rule("75 it is 200 with exactly one element in modules", func(t *testing.T, s *site) {
		if want := `{"modules":[{"versions":[{"version":"2.0.0"},{"version":"1.10.0"},`; first.StatusCode != http.StatusOK || !strings.HasPrefix(first.body, want) {
			t.Errorf("got %d %s, want %s…", first.StatusCode, first.body, want)
		}
	})
	s.rule("76 a source that is not known is absent", func(t *testing.T, s *site) {
		if strings.Contains(first.body, "source") {
			t.Errorf("got %s", first.body)
		}
	})
	for _, address := range []string{"acme/vpc/google", "acme/none/aws", "none/vpc/aws", "acme/vpc/a_b", "a.b/vpc/aws", "acme/-/aws", "-/vpc/aws", "acme/vpc/AWS-1"} {
		s.rule("77 an unknown module is 404: "+address, func(t *testing.T, s *site) {
			mustRefuse(t, s.get("/v1/modules/"+address+"/versions"), http.StatusNotFound)
			mustRefuse(t, s.get("/v1/modules/"+address+"/1.0.0/download"), http.StatusNotFound)
		})
	}
	for _, address := range []string{"acme/vpc/aws", "Acme/VPC/aws", "ACME/Vpc/aws", "%41cme/vpc/aws"} {
		s.rule("78 it is found in whatever case it is written: "+address, func(t *testing.T, s *site) {
			if got := s.moduleVersions(address); !slices.Equal(got, moduleVersions) {
				t.Errorf("got %v", got)
			}
			s.moduleLocation(address + "/1.0.0")
		})
	}
	for _, address := range []string{"ACME_Corp/My_Module/aws", "acme_corp/my_module/aws"} {
		s.rule("79 an underscore is accepted: "+address, func(t *testing.T, s *site) {
			if got := s.moduleVersions(address); !slices.Equal(got, []string{"1.0.0"}) {
				t.Errorf("got %v", got)
			}
		})
	}
	s.rule("80 versions are listed in the form they are requested in", func(t *testing.T, s *site) {
		if got := s.moduleVersions("acme/vpc/aws"); !slices.Equal(got, moduleVersions) {
			t.Errorf("got %v, want %v", got, moduleVersions)
		}
		for _, v := range moduleVersions {
			if parsed, err := version.NewVersion(v); err != nil || parsed.String() != v {
				t.Errorf("%q is requested as %v (%v)", v, parsed, err)
			}
		}
	})
	s.rule("a module of another hostname is not this registry's", func(t *testing.T, s *site) {
		if slices.Contains(s.moduleVersions("acme/vpc/aws"), "9.0.0") {
			t.Error("it is listed")
		}
	})
}

// Checklist §6.G. Answers being 204, nothing of 83 and 84 is ever sent.
func TestModuleDownload(t *testing.T) {
	s := serve(t, registry(scan(t, moduleTree(t))))
	for _, v := range moduleVersions {
		path := "acme/vpc/aws/" + v
		s.rule("82 83 84 it is 204 with X-Terraform-Get: "+v, func(t *testing.T, s *site) {
			for _, agent := range []string{"Terraform/1.15.9", "OpenTofu/1.6.0", "OpenTofu/1.12.6"} {
				a := s.get("/v1/modules/"+path+"/download", "User-Agent: "+agent)
				if a.StatusCode != http.StatusNoContent || a.Header.Get("X-Terraform-Get") == "" || a.Header.Get("Content-Type") != "" {
					t.Errorf("%s: got %d with %v", agent, a.StatusCode, a.Header)
				}
			}
			head := s.do(http.MethodHead, home+"/v1/modules/"+path+"/download")
			if head.StatusCode != http.StatusNoContent || head.Header.Get("X-Terraform-Get") == "" {
				t.Errorf("HEAD: got %d with %v", head.StatusCode, head.Header)
			}
		})
		location := s.get("/v1/modules/" + path + "/download").Header.Get("X-Terraform-Get")
		s.rule("87 90 the location is an absolute path: "+v, func(t *testing.T, s *site) {
			if !strings.HasPrefix(location, "/v1/modules/"+path+"/") {
				t.Errorf("got %q", location)
			}
		})
		s.rule("88 89 its path ends like an archive, without a subfolder: "+v, func(t *testing.T, s *site) {
			u := s.moduleLocation(path)
			if !regexp.MustCompile(`/archive\.(tar\.gz|zip)$`).MatchString(u.Path) || strings.Contains(u.Path, "//") {
				t.Errorf("got %v", u)
			}
		})
	}
	for _, path := range []string{"acme/vpc/aws/9.9.9", "acme/vpc/aws/9.0.0", "acme/vpc/aws/latest", "acme/vpc/aws/1.0", "acme/none/aws/1.0.0", "acme/vpc/aws/1.0.0%20build.5"} {
		s.rule("85 86 a missing version is 404 with one line for the user: "+path, func(t *testing.T, s *site) {
			mustRefuse(t, s.get("/v1/modules/"+path+"/download"), http.StatusNotFound)
		})
	}
	s.rule("81 a submodule needs no more than that", func(t *testing.T, s *site) {
		for _, v := range moduleVersions {
			if files := s.unpack(s.moduleLocation("acme/vpc/aws/" + v)); files["modules/sub/main.tf"] == "" {
				t.Errorf("%s has %v", v, files)
			}
		}
	})
	s.rule("87 with a public URL the location is an absolute URL", func(t *testing.T, _ *site) {
		g := registry(scan(t, moduleTree(t)))
		g.PublicURL = home
		s := serve(t, g)
		want := home + "/v1/modules/acme/vpc/aws/1.2.0/archive.zip"
		if got := s.get("/v1/modules/acme/vpc/aws/1.2.0/download").Header.Get("X-Terraform-Get"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		s.unpack(s.moduleLocation("acme/vpc/aws/1.2.0"))
	})
}

// Tools that do not care for a version ask for none, and follow a redirect to the
// newest, as the public registry sends it.
func TestModuleDownloadWithoutVersion(t *testing.T) {
	tree := indextest.New(t)
	for _, v := range []string{"1.9.0", "1.10.0", "2.0.0-rc.1", "1.2.0+build.5"} {
		tree.Write("modules/acme/vpc/aws/"+v+"/main.tf", "# a module")
	}
	tree.Write("modules/acme/young/aws/1.0.0-beta.2/main.tf", "# a module")
	tree.Write("modules/acme/young/aws/1.0.0-beta.10/main.tf", "# a module")
	tree.Write("modules/acme/built/aws/1.0.0+build.5/main.tf", "# a module")
	tree.Write("modules/"+own+"/acme/ours/aws/3.0.0/main.tf", "# a module")
	s := serve(t, registry(scan(t, tree)))
	for _, test := range []struct{ rule, module, want string }{
		{"the newest that is no prerelease", "acme/vpc/aws", "acme/vpc/aws/1.10.0"},
		{"the newest of prereleases alone", "acme/young/aws", "acme/young/aws/1.0.0-beta.10"},
		{"build metadata stays", "acme/built/aws", "acme/built/aws/1.0.0+build.5"},
		{"in whatever case it is written", "ACME/Vpc/aws", "acme/vpc/aws/1.10.0"},
		{"under the registry's name", "acme/ours/aws", "acme/ours/aws/3.0.0"},
	} {
		s.rule(test.rule, func(t *testing.T, s *site) {
			for _, method := range []string{http.MethodGet, http.MethodHead} {
				a := s.do(method, home+"/v1/modules/"+test.module+"/download")
				location := a.Header.Get("Location")
				if a.StatusCode != http.StatusFound || location != "/v1/modules/"+test.want+"/download" || a.body != "" {
					t.Fatalf("%s: got %d to %q with %q", method, a.StatusCode, location, a.body)
				}
				if got := a.Header.Get("Cache-Control"); got != "no-cache" {
					t.Errorf("%s: Cache-Control is %q", method, got)
				}
				if a := s.get(location); a.StatusCode != http.StatusNoContent || a.Header.Get("X-Terraform-Get") == "" {
					t.Errorf("there: got %d", a.StatusCode)
				}
			}
		})
	}
	for _, module := range []string{"acme/none/aws", "acme/vpc/google", "a.b/vpc/aws"} {
		s.rule("a module that is not there is 404: "+module, func(t *testing.T, s *site) {
			mustRefuse(t, s.get("/v1/modules/"+module+"/download"), http.StatusNotFound)
		})
	}
	s.rule("a public URL makes it absolute", func(t *testing.T, _ *site) {
		g := registry(scan(t, tree))
		g.PublicURL = home
		if got, want := ask(g, own, "/v1/modules/acme/vpc/aws/download").Header().Get("Location"), home+"/v1/modules/acme/vpc/aws/1.10.0/download"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
	s.rule("rights are those of the list", func(t *testing.T, _ *site) {
		g := privately(t, registry(scan(t, tree)), "allow reader read acme")
		for caller, want := range map[string]int{nobody: http.StatusUnauthorized, garbage: http.StatusUnauthorized, stranger: http.StatusNotFound, reader: http.StatusFound} {
			for _, path := range []string{"/v1/modules/acme/vpc/aws/download", "/v1/modules/acme/none/aws/download"} {
				w := askAs(g, caller, own, path)
				if strings.Contains(path, "none") && want == http.StatusFound {
					want = http.StatusNotFound
				}
				if w.Code != want {
					t.Errorf("%s as %q: got %d, want %d", path, caller, w.Code, want)
				}
			}
		}
		if w := askAs(g, reader, own, "/v1/modules/acme/vpc/aws/download"); w.Header().Get("Cache-Control") != "private, no-cache" {
			t.Errorf("Cache-Control is %q", w.Header().Get("Cache-Control"))
		}
	})
}
