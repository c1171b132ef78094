package handlers_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/pull"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/treetest"
)

const notices = `
source = "https://github.com/acme/vpc"
deprecated "< 1.1.0" {
  reason = "use 1.1"
  link   = "https://example.com/upgrade"
}
withdrawn "1.2.0" {
  reason = "CVE-2026-1"
  link   = "https://example.com/cve"
}
`

// noticesTree has three versions of a hosted provider and module and of a mirrored
// provider: one deprecated, one withdrawn, one neither.
func noticesTree(t testing.TB) *indextest.Tree {
	files := indextest.New(t)
	for _, v := range []string{"1.0.0", "1.1.0", "1.2.0"} {
		files.Provider("acme/demo", v, "linux_amd64")
		files.Provider("a.example/acme/demo", v, "linux_amd64")
		files.Write("modules/acme/vpc/aws/"+v+".tar.gz", indextest.TarGz("main.tf", "# "+v))
	}
	for _, folder := range []string{"providers/acme/demo", "providers/a.example/acme/demo", "modules/acme/vpc/aws"} {
		files.Write(folder+"/registry.hcl", notices)
	}
	return files
}

func TestDeprecated(t *testing.T) {
	s := serve(t, registry(scan(t, noticesTree(t))))
	s.rule("20 21 the provider's list has a warning of what is withdrawn, and one for each notice that deprecates, which name the versions", func(t *testing.T, s *site) {
		var list struct{ Warnings []string }
		s.json("/v1/providers/acme/demo/versions", &list)
		if !slices.Equal(list.Warnings, []string{
			"withdrawn, use other versions than 1.2.0 (CVE-2026-1)",
			"version 1.0.0 is deprecated: use 1.1 (https://example.com/upgrade)",
		}) {
			t.Errorf("got %q", list.Warnings)
		}
	})
	s.rule("a module's list has the reason in the shape of HCP Terraform, and the source", func(t *testing.T, s *site) {
		body := s.get("/v1/modules/acme/vpc/aws/versions").body
		for _, want := range []string{
			`{"modules":[{"source":"https://github.com/acme/vpc","versions":[{"version":"1.1.0","deprecation":null,`,
			`{"version":"1.0.0","deprecation":{"reason":"use 1.1","link":"https://example.com/upgrade"},`,
		} {
			if !strings.Contains(body, want) {
				t.Errorf("got %s, without %s", body, want)
			}
		}
	})
	s.rule("without a version, the newest that is not deprecated is downloaded", func(t *testing.T, s *site) {
		if a := s.get("/v1/modules/acme/vpc/aws/download"); !strings.HasSuffix(a.Header.Get("Location"), "/1.1.0/download") {
			t.Errorf("got %q", a.Header.Get("Location"))
		}
	})
	s.rule("what is deprecated is downloaded as before", func(t *testing.T, s *site) {
		s.install("/v1/providers/acme/demo/1.0.0/download/linux/amd64")
	})
}

// Withdrawing a version also withdraws the builds that clients take for it. Withdrawing
// a build withdraws no other.
func TestWithdrawnBuilds(t *testing.T) {
	files := indextest.New(t)
	for _, v := range []string{"1.0.0", "1.0.0+a", "1.1.0", "1.1.0+a"} {
		files.Provider("acme/demo", v, "linux_amd64")
		files.Write("modules/acme/vpc/aws/"+v+".tar.gz", indextest.TarGz("main.tf", "# "+v))
	}
	for _, folder := range []string{"providers/acme/demo", "modules/acme/vpc/aws"} {
		files.Write(folder+"/registry.hcl", "withdrawn \"1.0.0\" {}\nwithdrawn \"1.1.0+a\" {}\n")
	}
	s := serve(t, registry(scan(t, files)))
	s.rule("lists have what is left", func(t *testing.T, s *site) {
		if got := s.versions("acme/demo").names(); !slices.Equal(got, []string{"1.1.0"}) {
			t.Errorf("of the provider they are %q", got)
		}
		if got := s.moduleVersions("acme/vpc/aws"); !slices.Equal(got, []string{"1.1.0"}) {
			t.Errorf("of the module they are %q", got)
		}
	})
	for v, want := range map[string]int{"1.0.0": http.StatusGone, "1.0.0+a": http.StatusGone, "1.0.0+b": http.StatusGone, "1.1.0+a": http.StatusGone, "1.1.0+b": http.StatusNotFound} {
		for _, path := range []string{"/v1/providers/acme/demo/" + v + "/download/linux/amd64", "/v1/modules/acme/vpc/aws/" + v + "/download"} {
			s.rule("a request for a version that is not offered: "+path, func(t *testing.T, s *site) {
				if a := s.get(path); a.StatusCode != want {
					t.Errorf("got %d, want %d", a.StatusCode, want)
				}
			})
		}
	}
	s.rule("a version of which only a build is withdrawn is installed", func(t *testing.T, s *site) {
		s.install("/v1/providers/acme/demo/1.1.0/download/linux/amd64")
	})
}

