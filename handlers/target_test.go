package handlers_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/pull"
)

// hostTree has one provider and one module, without a hostname and under several. The
// version tells where they come from.
func hostTree(t testing.TB) *indextest.Tree {
	t.Helper()
	files := indextest.New(t)
	for dir, v := range map[string]string{"": "1.0.0", "a.example.com/": "2.0.0", "b.example.com/": "3.0.0", "a.example.com:8443/": "4.0.0", "bücher.example.com/": "5.0.0"} {
		files.Provider(dir+"acme/demo", v, "linux_amd64")
		files.Write("modules/"+dir+"acme/vpc/aws/"+v+"/main.tf", "# "+v)
	}
	files.Provider("b.example.com/acme/only", "6.0.0", "linux_amd64")
	return files
}

// ask sends a request with any Host header, even one that no client sends.
func ask(g *handlers.Registry, host, path string) *httptest.ResponseRecorder {
	return askAs(g, anonymous, host, path)
}

// versionsIn lists the versions of hostTree that an answer names.
func versionsIn(body string) (found []string) {
	for _, v := range []string{"1.0.0", "2.0.0", "3.0.0", "4.0.0", "5.0.0", "6.0.0"} {
		if strings.Contains(body, `"`+v+`"`) {
			found = append(found, v)
		}
	}
	return found
}

// The registry hosts the packages under its name in the request, merged with the
// packages under no hostname.
func TestOwnHostname(t *testing.T) {
	snapshot := scan(t, hostTree(t))
	const ipv6 = "[::1]:8443"
	tests := []struct {
		rule       string
		configured []string
		host       string
		want       []string // of the registry, and of the mirror under that name
	}{
		{"the name of the request", nil, "a.example.com", []string{"1.0.0", "2.0.0"}},
		{"another name of the request", nil, "b.example.com", []string{"1.0.0", "3.0.0"}},
		{"a name nothing lies under", nil, "c.example.com", []string{"1.0.0"}},
		{"upper case", nil, "A.Example.COM", []string{"1.0.0", "2.0.0"}},
		{"the default port is not part of the name", nil, "a.example.com:443", []string{"1.0.0", "2.0.0"}},
		{"any other port is part of the name", nil, "a.example.com:8443", []string{"1.0.0", "4.0.0"}},
		{"a port nothing lies under", nil, "a.example.com:9443", []string{"1.0.0"}},
		{"punycode, as clients send it", nil, "xn--bcher-kva.example.com", []string{"1.0.0", "5.0.0"}},
		{"Unicode", nil, "bücher.example.com", []string{"1.0.0", "5.0.0"}},
		{"a configured name", []string{"a.example.com"}, "a.example.com", []string{"1.0.0", "2.0.0"}},
		{"a configured name with a port", []string{"a.example.com:8443"}, "a.example.com:8443", []string{"1.0.0", "4.0.0"}},
		{"a configured name in upper case with the default port", []string{"A.Example.com:443"}, "a.example.com", []string{"1.0.0", "2.0.0"}},
		{"one of two configured names", []string{"a.example.com", "b.example.com"}, "b.example.com", []string{"1.0.0", "3.0.0"}},
		{"a name that is not configured: the first that is", []string{"a.example.com", "b.example.com"}, "proxy.internal:8080", []string{"1.0.0", "2.0.0"}},
		{"no name, with one configured", []string{"b.example.com"}, "", []string{"1.0.0", "3.0.0"}},
		{"an address, with a name configured", []string{"b.example.com"}, ipv6, []string{"1.0.0", "3.0.0"}},
		{"an IPv4 address", nil, "127.0.0.1:8443", []string{"1.0.0"}},
		{"an IPv6 address", nil, ipv6, []string{"1.0.0"}},
		{"localhost", nil, "localhost", []string{"1.0.0"}},
		{"no name", nil, "", []string{"1.0.0"}},
		{"an invalid name", nil, "a_b.example.com", []string{"1.0.0"}},
		{"a path for a name", nil, "..", []string{"1.0.0"}},
		{"a name with an empty label", nil, "a..example.com", []string{"1.0.0"}},
		{"an invalid port", nil, "a.example.com:x", []string{"1.0.0"}},
		{"a port beyond all ports", nil, "a.example.com:99999", []string{"1.0.0"}},
		{"a name of 5000 characters", nil, strings.Repeat("a.", 2500) + "example.com", []string{"1.0.0"}},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			g := registry(snapshot)
			g.Hostnames = hostnames(t, test.configured...)
			if w := ask(g, test.host, "/v1/providers/acme/demo/versions"); !slices.Equal(versionsIn(w.Body.String()), test.want) {
				t.Errorf("the registry has %s", w.Body)
			}
			if w := ask(g, test.host, "/v1/modules/acme/vpc/aws/versions"); !slices.Equal(versionsIn(w.Body.String()), test.want) {
				t.Errorf("the module registry has %s", w.Body)
			}
			// The document of every version leads to its file.
			for _, v := range test.want {
				w := ask(g, test.host, "/v1/providers/acme/demo/"+v+"/download/linux/amd64")
				url := decode(t, w.Body.String()).(map[string]any)["download_url"].(string)
				if strings.Contains(url, "..") {
					t.Errorf("the URL is %s", url)
				}
				if w := ask(g, test.host, url); w.Code != http.StatusOK {
					t.Errorf("%s is %d %s", url, w.Code, w.Body)
				}
			}
		})
	}
}

