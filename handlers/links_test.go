package handlers_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/pull"
)

// namesakes is a tree in which a hosted and a mirrored provider have the same name
// but different bytes, and a hosted and a mirrored module too.
func namesakes(t testing.TB) *indextest.Tree {
	t.Helper()
	files := indextest.New(t)
	files.Provider("acme/demo", "1.0.0", "linux_amd64")
	mirroredZip := "providers/registry.terraform.io/" + namesakeZip
	files.Write(mirroredZip, indextest.ProviderZip("demo", "1.0.0", "mirrored"))
	files.Write("modules/acme/vpc/aws/1.0.0.zip", indextest.Zip("main.tf", "# hosted"))
	files.Write("modules/registry.terraform.io/acme/vpc/aws/1.0.0.zip", indextest.Zip("main.tf", "# mirrored"))
	return files
}

const namesakeZip = "acme/demo/terraform-provider-demo_1.0.0_linux_amd64.zip"

// pathOf returns the path and query of a URL in an answer.
func pathOf(t *testing.T, base, reference string) string {
	t.Helper()
	b, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	u, err := b.Parse(reference)
	if err != nil {
		t.Fatal(err)
	}
	return u.RequestURI()
}

// downloadLink returns the link to the package in a download document of acme/demo.
func downloadLink(t *testing.T, g *handlers.Registry, host string) string {
	t.Helper()
	const document = "/v1/providers/acme/demo/1.0.0/download/linux/amd64"
	var d download
	w := askAs(g, reader, host, document)
	if err := json.Unmarshal(w.Body.Bytes(), &d); err != nil {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	return pathOf(t, home+document, d.DownloadURL)
}

// archiveLink is the link to the package in VERSION.json of acme/demo under a
// hostname.
func archiveLink(t *testing.T, g *handlers.Registry, host, under string) string {
	t.Helper()
	document := "/v1/mirror/" + under + "/acme/demo/1.0.0.json"
	var l archives
	w := askAs(g, reader, host, document)
	if err := json.Unmarshal(w.Body.Bytes(), &l); err != nil {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	return pathOf(t, home+document, l.Archives["linux_amd64"].URL)
}

// hosts are names a client may choose to ask by.
var hosts = []string{ownHost, "registry.terraform.io", "other.example.com", "[::1]", "localhost", ""}

// A link opens the file it was signed for under every name of the registry, and
// never a file of the same name that is mirrored from another registry.
func TestLinkIsToOneProvider(t *testing.T) {
	files := namesakes(t)
	snapshot := scan(t, files)
	hosted, mirrored := files.Read("providers/"+namesakeZip), files.Read("providers/registry.terraform.io/"+namesakeZip)
	for _, test := range []struct {
		rule, public string
		configured   []string
	}{
		{"no names, a public URL", home, nil},
		{"no names", "", nil},
		{"a name", "", []string{ownHost}},
		{"a name and a public URL", home, []string{ownHost}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			g := privately(t, registry(snapshot), "allow reader read acme registry.terraform.io/acme")
			g.PublicURL, g.Hostnames = test.public, hostnames(t, test.configured...)
			links := map[string]string{
				downloadLink(t, g, ownHost):                         hosted,
				archiveLink(t, g, ownHost, ownHost):                 hosted,
				archiveLink(t, g, ownHost, "registry.terraform.io"): mirrored,
				archiveLink(t, g, "[::1]", "registry.terraform.io"): mirrored,
			}
			for link, want := range links {
				file, query, _ := strings.Cut(link, "?")
				for _, host := range hosts {
					if w := askAs(g, anonymous, host, link); w.Code != http.StatusOK || w.Body.String() != want {
						t.Errorf("%s, used as %q: got %d and the wrong file, %.100s", link, host, w.Code, w.Body)
					}
					// The signature is not valid for another file of that name.
					for _, folder := range []string{"/v1/mirror/-/", "/v1/mirror/registry.terraform.io/", "/v1/mirror/" + ownHost + "/", "/v1/mirror/other.example.com/"} {
						elsewhere := folder + namesakeZip
						if elsewhere == file {
							continue
						}
						if w := askAs(g, anonymous, host, elsewhere+"?"+query); w.Code == http.StatusOK && w.Body.String() != want {
							t.Errorf("a link to %s opens another file at %s, used as %q", file, elsewhere, host)
						}
					}
				}
			}
		})
	}
}

// The same for modules, whose path is the same under all names.
func TestLinkIsToOneModulePackage(t *testing.T) {
	files := namesakes(t)
	snapshot := scan(t, files)
	hosted, mirrored := files.Read("modules/acme/vpc/aws/1.0.0.zip"), files.Read("modules/registry.terraform.io/acme/vpc/aws/1.0.0.zip")
	for _, test := range []struct {
		rule, public, want string
		configured         []string
		host               string
	}{
		{"hosted", "", hosted, nil, ownHost},
		{"hosted, with a public URL", home, hosted, nil, ownHost},
		{"hosted, asked by the name of the mirrored one", home, hosted, nil, "registry.terraform.io"},
		{"under a configured name", "", mirrored, []string{ownHost, "registry.terraform.io"}, "registry.terraform.io"},
		{"hosted, with another configured name that has one too", "", hosted, []string{ownHost, "registry.terraform.io"}, ownHost},
		{"under a configured name, with a public URL", home, mirrored, []string{ownHost, "registry.terraform.io"}, "registry.terraform.io"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			g := privately(t, registry(snapshot), "allow reader read acme")
			g.PublicURL, g.Hostnames = test.public, hostnames(t, test.configured...)
			given := askAs(g, reader, test.host, "/v1/modules/acme/vpc/aws/1.0.0/download").Header().Get("X-Terraform-Get")
			link := pathOf(t, home+"/v1/modules/acme/vpc/aws/1.0.0/download", given)
			_, query, _ := strings.Cut(link, "?")
			for _, host := range hosts {
				if w := askAs(g, anonymous, host, link); w.Code != http.StatusOK || w.Body.String() != test.want {
					t.Errorf("%s, used as %q: got %d and the wrong package", link, host, w.Code)
				}
				for _, path := range []string{"/v1/modules/acme/vpc/aws/1.0.0/archive.zip", "/v1/modules/registry.terraform.io/acme/vpc/aws/1.0.0/archive.zip"} {
					if w := askAs(g, anonymous, host, path+"?"+query); w.Code == http.StatusOK && w.Body.String() != test.want {
						t.Errorf("it opens the wrong package at %s, used as %q", path, host)
					}
				}
			}
		})
	}
}