func TestWithdrawn(t *testing.T) {
	s := serve(t, registry(scan(t, noticesTree(t))))
	for _, path := range []string{
		"/v1/providers/acme/demo/versions", "/v1/modules/acme/vpc/aws/versions",
		"/v1/mirror/a.example/acme/demo/index.json", "/v1/mirror/" + ownHost + "/acme/demo/index.json",
	} {
		s.rule("it is in no list: "+path, func(t *testing.T, s *site) {
			if a := s.get(path); a.StatusCode != http.StatusOK || strings.Contains(a.body, `"1.2.0"`) || !strings.Contains(a.body, "1.1.0") {
				t.Errorf("got %d %s", a.StatusCode, a.body)
			}
		})
	}
	s.rule("if all are, the list is gone, with the reason", func(t *testing.T, _ *site) {
		files := noticesTree(t)
		for _, folder := range []string{"providers/acme/demo", "modules/acme/vpc/aws"} {
			files.Write(folder+"/registry.hcl", "withdrawn \">= 1.2\" {\n  reason = \"CVE-2026-1\"\n}\nwithdrawn \"< 1.2\" {}\n")
		}
		s := serve(t, registry(scan(t, files)))
		for path, says := range map[string]string{
			"/v1/providers/acme/demo/versions":  "all versions of acme/demo are withdrawn, the newest one: CVE-2026-1",
			"/v1/modules/acme/vpc/aws/versions": "all versions of acme/vpc/aws are withdrawn, the newest one: CVE-2026-1",
		} {
			a := s.get(path)
			mustRefuse(t, a, http.StatusGone)
			if !strings.Contains(a.body, says) {
				t.Errorf("got %s", a.body)
			}
		}
		mustRefuse(t, s.get("/v1/mirror/"+ownHost+"/acme/demo/index.json"), http.StatusNotFound)
	})
	const zip = "terraform-provider-demo_1.2.0_linux_amd64.zip"
	for _, path := range []string{
		"/v1/providers/acme/demo/1.2.0/download/linux/amd64",
		"/v1/mirror/-/acme/demo/" + zip, "/v1/mirror/" + ownHost + "/acme/demo/" + zip, "/v1/mirror/a.example/acme/demo/" + zip,
		"/v1/mirror/-/acme/demo/terraform-provider-demo_1.2.0_SHA256SUMS", "/v1/mirror/-/acme/demo/terraform-provider-demo_1.2.0_SHA256SUMS.sig",
		"/v1/modules/acme/vpc/aws/1.2.0/download", "/v1/modules/acme/vpc/aws/1.2.0/archive.tar.gz",
	} {
		s.rule("it is gone, with the reason: "+path, func(t *testing.T, s *site) {
			a := s.get(path)
			mustRefuse(t, a, http.StatusGone)
			if !strings.Contains(a.body, "1.2.0 is withdrawn: CVE-2026-1 (https://example.com/cve)") {
				t.Errorf("got %s", a.body)
			}
		})
	}
	for _, host := range []string{"a.example", ownHost} {
		s.rule("66 the mirror's VERSION.json is empty: "+host, func(t *testing.T, s *site) {
			if a := s.get("/v1/mirror/" + host + "/acme/demo/1.2.0.json"); a.StatusCode != http.StatusOK || a.body != `{"archives":{}}` {
				t.Errorf("got %d %s", a.StatusCode, a.body)
			}
		})
	}
	s.rule("others are downloaded as before", func(t *testing.T, s *site) {
		s.install("/v1/providers/acme/demo/1.1.0/download/linux/amd64")
		s.moduleLocation("acme/vpc/aws/1.1.0")
	})
	s.rule("a version that is not there and not withdrawn is absent", func(t *testing.T, s *site) {
		mustRefuse(t, s.get("/v1/modules/acme/vpc/aws/1.3.0/download"), http.StatusNotFound)
	})
}

