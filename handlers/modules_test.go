package handlers_test

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io"
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
	folders := indextest.New(t)
	folders.Write("modules/acme/vpc/aws/1.0.0.tar.gz", indextest.TarGz(files...))
	folders.Write("modules/acme/vpc/aws/1.1.0.tgz", indextest.TarGz(files...))
	folders.Write("modules/acme/vpc/aws/1.2.0.zip", indextest.Zip(files...))
	folders.Write("modules/acme/vpc/aws/v1.10.0/main.tf", main)
	folders.Write("modules/acme/vpc/aws/v1.10.0/modules/sub/main.tf", sub)
	folders.Write("modules/acme/vpc/aws/1.10.0-rc.1.zip", indextest.Zip(files...))
	folders.Write("modules/acme/vpc/aws/1.0.0+build.5.zip", indextest.Zip(files...))
	folders.Write("modules/acme/vpc/aws/2.tar.gz", indextest.TarGz(files...))
	folders.Write("modules/ACME_Corp/My_Module/aws/1.0.0/main.tf", main)
	folders.Write("modules/other.example.com/acme/vpc/aws/9.0.0/main.tf", main)
	return folders
}

// moduleVersions are the versions of acme/vpc/aws, the newest first.
var moduleVersions = []string{"2.0.0", "1.10.0", "1.10.0-rc.1", "1.2.0", "1.1.0", "1.0.0", "1.0.0+build.5"}

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

// moduleLocation asks for "ns/name/system/version" and resolves the location as clients
// do: against the requested URL, and only if it begins like a relative path.
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