// The mirror offers the packages under a hostname and, under a name of the registry,
// the hosted packages.
func TestMirroredHostnames(t *testing.T) {
	snapshot := scan(t, hostTree(t))
	tests := []struct {
		rule        string
		configured  []string
		host, under string
		want        []string
	}{
		{"the registry's name", nil, "a.example.com", "a.example.com", []string{"1.0.0", "2.0.0"}},
		{"the registry's name in upper case with the default port", nil, "a.example.com", "A.EXAMPLE.com:443", []string{"1.0.0", "2.0.0"}},
		{"another's name", nil, "a.example.com", "b.example.com", []string{"3.0.0"}},
		{"the registry's name at another port", nil, "a.example.com", "a.example.com:8443", []string{"4.0.0"}},
		{"a name at no port of which it has another", nil, "a.example.com:8443", "a.example.com", []string{"2.0.0"}},
		{"a name nothing lies under", nil, "a.example.com", "c.example.com", nil},
		{"a configured name, asked by another", []string{"b.example.com"}, "proxy.internal", "b.example.com", []string{"1.0.0", "3.0.0"}},
		{"a name that is not configured", []string{"b.example.com"}, "a.example.com", "a.example.com", []string{"2.0.0"}},
		{"every configured name is separate", []string{"a.example.com", "b.example.com"}, "a.example.com", "b.example.com", []string{"1.0.0", "3.0.0"}},
		{"an IDN in punycode", nil, "a.example.com", "xn--bcher-kva.example.com", []string{"5.0.0"}},
		{"an IDN in Unicode", nil, "a.example.com", "b%C3%BCcher.example.com", []string{"5.0.0"}},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			g := registry(snapshot)
			g.Hostnames = hostnames(t, test.configured...)
			folder := "/v1/mirror/" + test.under + "/acme/demo/"
			w := ask(g, test.host, folder+"index.json")
			if got := versionsIn(w.Body.String()); !slices.Equal(got, test.want) || (got == nil) != (w.Code == http.StatusNotFound) {
				t.Errorf("got %d %s, want %v", w.Code, w.Body, test.want)
			}
			for _, v := range []string{"1.0.0", "2.0.0", "3.0.0", "4.0.0", "5.0.0"} {
				found := slices.Contains(test.want, v)
				if w := ask(g, test.host, folder+v+".json"); w.Code != http.StatusOK || (w.Body.String() == `{"archives":{}}`) == found {
					t.Errorf("%s.json is %d %s", v, w.Code, w.Body)
				}
				if w := ask(g, test.host, folder+"terraform-provider-demo_"+v+"_linux_amd64.zip"); (w.Code == http.StatusOK) != found {
					t.Errorf("the zip of %s is %d", v, w.Code)
				}
			}
		})
	}
}

// If a version is both under a hostname and under none, the former is served under that
// hostname, and the latter under other names.
func TestTheSameVersionTwice(t *testing.T) {
	files := indextest.New(t)
	files.Provider("acme/demo", "1.0.0", "linux_amd64", "darwin_arm64")
	files.Write("providers/a.example.com/acme/demo/terraform-provider-demo_1.0.0_linux_amd64.zip", indextest.ProviderZip("demo", "1.0.0", "of a.example.com"))
	files.Write("modules/acme/vpc/aws/1.0.0.zip", indextest.Zip("main.tf", "# hosted"))
	files.Write("modules/a.example.com/acme/vpc/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", "# a.example.com"))
	s := serve(t, registry(scan(t, files)))
	const zip = "/acme/demo/terraform-provider-demo_1.0.0_linux_amd64.zip"

	for host, dir := range map[string]string{"a.example.com": "providers/a.example.com", ownHost: "providers"} {
		if s.get("https://"+host+"/v1/mirror/"+host+zip).body != files.Read(dir+zip) {
			t.Errorf("asked as %s, the zip is the wrong one", host)
		}
	}
	for host, want := range map[string]string{"a.example.com": "archive.tar.gz", ownHost: "archive.zip"} {
		a := s.get("https://" + host + "/v1/modules/acme/vpc/aws/1.0.0/download")
		if got := a.Header.Get("X-Terraform-Get"); !strings.HasSuffix(got, want) {
			t.Errorf("asked as %s, the module is %s", host, got)
		}
	}
	if a := s.get("https://a.example.com/v1/providers/acme/demo/1.0.0/download/darwin/arm64"); a.StatusCode != http.StatusNotFound {
		t.Errorf("two releases are mixed: %d %s", a.StatusCode, a.body)
	}
}