// The same without rules: a URL leads to the file that its document describes.
func TestURLsAreOfTheFilesDescribed(t *testing.T) {
	files := namesakes(t)
	g := registry(scan(t, files))
	g.PublicURL = "https://public.example.com"
	for host, module := range map[string]string{ownHost: "modules/acme/vpc/aws/1.0.0.zip", "registry.terraform.io": "modules/registry.terraform.io/acme/vpc/aws/1.0.0.zip"} {
		w := askAs(g, anonymous, host, "/v1/modules/acme/vpc/aws/1.0.0/download")
		location := pathOf(t, home, w.Header().Get("X-Terraform-Get"))
		for _, used := range hosts {
			if w := askAs(g, anonymous, used, location); w.Body.String() != files.Read(module) {
				t.Errorf("the module that %s offers, at %s as %q: got %d and the wrong bytes", host, location, used, w.Code)
			}
		}
	}
	for host, provider := range map[string]string{ownHost: "providers/" + namesakeZip, "registry.terraform.io": "providers/registry.terraform.io/" + namesakeZip} {
		link := downloadLink(t, g, host)
		for _, used := range hosts {
			if w := askAs(g, anonymous, used, link); w.Body.String() != files.Read(provider) {
				t.Errorf("the provider that %s offers, at %s as %q: got %d and the wrong bytes", host, link, used, w.Code)
			}
		}
	}
}

// A hosted file is never served in place of one that only the upstream has: its
// hash is not the one in the document.
func TestHostedFilesDoNotReplaceUpstream(t *testing.T) {
	origin, _ := signedTree(t)
	p := pullThrough(t, origin, pull.Policy{}, func(files *indextest.Tree) {
		files.Write("providers/"+namesakeZip, indextest.ProviderZip("demo", "1.0.0", "hosted"))
	})
	want := origin.Read("providers/" + namesakeZip)
	if p.tree.Read("providers/"+namesakeZip) == want {
		t.Fatal("both packages are the same")
	}
	plain := &handlers.Registry{Snapshot: p.registry.Snapshot, Upstream: p.registry.Upstream, Changed: p.registry.Changed, PublicURL: home}
	private := privately(t, &handlers.Registry{Snapshot: p.registry.Snapshot, Upstream: p.registry.Upstream, Changed: p.registry.Changed, PublicURL: home},
		"allow reader read acme "+originHost)
	for rule, g := range map[string]*handlers.Registry{"without rules": plain, "with rules": private} {
		t.Run(rule, func(t *testing.T) {
			link := archiveLink(t, g, ownHost, originHost)
			for _, host := range []string{ownHost, "other.example.com"} {
				if w := askAs(g, anonymous, host, link); w.Code != http.StatusOK || w.Body.String() != want {
					t.Errorf("%s as %q: got %d and %d bytes, want the origin's %d", link, host, w.Code, w.Body.Len(), len(want))
				}
			}
			hosted := downloadLink(t, g, ownHost)
			if w := askAs(g, anonymous, ownHost, hosted); w.Body.String() != p.tree.Read("providers/"+namesakeZip) {
				t.Errorf("%s: got %d and not the hosted file", hosted, w.Code)
			}
		})
	}
}