// Checklist, group F.
func TestModuleVersions(t *testing.T) {
	s := serve(t, registry(scan(t, moduleTree(t))))
	const path = "/v1/modules/acme/vpc/aws/versions"
	first := s.get(path)

	s.rule("75 it is 200 with exactly one element in modules", func(t *testing.T, s *site) {
		const want = `{"modules":[{"versions":[{"version":"2.0.0","published_at":"2026-01-02T03:04:05Z","hashes":["h1:`
		if first.StatusCode != http.StatusOK || !strings.HasPrefix(first.body, want) {
			t.Errorf("got %d %s, want %s…", first.StatusCode, first.body, want)
		}
	})
	s.rule("each version has the hashes and the size of its package", func(t *testing.T, s *site) {
		var list struct {
			Modules []struct {
				Versions []struct {
					Version string
					Hashes  []string
					Size    int `json:"package_size"`
				}
			}
		}
		s.json(path, &list)
		for _, v := range list.Modules[0].Versions {
			body := s.get(s.moduleLocation("acme/vpc/aws/" + v.Version).String()).body
			sum := sha256.Sum256([]byte(body))
			if len(v.Hashes) != 2 || !strings.HasPrefix(v.Hashes[0], "h1:") || v.Hashes[1] != "zh:"+hex.EncodeToString(sum[:]) || v.Size != len(body) {
				t.Errorf("%+v of a package with %d bytes, zh:%x", v, len(body), sum)
			}
		}
	})
	s.rule("76 an unknown source is absent", func(t *testing.T, s *site) {
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
		s.rule("78 case does not matter: "+address, func(t *testing.T, s *site) {
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
	s.rule("a mirrored module is not listed", func(t *testing.T, s *site) {
		if slices.Contains(s.moduleVersions("acme/vpc/aws"), "9.0.0") {
			t.Error("it is listed")
		}
	})
}

// Checklist, group G. 83 and 84 do not apply to public modules, whose answers are
// always 204; for private ones see TestModulesForOpenTofu.
func TestModuleDownload(t *testing.T) {
	s := serve(t, registry(scan(t, moduleTree(t))))
	for _, v := range moduleVersions {
		path := "acme/vpc/aws/" + v
		s.rule("82 it is 204 with X-Terraform-Get: "+v, func(t *testing.T, s *site) {
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
	s.rule("81 a submodule needs nothing else", func(t *testing.T, s *site) {
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

// Tools that ask for a module without a version follow a redirect to the newest
// one, as the public registry sends it.
func TestModuleDownloadWithoutVersion(t *testing.T) {
	files := indextest.New(t)
	for _, v := range []string{"1.9.0", "1.10.0", "2.0.0-rc.1", "1.2.0+build.5"} {
		files.Write("modules/acme/vpc/aws/"+v+"/main.tf", "# a module")
	}
	files.Write("modules/acme/young/aws/1.0.0-beta.2/main.tf", "# a module")
	files.Write("modules/acme/young/aws/1.0.0-beta.10/main.tf", "# a module")
	files.Write("modules/acme/built/aws/1.0.0+build.5/main.tf", "# a module")
	files.Write("modules/acme/twice/aws/1.0.0+build.5/main.tf", "# a module")
	files.Write("modules/acme/twice/aws/1.0.0/main.tf", "# a module")
	files.Write("modules/"+ownHost+"/acme/ours/aws/3.0.0/main.tf", "# a module")
	s := serve(t, registry(scan(t, files)))
	for _, test := range []struct{ rule, module, want string }{
		{"the newest that is no prerelease", "acme/vpc/aws", "acme/vpc/aws/1.10.0"},
		{"the newest prerelease if there is nothing else", "acme/young/aws", "acme/young/aws/1.0.0-beta.10"},
		{"the plain one of several builds", "acme/twice/aws", "acme/twice/aws/1.0.0"},
		{"build metadata stays", "acme/built/aws", "acme/built/aws/1.0.0+build.5"},
		{"in upper case", "ACME/Vpc/aws", "acme/vpc/aws/1.10.0"},
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
					t.Errorf("the redirect's target: got %d", a.StatusCode)
				}
			}
		})
	}
	for _, module := range []string{"acme/none/aws", "acme/vpc/google", "a.b/vpc/aws"} {
		s.rule("a missing module is 404: "+module, func(t *testing.T, s *site) {
			mustRefuse(t, s.get("/v1/modules/"+module+"/download"), http.StatusNotFound)
		})
	}
	s.rule("it stays on the host that was asked, so that clients keep their token (checklist 30)", func(t *testing.T, _ *site) {
		for public, want := range map[string]string{home: "", "https://public.example.com/terraform": "/terraform"} {
			g := registry(scan(t, files))
			g.PublicURL, g.BaseURL = public, func(*http.Request) string { return home }
			want += "/v1/modules/acme/vpc/aws/1.10.0/download"
			if got := ask(g, ownHost, "/v1/modules/acme/vpc/aws/download").Header().Get("Location"); got != want {
				t.Errorf("%s: got %q, want %q", public, got, want)
			}
		}
	})
	s.rule("the rules are those of the list of versions", func(t *testing.T, _ *site) {
		g := privately(t, registry(scan(t, files)), "allow reader read acme")
		for caller, want := range map[string]int{anonymous: http.StatusUnauthorized, garbage: http.StatusUnauthorized, stranger: http.StatusNotFound, reader: http.StatusFound} {
			for _, path := range []string{"/v1/modules/acme/vpc/aws/download", "/v1/modules/acme/none/aws/download"} {
				w := askAs(g, caller, ownHost, path)
				if strings.Contains(path, "none") && want == http.StatusFound {
					want = http.StatusNotFound
				}
				if w.Code != want {
					t.Errorf("%s as %q: got %d, want %d", path, caller, w.Code, want)
				}
			}
		}
		if w := askAs(g, reader, ownHost, "/v1/modules/acme/vpc/aws/download"); w.Header().Get("Cache-Control") != "private, no-cache" {
			t.Errorf("Cache-Control is %q", w.Header().Get("Cache-Control"))
		}
	})
}

// hostedTree has modules as code hosts pack them: in one folder of the archive.
func hostedTree(t testing.TB) *indextest.Tree {
	t.Helper()
	const main = `output "root" { value = 1 }`
	files := []string{"vpc-1.0+b/main.tf", main, "vpc-1.0+b/modules/sub/main.tf", main}
	folders := indextest.New(t)
	folders.Write("modules/acme/vpc/aws/1.0.0.tar.gz", indextest.TarGz(files...))
	folders.Write("modules/acme/vpc/aws/1.1.0.zip", indextest.Zip(files...))
	folders.Write("modules/acme/vpc/aws/1.2.0.tgz", indextest.TarGz("vpc-1.0+b/README.md", "# VPC", "vpc-1.0+b/modules/sub/main.tf", main))
	return folders
}

// splitFolder removes the folder from a location as go-getter does: the part after the
// first // of the path, up to the query, which stays with the package.
func splitFolder(t testing.TB, location string) (pack *url.URL, folder string) {
	t.Helper()
	scheme := strings.Index(location, "://") + len("://")
	before, after, found := strings.Cut(location[scheme:], "//")
	if !found {
		t.Fatalf("%s has no folder", location)
	}
	folder, query, _ := strings.Cut(after, "?")
	u, err := url.Parse(location[:scheme] + before + "?" + query)
	if err != nil {
		t.Fatal(err)
	}
	return u, folder
}

// Checklist 88, 89, 93 and 96, with and without signed links.
func TestModulesInAFolderOfTheirArchive(t *testing.T) {
	const versions = "/v1/modules/acme/vpc/aws/"
	files := hostedTree(t)
	for rule, s := range map[string]*site{
		"public":  serve(t, registry(scan(t, files))),
		"private": serve(t, privately(t, registry(scan(t, files)), "allow reader read acme")),
	} {
		for version, name := range map[string]string{"1.0.0": "archive.tar.gz", "1.1.0": "archive.zip", "1.2.0": "archive.tar.gz"} {
			s.rule(rule+" "+version, func(t *testing.T, s *site) {
				// OpenTofu's download with a token knows no folders (checklist 84).
				for _, agent := range []string{"Terraform/1.15.9", "OpenTofu/1.12.6"} {
					a := s.get(versions+version+"/download", "User-Agent: "+agent, reader)
					if a.StatusCode != http.StatusNoContent {
						t.Fatalf("%s: got %d %s", agent, a.StatusCode, a.body)
					}
					pack, folder := splitFolder(t, s.resolve(home+versions+version+"/download", a.Header.Get("X-Terraform-Get")).String())
					if folder != "vpc-1.0+b" || pack.Path != versions+version+"/"+name {
						t.Errorf("%s: it is in %q of %s", agent, folder, pack)
					}
					if signed := pack.Query().Get("sig") != ""; signed != (rule == "private") {
						t.Errorf("%s: the location is %s", agent, pack)
					}
					if files := s.unpack(pack); files[folder+"/modules/sub/main.tf"] == "" {
						t.Errorf("%s: unpacked is %v", agent, files)
					}
				}
			})
		}
	}
}

// A range of a packed folder is served if the files in that range are unchanged.
// The whole package is refused before the answer begins if any file has changed.
func TestRangesOfAFolderThatHasChanged(t *testing.T) {
	files := indextest.New(t)
	files.Write("modules/acme/vpc/aws/1.0.0/main.tf", "# a module")
	files.Write("modules/acme/vpc/aws/1.0.0/zeros.bin", strings.Repeat("\x00", 100_000))
	s := serve(t, registry(scan(t, files)))
	location := s.moduleLocation("acme/vpc/aws/1.0.0").String()
	whole := s.get(location)
	files.Write("modules/acme/vpc/aws/1.0.0/zeros.bin", "fewer")
	if a := s.get(location, "Range: bytes=0-999"); a.StatusCode != http.StatusPartialContent || a.body != whole.body[:1000] {
		t.Errorf("a range before what has changed: got %d with %d bytes", a.StatusCode, len(a.body))
	}
	mustRefuse(t, s.get(location), http.StatusServiceUnavailable)
}

// unpack fetches a module package as go-getter does: first with HEAD, whose answer
// makes no difference, then with GET, without a token and with its user agent. The end
// of the path decides how the package is unpacked.
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

// Checklist, group H.
func TestModulePackages(t *testing.T) {
	files := moduleTree(t)
	s := serve(t, registry(scan(t, files)))
	for _, v := range moduleVersions {
		location := s.moduleLocation("acme/vpc/aws/" + v)
		first := s.get(location.String())
		same := func(t *testing.T, a answer) {
			t.Helper()
			if a.StatusCode != http.StatusOK || a.body != first.body {
				t.Errorf("got %d with %d bytes", a.StatusCode, len(a.body))
			}
		}
		s.rule("91 97 any user agent gets it, without a token: "+v, func(t *testing.T, s *site) {
			for _, header := range []string{"User-Agent: Go-http-client/1.1", "User-Agent: OpenTofu/1.12.6", "User-Agent: ", "Authorization: Basic bmV0cmM6cGFzc3dvcmQ="} {
				same(t, s.get(location.String(), header))
			}
		})
		s.rule("92 HEAD does not use it up: "+v, func(t *testing.T, s *site) {
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
			if s.get(s.moduleLocation("acme/vpc/aws/"+v).String()).body != files.Read("modules/acme/vpc/aws/"+name) {
				t.Errorf("%s differs", name)
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
		files := indextest.New(t)
		files.Write("modules/acme/vpc/aws/1.0.0/main.tf", "# one")
		s := serve(t, registry(scan(t, files)))
		location := s.moduleLocation("acme/vpc/aws/1.0.0").String()
		files.Write("modules/acme/vpc/aws/1.0.0/main.tf", "# longer")
		mustRefuse(t, s.get(location), http.StatusServiceUnavailable)
	})
}