// A version that a mirror withdraws is neither fetched nor handed out, even while its
// registry.hcl cannot be read, or the registry has just started and knows nothing yet.
func TestWithdrawnWhileTheTreeCannotBeRead(t *testing.T) {
	origin, _ := signedTree(t)
	origin.Write("modules/acme/vpc/aws/1.1.0.tar.gz", indextest.TarGz("main.tf", "# the origin's"))
	const folder, zip = "providers/" + originHost + "/acme/demo", "terraform-provider-demo_1.1.0_linux_amd64.zip"
	const moduleFolder = "modules/" + originHost + "/acme/vpc/aws"
	for _, unread := range []string{folder + "/registry.hcl", folder, "providers/" + originHost + "/acme", moduleFolder + "/registry.hcl", moduleFolder, "modules/" + originHost + "/acme/vpc"} {
		for _, there := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, in the tree: %v", unread, there), func(t *testing.T) {
				p := pullThrough(t, origin, pull.Policy{Modules: true}, func(files *indextest.Tree) {
					for _, folder := range []string{folder, moduleFolder} {
						files.Write(folder+"/registry.hcl", "withdrawn \"1.1.0\" {\n  reason = \"malware\"\n}\n")
					}
					if there {
						files.ProviderIn(folder, "demo", "1.1.0", "linux_amd64")
						files.Write(moduleFolder+"/1.1.0.tar.gz", indextest.TarGz("main.tf", "# malware"))
					}
				})
				p.tree.Fs = treetest.FaultyFs{Fs: p.tree.Fs, Faults: &p.faults}
				p.faults.When(func(_ int, o treetest.Operation) error {
					if o.Path == unread {
						return syscall.EACCES
					}
					return nil
				})
				p.registry.Changed()
				for _, path := range []string{
					originPath + "demo/" + zip, "/v1/registries/" + originHost + "/providers/acme/demo/1.1.0/download/linux/amd64",
					"/v1/registries/" + originHost + "/modules/acme/vpc/aws/1.1.0/download", "/v1/modules/" + originHost + "/acme/vpc/aws/1.1.0/archive.tar.gz",
				} {
					if a := p.get(path); a.StatusCode != http.StatusServiceUnavailable && a.StatusCode != http.StatusGone {
						t.Errorf("%s: got %d %s", path, a.StatusCode, a.body)
					}
				}
				if p.askedFor(zip)+p.askedFor("archive.tar.gz") > 0 {
					t.Errorf("the origin was asked for it: %q", p.asked)
				}
				p.faults.End()
				p.registry.Changed()
				mustRefuse(t, p.get(originPath+"demo/"+zip), http.StatusGone)
				mustRefuse(t, p.get("/v1/registries/"+originHost+"/modules/acme/vpc/aws/1.1.0/download"), http.StatusGone)
			})
		}
	}
}