// askAs is ask with an Authorization header.
func askAs(g *handlers.Registry, credentials, host, path string) *httptest.ResponseRecorder {
	r := withHeaders(httptest.NewRequest(http.MethodGet, path, nil), credentials)
	r.Host = host
	return serveRecorded(g, r)
}

// A client chooses the name in a request. The name must neither give access to packages
// that the rules protect under their real name, nor tell whether they exist.
func TestHostOfRequestDoesNotChangeWhatMayBeRead(t *testing.T) {
	files := privateTree(t)
	files.Provider("secret.example.com/open/hidden", "1.0.0", "linux_amd64")
	files.Provider("secret.example.com/open/demo", "2.0.0", "linux_amd64")
	files.Write("modules/secret.example.com/open/hidden/aws/1.0.0/main.tf", "# a module")
	g := privately(t, registry(scan(t, files)), "allow anonymous read open public.example.com/acme")
	tests := []struct {
		rule, host, path string
		configured       []string
		want             int
		lacks            string
	}{
		{"a mirrored provider does not become hosted", "secret.example.com", "/v1/providers/open/hidden/versions", nil, http.StatusNotFound, ""},
		{"nor does a mirrored module", "secret.example.com", "/v1/modules/open/hidden/aws/versions", nil, http.StatusNotFound, ""},
		{"nor is it merged with a hosted one", "secret.example.com", "/v1/providers/open/demo/versions", nil, http.StatusOK, "2.0.0"},
		{"nor through the mirror", "secret.example.com", "/v1/mirror/secret.example.com/open/hidden/index.json", nil, http.StatusNotFound, ""},
		{"under another name it is mirrored as well", "registry.example.com", "/v1/mirror/secret.example.com/open/hidden/index.json", nil, http.StatusUnauthorized, ""},
		{"a hosted provider does not get the rules of a hostname", "public.example.com", "/v1/providers/acme/demo/versions", nil, http.StatusUnauthorized, ""},
		{"nor does a hosted module", "public.example.com", "/v1/modules/acme/vpc/aws/versions", nil, http.StatusUnauthorized, ""},
		{"with the name configured, it does", "public.example.com", "/v1/providers/acme/demo/versions", []string{"public.example.com"}, http.StatusOK, ""},
		{"even if asked by another name", "whatever.example.com", "/v1/providers/acme/demo/versions", []string{"public.example.com"}, http.StatusOK, ""},
		{"but no other name", "public.example.com", "/v1/providers/acme/demo/versions", []string{"registry.example.com"}, http.StatusUnauthorized, ""},
		{"with the name configured, both are merged", "secret.example.com", "/v1/providers/open/hidden/versions", []string{"secret.example.com"}, http.StatusOK, ""},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			g := &handlers.Registry{Snapshot: g.Snapshot, Rules: g.Rules, Authenticate: g.Authenticate, Links: g.Links, Hostnames: hostnames(t, test.configured...)}
			w := ask(g, test.host, test.path)
			if w.Code != test.want || test.lacks != "" && strings.Contains(w.Body.String(), test.lacks) {
				t.Errorf("got %d %s, want %d without %q", w.Code, w.Body, test.want, test.lacks)
			}
		})
	}
}