// A link is valid for one tree only, even if registries share their keys, as all of
// one Caddy do.
func TestLinksAreOfOneTree(t *testing.T) {
	keys := linkKeys(t)
	registryWith := func(folders, note string) *handlers.Registry {
		files := namesakes(t)
		files.Write("modules/acme/vpc/aws/1.0.0.zip", indextest.Zip("main.tf", note))
		g := privately(t, registry(scan(t, files)), "allow reader read acme")
		g.Tree = folders
		g.Links.Keys = func() *access.LinkKeys { return keys }
		return g
	}
	one, other := registryWith("one", "# one"), registryWith("other", "# other")
	again := registryWith("one", "# one") // after a restart, or another instance
	for _, host := range hosts {
		module := pathOf(t, home, askAs(one, reader, host, "/v1/modules/acme/vpc/aws/1.0.0/download").Header().Get("X-Terraform-Get"))
		for _, link := range []string{module, downloadLink(t, one, host)} {
			for _, used := range hosts {
				if w := askAs(one, anonymous, used, link); w.Code != http.StatusOK {
					t.Errorf("given as %q, used as %q: got %d %s", host, used, w.Code, w.Body)
				}
				if w := askAs(again, anonymous, used, link); w.Code != http.StatusOK {
					t.Errorf("given as %q, used as %q at another instance: got %d %s", host, used, w.Code, w.Body)
				}
				if w := askAs(other, anonymous, used, link); w.Code != http.StatusForbidden {
					t.Errorf("given as %q, used as %q at the registry of another tree: got %d, want 403", host, used, w.Code)
				}
			}
		}
	}
}

// Hosted files are found under the registry's name too: mirror documents name files
// by their bare names, and earlier releases handed out such URLs.
func TestHostedFilesUnderOwnName(t *testing.T) {
	files := namesakes(t)
	snapshot := scan(t, files)
	const path = "/v1/mirror/" + ownHost + "/" + namesakeZip
	for rule, configured := range map[string][]string{"the name it is asked by": nil, "a configured name": {ownHost}} {
		t.Run(rule, func(t *testing.T) {
			g := registry(snapshot)
			g.Hostnames = hostnames(t, configured...)
			if w := ask(g, ownHost, path); w.Body.String() != files.Read("providers/"+namesakeZip) {
				t.Errorf("got %d", w.Code)
			}
			if w := ask(g, ownHost, "/v1/mirror/"+ownHost+"/acme/demo/1.0.0.json"); !strings.Contains(w.Body.String(), `"url":"terraform-provider-demo_1.0.0_linux_amd64.zip"`) {
				t.Errorf("got %s", w.Body)
			}
		})
	}
	t.Run("not under another name", func(t *testing.T) {
		g := registry(snapshot)
		g.Hostnames = hostnames(t, ownHost)
		g.PublicURL = home
		if w := ask(g, "other.example.com", "/v1/mirror/other.example.com/"+namesakeZip); w.Code != http.StatusNotFound {
			t.Errorf("got %d", w.Code)
		}
	})
}

// Mirror documents exist under hostnames only.
func TestHostedSegmentHasFilesOnly(t *testing.T) {
	g := registry(scan(t, namesakes(t)))
	for _, path := range []string{"/v1/mirror/-/acme/demo/index.json", "/v1/mirror/-/acme/demo/1.0.0.json", "/v1/mirror/-/acme/demo/none.zip", "/v1/mirror/-/a--b/demo/x.zip", "/v1/mirror//" + namesakeZip} {
		if w := ask(g, ownHost, path); w.Code != http.StatusNotFound {
			t.Errorf("%s: got %d %s", path, w.Code, w.Body)
		}
	}
}