// The registry.hcl under a HOSTNAME and the one without HOSTNAME both withdraw versions
// that the registry offers as HOSTNAME, and no others.
func TestWithdrawnUnderOwnName(t *testing.T) {
	const zip = "terraform-provider-demo_1.0.0_linux_amd64.zip"
	for _, dir := range []string{"", ownHost + "/"} {
		files := indextest.New(t)
		files.Provider("acme/demo", "1.0.0", "linux_amd64")
		files.Provider(ownHost+"/acme/demo", "1.0.0", "linux_amd64")
		files.Write("modules/acme/vpc/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", "# hosted"))
		files.Write("modules/"+ownHost+"/acme/vpc/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", "# named"))
		files.Write("providers/"+dir+"acme/demo/registry.hcl", `withdrawn "1.0.0" {}`)
		files.Write("modules/"+dir+"acme/vpc/aws/registry.hcl", `withdrawn "1.0.0" {}`)
		g := registry(scan(t, files))
		g.Hostnames = hostnames(t, ownHost)
		for _, path := range []string{
			"/v1/providers/acme/demo/1.0.0/download/linux/amd64", "/v1/mirror/-/acme/demo/" + zip, "/v1/mirror/" + ownHost + "/acme/demo/" + zip,
			"/v1/modules/acme/vpc/aws/1.0.0/download", "/v1/modules/acme/vpc/aws/1.0.0/archive.tar.gz", "/v1/modules/" + ownHost + "/acme/vpc/aws/1.0.0/archive.tar.gz",
		} {
			if w := do(g, http.MethodGet, path); w.Code != http.StatusGone {
				t.Errorf("withdrawn in %q: %s gets %d %s", dir, path, w.Code, w.Body)
			}
		}
	}
	files := indextest.New(t)
	files.Provider("acme/demo", "1.0.0", "linux_amd64")
	files.Write("providers/other.example/acme/demo/registry.hcl", `withdrawn "1.0.0" {}`)
	if w := do(registry(scan(t, files)), http.MethodGet, "/v1/mirror/-/acme/demo/"+zip); w.Code != http.StatusOK {
		t.Errorf("what another registry's is withdrawn: %d", w.Code)
	}
}

// Files have the same URLs whichever registry.hcl withdraws them. They are not served while one
// that may withdraw them could not be read since the start.
func TestWithdrawnUnderOwnNameWhileTheTreeCannotBeRead(t *testing.T) {
	const zip = "terraform-provider-demo_1.0.0_linux_amd64.zip"
	providers := []string{"/v1/providers/acme/demo/1.0.0/download/linux/amd64", "/v1/mirror/-/acme/demo/" + zip, "/v1/mirror/" + ownHost + "/acme/demo/" + zip}
	modules := []string{"/v1/modules/acme/vpc/aws/1.0.0/download", "/v1/modules/acme/vpc/aws/1.0.0/archive.tar.gz", "/v1/modules/" + ownHost + "/acme/vpc/aws/1.0.0/archive.tar.gz"}
	files := indextest.New(t)
	for _, host := range []string{"", ownHost + "/", "other.example/"} {
		files.Provider(host+"acme/demo", "1.0.0", "linux_amd64")
		files.Write("modules/"+host+"acme/vpc/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", "# "+host))
		files.Write("providers/"+host+"acme/demo/registry.hcl", `deprecated "1.0.0" {}`)
		files.Write("modules/"+host+"acme/vpc/aws/registry.hcl", `deprecated "1.0.0" {}`)
	}
	for _, test := range []struct {
		rule, unread string
		withheld     []string
	}{
		{"nothing", "none", nil},
		{"the provider's registry.hcl under the registry's name", "providers/" + ownHost + "/acme/demo/registry.hcl", providers},
		{"the provider's folder under the registry's name", "providers/" + ownHost + "/acme/demo", providers},
		{"the namespace under the registry's name", "providers/" + ownHost + "/acme", providers},
		{"the provider's folder under no name", "providers/acme/demo", providers},
		{"the module's registry.hcl under the registry's name", "modules/" + ownHost + "/acme/vpc/aws/registry.hcl", modules},
		{"the module's folder under the registry's name", "modules/" + ownHost + "/acme/vpc/aws", modules},
		{"the module's registry.hcl under no name", "modules/acme/vpc/aws/registry.hcl", modules},
		{"the folders of another registry", "providers/other.example/acme/demo", nil},
	} {
		t.Run(test.rule, func(t *testing.T) {
			g := registry(scanWithout(t, files, test.unread))
			g.Hostnames = hostnames(t, ownHost)
			for _, path := range slices.Concat(providers, modules) {
				withheld := slices.Contains(test.withheld, path)
				if w := do(g, http.MethodGet, path); withheld && w.Code != http.StatusServiceUnavailable || !withheld && w.Code/100 != 2 {
					t.Errorf("%s gets %d %s", path, w.Code, w.Body)
				}
			}
		})
	}
}