// Modules under two names of the registry, or under a name and none, may have the same
// path. A link opens only the file for which it was signed.
func TestLinkIsToOneModule(t *testing.T) {
	files := indextest.New(t)
	files.Write("modules/acme/vpc/aws/1.0.0/main.tf", "# of no hostname")
	files.Write("modules/b.example.com/acme/vpc/aws/1.0.0/main.tf", "# of b")
	files.Write("modules/a.example.com/acme/dns/aws/1.0.0/main.tf", "# of a")
	files.Write("modules/b.example.com/acme/dns/aws/1.0.0/main.tf", "# of b")
	tests := []struct {
		rule, public string
		configured   []string
		module       string
	}{
		{"under two configured names", "", []string{"a.example.com", "b.example.com"}, "dns"},
		{"under a configured name and none", "", []string{"a.example.com", "b.example.com"}, "vpc"},
		{"under any name, with a public URL", "https://a.example.com", nil, "vpc"},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			g := privately(t, registry(scan(t, files)), "allow reader read a.example.com/acme acme", "allow stranger read *")
			g.Hostnames, g.PublicURL = hostnames(t, test.configured...), test.public
			path := "/v1/modules/acme/" + test.module + "/aws/1.0.0/"
			link := strings.TrimPrefix(askAs(g, reader, "a.example.com", path+"download").Header().Get("X-Terraform-Get"), test.public)
			right := askAs(g, anonymous, "a.example.com", link)
			if right.Code != http.StatusOK {
				t.Fatalf("under the same name: got %d %s", right.Code, right.Body)
			}
			if wrong := askAs(g, anonymous, "b.example.com", link); wrong.Code == http.StatusOK && wrong.Body.String() != right.Body.String() {
				t.Error("it opens the module under another name")
			}
		})
	}
}

// With a public URL and no configured names, paths and rules still tell mirrored
// providers from hosted ones of the same name.
func TestPullThroughUnderPublicURL(t *testing.T) {
	origin, _ := signedTree(t)
	p := pullThrough(t, origin, pull.Policy{}, func(files *indextest.Tree) {
		files.Provider("acme/demo", "3.0.0", "linux_amd64")
	})
	const zip = originPath + "demo/terraform-provider-demo_1.0.0_linux_amd64.zip"
	const ownZip = originPath + "demo/terraform-provider-demo_3.0.0_linux_amd64.zip"
	g := func(rules ...string) *handlers.Registry {
		return privately(t, &handlers.Registry{Snapshot: p.registry.Snapshot, Upstream: p.registry.Upstream, Changed: p.registry.Changed, PublicURL: home}, rules...)
	}
	if w := askAs(g("allow reader read acme"), reader, ownHost, zip); w.Code != http.StatusNotFound || p.askedFor(".zip") != 0 {
		t.Errorf("with rights to hosted addresses only: got %d, and the origin was asked %d times", w.Code, p.askedFor(".zip"))
	}
	if w := askAs(g("allow reader read acme"), reader, ownHost, ownZip); w.Code != http.StatusNotFound {
		t.Errorf("a hosted file under another registry's name: got %d %s", w.Code, w.Body)
	}
	open := g("allow anonymous read " + originHost)
	w := askAs(open, anonymous, ownHost, zip)
	if w.Code != http.StatusOK || !strings.HasPrefix(w.Header().Get("Cache-Control"), "public") {
		t.Errorf("a public file: got %d %s", w.Code, w.Header().Get("Cache-Control"))
	}
	if w := askAs(open, anonymous, ownHost, originPath+"demo/terraform-provider-demo_9.0.0_linux_amd64.zip"); w.Code != http.StatusNotFound {
		t.Errorf("a missing file: got %d", w.Code)
	}
	if is, isNot := askAs(open, anonymous, ownHost, ownZip), askAs(open, anonymous, ownHost, strings.Replace(ownZip, "3.0.0", "4.0.0", 1)); is.Code != isNot.Code {
		t.Errorf("whether a hosted file exists makes a difference: %d and %d", is.Code, isNot.Code)
	}
}

// While a tree is being read, an answer tells nothing about other addresses than the
// requested one.
func TestPendingIsOfTheAddressRequested(t *testing.T) {
	folders := indextest.New(t)
	folders.Provider("acme/secret", "1.0.0", "linux_amd64")
	folders.Provider("secret.example.com/acme/hidden", "1.0.0", "linux_amd64")
	x, _ := startReading(t, options(t, folders), folders, "")
	g := privately(t, &handlers.Registry{Snapshot: x.Snapshot}, "allow anonymous read registry.terraform.io", "allow reader read acme")
	tests := []struct {
		rule, caller, host, path string
		want                     int
	}{
		{"the address requested", reader, ownHost, "/v1/providers/acme/secret/versions", http.StatusServiceUnavailable},
		{"a hosted provider, for a mirrored address", anonymous, ownHost, "/v1/mirror/registry.terraform.io/acme/secret/index.json", http.StatusNotFound},
		{"a mirrored provider, for a hosted address", reader, "secret.example.com", "/v1/providers/acme/hidden/versions", http.StatusNotFound},
		{"without the right", stranger, ownHost, "/v1/providers/acme/secret/versions", http.StatusNotFound},
		{"without credentials", anonymous, ownHost, "/v1/providers/acme/secret/versions", http.StatusUnauthorized},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			if w := askAs(g, test.caller, test.host, test.path); w.Code != test.want {
				t.Errorf("got %d %s, want %d", w.Code, w.Body, test.want)
			}
		})
	}
}