// The path of a module package may have the hostname it is mirrored from. The rules
// for that hostname apply, whatever name the registry is asked by.
func TestMirroredModulePackages(t *testing.T) {
	files := namesakes(t)
	g := privately(t, registry(scan(t, files)), "allow anonymous read acme", "allow reader read registry.terraform.io")
	const path = "/v1/modules/registry.terraform.io/acme/vpc/aws/1.0.0/archive.zip"
	for _, host := range hosts {
		if w := askAs(g, anonymous, host, path); w.Code != http.StatusUnauthorized {
			t.Errorf("as %q: got %d", host, w.Code)
		}
		if w := askAs(g, stranger, host, path); w.Code != http.StatusNotFound {
			t.Errorf("as %q, without the right: got %d", host, w.Code)
		}
		if w := askAs(g, reader, host, path); w.Body.String() != files.Read("modules/registry.terraform.io/acme/vpc/aws/1.0.0.zip") {
			t.Errorf("as %q, with the right: got %d", host, w.Code)
		}
		for _, wrong := range []string{
			"/v1/modules/-/acme/vpc/aws/1.0.0/archive.zip", "/v1/modules//acme/vpc/aws/1.0.0/archive.zip", strings.Replace(path, "1.0.0", "2.0.0", 1),
			strings.Replace(path, ".zip", ".tar.gz", 1), strings.Replace(path, "vpc", "dns", 1), strings.Replace(path, "terraform.io", "opentofu.org", 1),
		} {
			if w := askAs(g, reader, host, wrong); w.Code != http.StatusNotFound {
				t.Errorf("%s as %q: got %d", wrong, host, w.Code)
			}
		}
	}
}

// A rule for one of the registry's names applies to all of them.
func TestRulesForAnAlias(t *testing.T) {
	g := privately(t, registry(scan(t, namesakes(t))),
		"deny stranger read alias.example.com/acme", "allow authenticated read *")
	g.Hostnames = hostnames(t, ownHost, "alias.example.com")
	for _, host := range []string{ownHost, "alias.example.com", "other.example.com"} {
		for _, path := range []string{"/v1/providers/acme/demo/versions", "/v1/modules/acme/vpc/aws/versions", "/v1/mirror/" + ownHost + "/acme/demo/index.json", "/v1/mirror/alias.example.com/acme/demo/index.json", "/v1/mirror/-/" + namesakeZip} {
			if w := askAs(g, stranger, host, path); w.Code != http.StatusNotFound {
				t.Errorf("%s as %q, denied: got %d", path, host, w.Code)
			}
			if w := askAs(g, reader, host, path); w.Code != http.StatusOK {
				t.Errorf("%s as %q, allowed: got %d", path, host, w.Code)
			}
		}
		if w := askAs(g, stranger, host, "/v1/mirror/registry.terraform.io/acme/demo/index.json"); w.Code != http.StatusOK {
			t.Errorf("a mirrored provider, as %q: got %d", host, w.Code)
		}
	}
}

// Every URL in an answer can be fetched, in every configuration.
func TestURLs(t *testing.T) {
	files, _ := everything(t)
	snapshot := scan(t, files)
	tests := []struct {
		rule           string
		prefix, public string
		base           string // of every URL handed out
		prefixed       string // the path of the registry
	}{
		{"paths by default", "", "", "/v1", "/v1"},
		{"paths under a prefix", "/terraform", "", "/terraform", "/terraform"},
		{"paths under a prefix of two segments", "/a/v1", "", "/a/v1", "/a/v1"},
		{"absolute with a public URL", "", home, home + "/v1", "/v1"},
		{"absolute under a prefix", "/terraform", home, home + "/terraform", "/terraform"},
		{"absolute at a port", "", home + ":8443", home + ":8443/v1", "/v1"},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			g := &handlers.Registry{Snapshot: registry(snapshot).Snapshot, Prefix: test.prefix, PublicURL: test.public}
			s := serve(t, g)
			for id, want := range map[string]string{"providers.v1": test.base + "/providers/", "modules.v1": test.base + "/modules/"} {
				if got := decode(t, s.get(wellKnown).body).(map[string]any)[id]; got != want {
					t.Errorf("%s is %v, want %s", id, got, want)
				}
			}
			d := s.download("acme/demo/1.0.0/download/linux/amd64")
			for _, u := range []string{d.DownloadURL, d.SHA256SumsURL, d.SHA256SumsSignature} {
				if !strings.HasPrefix(u, test.base+"/mirror/-/acme/demo/") {
					t.Errorf("got %s, want a hosted file below %s", u, test.base)
				}
			}
			s.install("acme/demo/1.0.0/download/linux/amd64")

			location := s.get(s.service("modules.v1").String() + "acme/vpc/aws/1.2.0/download").Header.Get("X-Terraform-Get")
			if want := test.base + "/modules/acme/vpc/aws/1.2.0/archive.zip"; location != want {
				t.Errorf("the module is at %q, want %s", location, want)
			}
			s.unpack(s.moduleLocation("acme/vpc/aws/1.2.0"))

			document := home + test.prefixed + "/mirror/registry.terraform.io/hashicorp/null/3.2.0.json"
			var l archives
			s.json(document, &l)
			packed := l.Archives["linux_amd64"]
			want := "terraform-provider-null_3.2.0_linux_amd64.zip"
			if test.public != "" {
				want = test.base + "/mirror/registry.terraform.io/hashicorp/null/" + want
			}
			if packed.URL != want {
				t.Errorf("the archive is at %s, want %s", packed.URL, want)
			}
			if err := packageHash(t, packed.Hashes, s.fetch(document, packed.URL)); err != nil {
				t.Error(err)
			}
			if test.prefixed != "/v1" {
				if a := s.get("/v1/providers/acme/demo/versions"); a.StatusCode != fallenThrough {
					t.Errorf("the default prefix is served too: %d", a.StatusCode)
				}
			}
		})
	}
}