// A user who may not read a provider or module does not learn that it is withdrawn. A
// link signed before the withdrawal does not open it.
func TestWithdrawnInPrivate(t *testing.T) {
	files := namesakes(t)
	before := scan(t, files)
	files.Write("providers/acme/demo/registry.hcl", `withdrawn "1.0.0" {}`).Write("modules/acme/vpc/aws/registry.hcl", `withdrawn "1.0.0" {}`)
	now := before
	g := privately(t, &handlers.Registry{Snapshot: func() *index.Snapshot { return now }}, "allow reader read *")
	link := downloadLink(t, g, ownHost)
	packed := askAs(g, reader, ownHost, "/v1/modules/acme/vpc/aws/1.0.0/download").Header().Get("X-Terraform-Get")
	now = scan(t, files)
	for _, path := range []string{link, packed} {
		if w := askAs(g, "", ownHost, path); w.Code != http.StatusGone {
			t.Errorf("with a link, %s gets %d %s", path, w.Code, w.Body)
		}
	}
	for _, path := range []string{"/v1/providers/acme/demo/1.0.0/download/linux/amd64", "/v1/modules/acme/vpc/aws/1.0.0/download"} {
		if w := askAs(g, reader, ownHost, path); w.Code != http.StatusGone {
			t.Errorf("who may read gets %d %s", w.Code, w.Body)
		}
		if w := askAs(g, "", ownHost, path); w.Code != http.StatusUnauthorized {
			t.Errorf("who is not known gets %d %s", w.Code, w.Body)
		}
		if w := askAs(g, stranger, ownHost, path); w.Code != http.StatusNotFound || strings.Contains(w.Body.String(), "withdrawn") {
			t.Errorf("who may not read gets %d %s", w.Code, w.Body)
		}
	}
}

// Pages tell which versions are withdrawn, even if no version is offered. They tell
// only users who may read the package.
func TestViewOfWithdrawn(t *testing.T) {
	files := noticesTree(t)
	files.Write("modules/acme/gone/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", "#")).Write("modules/acme/gone/aws/registry.hcl", `withdrawn ">= 0" { reason = "gone" }`)
	files.Write("modules/"+ownHost+"/acme/vpc/aws/registry.hcl", `withdrawn "1.0.0" {}`)
	g := registry(scan(t, files))
	g.Hostnames = hostnames(t, ownHost)
	privately(t, g, "allow reader read *")
	for _, test := range []struct{ credentials, host, address, versions string }{
		{reader, "", "acme/demo", "1.2.0"},
		{reader, "", "acme/vpc/aws", "1.2.0 1.0.0"},
		{reader, "", "acme/gone/aws", "1.0.0"},
		{reader, "a.example", "acme/demo", "1.2.0"},
		{reader, "", "acme/none", ""},
		{stranger, "", "acme/gone/aws", "error"},
		{"", "", "acme/demo", "error"},
	} {
		names := strings.Split(test.address, "/")
		a, err := address.ParseProvider(test.host, names[0], names[1])
		if len(names) == 3 {
			a, err = address.ParseModule(test.host, names[0], names[1], names[2])
		}
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Host = ownHost
		if _, token, ok := strings.Cut(test.credentials, ": "); ok {
			r.Header.Set("Authorization", token)
		}
		var versions []string
		err = g.Visit(r, func(v *handlers.View) error {
			list, err := v.Withdrawn(a)
			for _, w := range list {
				versions = append(versions, w.Version)
			}
			return err
		})
		if err != nil {
			versions = []string{"error"}
		}
		if got := strings.Join(versions, " "); got != test.versions {
			t.Errorf("of %s%s, %q gets %q (%v)", test.host, test.address, test.credentials, got, err)
		}
	}
}

// A version that the operator withdraws is not fetched from its origin either, whether
// or not it was fetched before.
func TestWithdrawnFromAnOrigin(t *testing.T) {
	origin, publisher := signedTree(t)
	origin.Provider("acme/demo", "1.2.0", "linux_amd64").Signed(publisher)
	const zip = "terraform-provider-demo_1.2.0_linux_amd64.zip"
	p := pullThrough(t, origin, pull.Policy{}, func(files *indextest.Tree) {
		files.Write("providers/"+originHost+"/acme/demo/registry.hcl", notices)
	})
	p.rule("index.json does not have it", func(t *testing.T, s *site) {
		if got := s.get(originPath + "demo/index.json").body; got != `{"versions":{"1.1.0":{},"1.0.0":{}}}` {
			t.Errorf("got %s", got)
		}
	})
	p.rule("VERSION.json is empty", func(t *testing.T, s *site) {
		if got := s.get(originPath + "demo/1.2.0.json").body; got != `{"archives":{}}` {
			t.Errorf("got %s", got)
		}
	})
	p.rule("the package is gone", func(t *testing.T, s *site) {
		mustRefuse(t, s.get(originPath+"demo/"+zip), http.StatusGone)
	})
	if p.askedFor(zip)+p.askedFor("demo/1.2.0/download/linux/amd64") > 0 {
		t.Errorf("the origin was asked for %q", p.asked)
	}
	p.rule("index.json has it again as soon as it is restored, and not from a cache", func(t *testing.T, s *site) {
		p.tree.Remove("providers/" + originHost + "/acme/demo/registry.hcl")
		p.registry.Changed()
		if got := s.get(originPath + "demo/index.json").body; got != `{"versions":{"1.2.0":{},"1.1.0":{},"1.0.0":{}}}` {
			t.Errorf("got %s", got)
		}
	})
}

// While the folder of a package has not been readable since the start, its versions may
// be withdrawn, so none is fetched.
func TestWhatCannotBeReadIsNotFetched(t *testing.T) {
	for _, folder := range []string{"providers", "providers/" + originHost, "providers/" + originHost + "/acme", "providers/" + originHost + "/acme/demo", "providers/" + originHost + "/acme/demo/registry.hcl"} {
		t.Run(folder, func(t *testing.T) {
			origin, _ := signedTree(t)
			p := pullThrough(t, origin, pull.Policy{}, func(files *indextest.Tree) {
				files.Write("providers/"+originHost+"/acme/demo/registry.hcl", "withdrawn \"1.1.0\" {\n  reason = \"malware\"\n}\n")
			})
			var faults treetest.Faults
			p.tree.Fs = treetest.FaultyFs{Fs: p.tree.Fs, Faults: &faults}
			faults.When(func(_ int, o treetest.Operation) error {
				if o.Name == "open" && o.Path == folder {
					return syscall.ESTALE
				}
				return nil
			})
			p.registry.Changed()
			p.asked = nil
			const zip = originPath + "demo/terraform-provider-demo_1.1.0_linux_amd64.zip"
			for _, path := range []string{originPath + "demo/index.json", originPath + "demo/1.1.0.json", zip} {
				if status := p.get(path).StatusCode; status != http.StatusServiceUnavailable {
					t.Errorf("%s is answered with %d", path, status)
				}
			}
			if len(p.asked) > 0 {
				t.Errorf("the origin was asked for %v", p.asked)
			}
			faults.End()
			p.registry.Changed()
			if status := p.get(zip).StatusCode; status != http.StatusGone {
				t.Errorf("once it can be read, the package is answered with %d", status)
			}
		})
	}
}