// A public URL leads to the right file although the registry is asked by its name,
// and not by the one of the document.
func TestPublicURLOfAnotherName(t *testing.T) {
	files := hostTree(t)
	snapshot := scan(t, files)
	for _, host := range []string{"a.example.com", "b.example.com", "internal.example.com"} {
		t.Run("asked as "+host, func(t *testing.T) {
			g := registry(snapshot)
			g.PublicURL = home
			s := serve(t, g)
			for _, v := range versionsIn(s.get("https://" + host + "/v1/providers/acme/demo/versions").body) {
				var d download
				s.json("https://"+host+"/v1/providers/acme/demo/"+v+"/download/linux/amd64", &d)
				if err := archiveChecksum(s.fetch("", d.DownloadURL), d.SHA256); err != nil {
					t.Errorf("%s: %v", d.DownloadURL, err)
				}
				var l archives
				s.json("https://"+host+"/v1/mirror/"+host+"/acme/demo/"+v+".json", &l)
				packed := l.Archives["linux_amd64"]
				if err := packageHash(t, packed.Hashes, s.fetch("", packed.URL)); err != nil {
					t.Errorf("%s: %v", packed.URL, err)
				}
			}
		})
	}
	t.Run("other names are still mirrored", func(t *testing.T) {
		g := registry(snapshot)
		g.PublicURL = home
		s := serve(t, g)
		if a := s.get("/v1/mirror/c.example.com/acme/demo/index.json"); a.StatusCode != http.StatusNotFound {
			t.Errorf("got %d %s", a.StatusCode, a.body)
		}
	})
}

// Documents with different URLs never have the same validator.
func TestValidatorsOfOtherURLs(t *testing.T) {
	files, _ := everything(t)
	snapshot := scan(t, files)
	seen := make(map[string]string)
	for _, base := range []string{"", home, "https://other.example.com", home + ":8443"} {
		g := registry(snapshot)
		g.PublicURL = base
		s := serve(t, g)
		for _, path := range []string{wellKnown, "/v1/providers/acme/demo/1.0.0/download/linux/amd64", "/v1/mirror/registry.terraform.io/hashicorp/null/3.2.0.json"} {
			a := s.get(path)
			if other, twice := seen[a.Header.Get("Etag")]; twice {
				t.Errorf("%s has the ETag of %s", a.body, other)
			}
			seen[a.Header.Get("Etag")] = a.body
		}
	}
	const document = "/v1/providers/acme/demo/1.0.0/download/linux/amd64"
	clear(seen)
	g, base := registry(snapshot), ""
	g.BaseURL = func(*http.Request) string { return base }
	for _, base = range []string{home, "https://other.example.com", home + ":8443", home, ""} { // as clients have reached it
		a := do(g, http.MethodGet, document)
		etag := a.Header().Get("Etag")
		if other, known := seen[etag]; known && other != a.Body.String() {
			t.Errorf("%s is the ETag of two documents", etag)
		}
		seen[etag] = a.Body.String()
		if again := do(g, http.MethodGet, document, "If-None-Match: "+etag); again.Code != http.StatusNotModified {
			t.Errorf("again: got %d", again.Code)
		}
	}
	if len(seen) != 4 {
		t.Errorf("there are %d documents", len(seen))
	}
}

// A release that moves to the folder of the registry's name, or back, has the same bytes and
// other links. A document with the old links is not confirmed by 304.
func TestValidatorsOfAReleaseThatMoves(t *testing.T) {
	const document, mirror = "/v1/providers/acme/demo/1.0.0/download/linux/amd64", "/v1/mirror/" + ownHost + "/acme/demo/1.0.0.json"
	var snapshots []*index.Snapshot
	key := newKey(t)
	for _, folder := range []string{"acme/demo", ownHost + "/acme/demo"} {
		files := indextest.New(t)
		files.Provider(folder, "1.0.0", "linux_amd64")
		snapshots = append(snapshots, scanWith(t, optionsWith(t, files, key)))
	}
	for _, test := range []struct {
		rule, path, public string
		configured         []string
		private            bool
	}{
		{"the download document", document, "", []string{ownHost}, false},
		{"without configured names", document, "", nil, false},
		{"with a public URL", document, home, []string{ownHost}, false},
		{"in private", document, "", []string{ownHost}, true},
		{"VERSION.json with a public URL", mirror, home, []string{ownHost}, false},
		{"VERSION.json in private", mirror, "", []string{ownHost}, true},
		{"VERSION.json", mirror, "", []string{ownHost}, false},
	} {
		t.Run(test.rule, func(t *testing.T) {
			now := snapshots[0]
			g := &handlers.Registry{Snapshot: func() *index.Snapshot { return now }, PublicURL: test.public, Hostnames: hostnames(t, test.configured...)}
			if test.private {
				privately(t, g, "allow reader read acme")
			}
			before := askAs(g, reader, ownHost, test.path)
			for _, now = range []*index.Snapshot{snapshots[1], snapshots[0]} {
				after := askAs(g, reader, ownHost, test.path)
				if before.Code != http.StatusOK || after.Code != http.StatusOK {
					t.Fatalf("got %d %s, and %d %s", before.Code, before.Body, after.Code, after.Body)
				}
				if (before.Header().Get("Etag") == after.Header().Get("Etag")) != (before.Body.String() == after.Body.String()) {
					t.Errorf("the validators are %s and %s, of %s and %s", before.Header().Get("Etag"), after.Header().Get("Etag"), before.Body, after.Body)
				}
				before = after
			}
		})
	}
}

// Documents and pages write the name of a provider's file escaped, and a request may spell
// it in any way (checklist 24, 39, 40, 67).
func TestLinksToProvidersOfOtherLetters(t *testing.T) {
	files := indextest.New(t)
	files.Provider("münchen/straße", "1.0.0", "linux_amd64")
	g := privately(t, registry(scan(t, files)), "allow reader read münchen")
	const document, mirror = "/v1/providers/m%C3%BCnchen/stra%C3%9Fe/1.0.0/download/linux/amd64", "/v1/mirror/" + ownHost + "/m%C3%BCnchen/stra%C3%9Fe/1.0.0.json"
	const name = "terraform-provider-straße_1.0.0_linux_amd64.zip"
	var d download
	if w := askAs(g, reader, ownHost, document); json.Unmarshal(w.Body.Bytes(), &d) != nil {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	var l archives
	if w := askAs(g, reader, ownHost, mirror); json.Unmarshal(w.Body.Bytes(), &l) != nil {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	var page string
	visit(t, g, reader, ownHost, func(v *handlers.View) {
		a, err := address.ParseProvider("", "münchen", "straße")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := v.Provider(a); err != nil {
			t.Fatal(err)
		}
		page = v.LinkQuery("", "1.0.0", name)
	})
	for rule, link := range map[string]string{
		"the package":           pathOf(t, home+document, d.DownloadURL),
		"SHA256SUMS":            pathOf(t, home+document, d.SHA256SumsURL),
		"its signature":         pathOf(t, home+document, d.SHA256SumsSignature),
		"the mirror's package":  pathOf(t, home+mirror, l.Archives["linux_amd64"].URL),
		"the package of a page": "/v1/mirror/-/m%C3%BCnchen/stra%C3%9Fe/" + url.PathEscape(name) + page,
	} {
		if w := askAs(g, anonymous, ownHost, link); w.Code != http.StatusOK {
			t.Errorf("%s: got %d %s", rule, w.Code, w.Body)
		}
	}
}
