package handlers_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
)

// hostTree has one provider and one module in three places, told apart by their
// versions: without a hostname, and under two.
func hostTree(t testing.TB) *indextest.Tree {
	t.Helper()
	tree := indextest.New(t)
	for dir, v := range map[string]string{"": "1.0.0", "a.example.com/": "2.0.0", "b.example.com/": "3.0.0", "a.example.com:8443/": "4.0.0", "bücher.example.com/": "5.0.0"} {
		tree.Provider(dir+"acme/demo", v, "linux_amd64")
		tree.Write("modules/"+dir+"acme/vpc/aws/"+v+"/main.tf", "# "+v)
	}
	tree.Provider("b.example.com/acme/only", "6.0.0", "linux_amd64")
	return tree
}

// ask asks a registry under any Host header, which may be none a client sends.
func ask(g *handlers.Registry, host, path string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Host = host
	return serveRecorded(g, r)
}

// versionsIn lists which of the versions of hostTree an answer names.
func versionsIn(body string) (found []string) {
	for _, v := range []string{"1.0.0", "2.0.0", "3.0.0", "4.0.0", "5.0.0", "6.0.0"} {
		if strings.Contains(body, `"`+v+`"`) {
			found = append(found, v)
		}
	}
	return found
}

// The registry's own providers and modules are those under the name it is asked
// by, joined with those under none.
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
		{"the default port is none", nil, "a.example.com:443", []string{"1.0.0", "2.0.0"}},
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
		{"a name no address has", nil, "a_b.example.com", []string{"1.0.0"}},
		{"a path for a name", nil, "..", []string{"1.0.0"}},
		{"a name with an empty label", nil, "a..example.com", []string{"1.0.0"}},
		{"a port that is none", nil, "a.example.com:x", []string{"1.0.0"}},
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
			// Every version's file is where its document says.
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

// The mirror offers under a name what lies under it, and under the registry's
// own names what the registry offers.
func TestMirroredHostnames(t *testing.T) {
	snapshot := scan(t, hostTree(t))
	tests := []struct {
		rule        string
		configured  []string
		host, under string
		want        []string
	}{
		{"its own name", nil, "a.example.com", "a.example.com", []string{"1.0.0", "2.0.0"}},
		{"its own name in upper case with the default port", nil, "a.example.com", "A.EXAMPLE.com:443", []string{"1.0.0", "2.0.0"}},
		{"another's name", nil, "a.example.com", "b.example.com", []string{"3.0.0"}},
		{"its own name at another port", nil, "a.example.com", "a.example.com:8443", []string{"4.0.0"}},
		{"a name at no port of which it has another", nil, "a.example.com:8443", "a.example.com", []string{"2.0.0"}},
		{"a name nothing lies under", nil, "a.example.com", "c.example.com", nil},
		{"a configured name, asked by another", []string{"b.example.com"}, "proxy.internal", "b.example.com", []string{"1.0.0", "3.0.0"}},
		{"a name that is not configured", []string{"b.example.com"}, "a.example.com", "a.example.com", []string{"2.0.0"}},
		{"each configured name has its own", []string{"a.example.com", "b.example.com"}, "a.example.com", "b.example.com", []string{"1.0.0", "3.0.0"}},
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
				held := slices.Contains(test.want, v)
				if w := ask(g, test.host, folder+v+".json"); w.Code != http.StatusOK || (w.Body.String() == `{"archives":{}}`) == held {
					t.Errorf("%s.json is %d %s", v, w.Code, w.Body)
				}
				if w := ask(g, test.host, folder+"terraform-provider-demo_"+v+"_linux_amd64.zip"); (w.Code == http.StatusOK) != held {
					t.Errorf("the zip of %s is %d", v, w.Code)
				}
			}
		})
	}
}

// Of a version found both with and without hostname, the one with it is served,
// under that name only.
func TestTheSameVersionTwice(t *testing.T) {
	tree := indextest.New(t)
	tree.Provider("acme/demo", "1.0.0", "linux_amd64", "darwin_arm64")
	tree.Write("providers/a.example.com/acme/demo/terraform-provider-demo_1.0.0_linux_amd64.zip", indextest.ProviderZip("demo", "1.0.0", "of a.example.com"))
	tree.Write("modules/acme/vpc/aws/1.0.0.zip", indextest.Zip("main.tf", "# own"))
	tree.Write("modules/a.example.com/acme/vpc/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", "# a.example.com"))
	s := serve(t, registry(scan(t, tree)))
	const zip = "/acme/demo/terraform-provider-demo_1.0.0_linux_amd64.zip"

	for host, dir := range map[string]string{"a.example.com": "providers/a.example.com", own: "providers"} {
		if s.get("https://"+host+"/v1/mirror/"+host+zip).body != tree.Read(dir+zip) {
			t.Errorf("asked as %s, the zip is another's", host)
		}
	}
	for host, want := range map[string]string{"a.example.com": "archive.tar.gz", own: "archive.zip"} {
		a := s.get("https://" + host + "/v1/modules/acme/vpc/aws/1.0.0/download")
		if got := a.Header.Get("X-Terraform-Get"); !strings.HasSuffix(got, want) {
			t.Errorf("asked as %s, the module is %s", host, got)
		}
	}
	if a := s.get("https://a.example.com/v1/providers/acme/demo/1.0.0/download/darwin/arm64"); a.StatusCode != http.StatusNotFound {
		t.Errorf("two releases are mixed: %d %s", a.StatusCode, a.body)
	}
}

// askAs asks a registry under any Host header, with the header of somebody's
// credentials.
func askAs(g *handlers.Registry, credentials, host, path string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Host = host
	if name, value, ok := strings.Cut(credentials, ": "); ok {
		r.Header.Set(name, value)
	}
	return serveRecorded(g, r)
}

// The name in a request is the client's to choose. It gives nobody what the
// rules keep from them under the name it really has, and tells nothing of it.
func TestHostOfRequestDoesNotChangeWhatMayBeRead(t *testing.T) {
	tree := privateTree(t)
	tree.Provider("secret.example.com/open/hidden", "1.0.0", "linux_amd64")
	tree.Provider("secret.example.com/open/demo", "2.0.0", "linux_amd64")
	tree.Write("modules/secret.example.com/open/hidden/aws/1.0.0/main.tf", "# a module")
	g := privately(t, registry(scan(t, tree)), "allow anonymous read open public.example.com/acme")
	tests := []struct {
		rule, host, path string
		configured       []string
		want             int
		lacks            string
	}{
		{"mirrored content is not the registry's own", "secret.example.com", "/v1/providers/open/hidden/versions", nil, http.StatusNotFound, ""},
		{"nor a module", "secret.example.com", "/v1/modules/open/hidden/aws/versions", nil, http.StatusNotFound, ""},
		{"nor is it joined with its own", "secret.example.com", "/v1/providers/open/demo/versions", nil, http.StatusOK, "2.0.0"},
		{"nor by the mirror", "secret.example.com", "/v1/mirror/secret.example.com/open/hidden/index.json", nil, http.StatusNotFound, ""},
		{"under another name it is what it is", "registry.example.com", "/v1/mirror/secret.example.com/open/hidden/index.json", nil, http.StatusUnauthorized, ""},
		{"its own is not that of a hostname", "public.example.com", "/v1/providers/acme/demo/versions", nil, http.StatusUnauthorized, ""},
		{"nor is its own module", "public.example.com", "/v1/modules/acme/vpc/aws/versions", nil, http.StatusUnauthorized, ""},
		{"with the name configured, it is", "public.example.com", "/v1/providers/acme/demo/versions", []string{"public.example.com"}, http.StatusOK, ""},
		{"also asked by another", "whatever.example.com", "/v1/providers/acme/demo/versions", []string{"public.example.com"}, http.StatusOK, ""},
		{"and no other name is", "public.example.com", "/v1/providers/acme/demo/versions", []string{"registry.example.com"}, http.StatusUnauthorized, ""},
		{"with the name configured, both are one", "secret.example.com", "/v1/providers/open/hidden/versions", []string{"secret.example.com"}, http.StatusOK, ""},
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

// Two modules may have one path: under two names of the registry, and under none
// and a name. A link is to the one it was given for.
func TestLinkIsToOneModule(t *testing.T) {
	tree := indextest.New(t)
	tree.Write("modules/acme/vpc/aws/1.0.0/main.tf", "# of no hostname")
	tree.Write("modules/b.example.com/acme/vpc/aws/1.0.0/main.tf", "# of b")
	tree.Write("modules/a.example.com/acme/dns/aws/1.0.0/main.tf", "# of a")
	tree.Write("modules/b.example.com/acme/dns/aws/1.0.0/main.tf", "# of b")
	tests := []struct {
		rule, public string
		configured   []string
		module       string
	}{
		{"of two configured names", "", []string{"a.example.com", "b.example.com"}, "dns"},
		{"of a configured name and none", "", []string{"a.example.com", "b.example.com"}, "vpc"},
		{"of any name, with a public URL", "https://a.example.com", nil, "vpc"},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			g := privately(t, registry(scan(t, tree)), "allow reader read a.example.com/acme acme", "allow stranger read *")
			g.Hostnames, g.PublicURL = hostnames(t, test.configured...), test.public
			path := "/v1/modules/acme/" + test.module + "/aws/1.0.0/"
			link := strings.TrimPrefix(askAs(g, reader, "a.example.com", path+"download").Header().Get("X-Terraform-Get"), test.public)
			right := askAs(g, nobody, "a.example.com", link)
			if right.Code != http.StatusOK {
				t.Fatalf("where it was given: got %d %s", right.Code, right.Body)
			}
			if wrong := askAs(g, nobody, "b.example.com", link); wrong.Code == http.StatusOK && wrong.Body.String() != right.Body.String() {
				t.Error("it opens the module of another name")
			}
		})
	}
}

// With a public URL and no name of its own, the registry still knows what is
// another registry's by its path: that is neither opened nor closed by what is
// hosted under the same name.
func TestPullThroughUnderPublicURL(t *testing.T) {
	origin, _ := signedTree(t)
	p := pull(t, origin, upstream.Policy{}, func(tree *indextest.Tree) {
		tree.Provider("acme/demo", "3.0.0", "linux_amd64")
	})
	const zip = joined + "demo/terraform-provider-demo_1.0.0_linux_amd64.zip"
	const ownZip = joined + "demo/terraform-provider-demo_3.0.0_linux_amd64.zip"
	g := func(rules ...string) *handlers.Registry {
		return privately(t, &handlers.Registry{Snapshot: p.registry.Snapshot, Upstream: p.registry.Upstream, Changed: p.registry.Changed, PublicURL: home}, rules...)
	}
	if w := askAs(g("allow reader read acme"), reader, own, zip); w.Code != http.StatusNotFound || p.askedFor(".zip") != 0 {
		t.Errorf("who may read own addresses alone: got %d, and the origin was asked %d times", w.Code, p.askedFor(".zip"))
	}
	if w := askAs(g("allow reader read acme"), reader, own, ownZip); w.Code != http.StatusNotFound {
		t.Errorf("its own is not under another registry's name: got %d %s", w.Code, w.Body)
	}
	open := g("allow anonymous read " + originHost)
	w := askAs(open, nobody, own, zip)
	if w.Code != http.StatusOK || !strings.HasPrefix(w.Header().Get("Cache-Control"), "public") {
		t.Errorf("what everybody may read: got %d %s", w.Code, w.Header().Get("Cache-Control"))
	}
	if w := askAs(open, nobody, own, joined+"demo/terraform-provider-demo_9.0.0_linux_amd64.zip"); w.Code != http.StatusNotFound {
		t.Errorf("what is not there: got %d", w.Code)
	}
	if is, isNot := askAs(open, nobody, own, ownZip), askAs(open, nobody, own, strings.Replace(ownZip, "3.0.0", "4.0.0", 1)); is.Code != isNot.Code {
		t.Errorf("its own file that is there is told from one that is not: %d and %d", is.Code, isNot.Code)
	}
}

// unread is a file system on which no package can be opened before it is closed.
type unread struct {
	afero.Fs
	until chan struct{}
}

func (u unread) Open(name string) (afero.File, error) {
	if strings.HasSuffix(name, ".zip") {
		<-u.until
	}
	return u.Fs.Open(name)
}

// While a tree is being read, nobody is told of what is in it under an address
// that they did not ask for.
func TestPendingIsToldOfTheAddressAlone(t *testing.T) {
	tree := indextest.New(t)
	tree.Provider("acme/secret", "1.0.0", "linux_amd64")
	tree.Provider("secret.example.com/acme/hidden", "1.0.0", "linux_amd64")
	o, files := options(t, tree), unread{tree.Fs, make(chan struct{})}
	o.Open = indextest.On(t, files).Open
	x := index.New(o)
	x.Start()
	defer x.Close()
	defer close(files.until)
	<-x.Ready()
	g := privately(t, &handlers.Registry{Snapshot: x.Snapshot}, "allow anonymous read registry.terraform.io", "allow reader read acme")
	tests := []struct {
		rule, caller, host, path string
		want                     int
	}{
		{"what is asked for", reader, own, "/v1/providers/acme/secret/versions", http.StatusServiceUnavailable},
		{"own content, to who asks for a mirrored address", nobody, own, "/v1/mirror/registry.terraform.io/acme/secret/index.json", http.StatusNotFound},
		{"mirrored content, to who asks for an own address", reader, "secret.example.com", "/v1/providers/acme/hidden/versions", http.StatusNotFound},
		{"what may not be read", stranger, own, "/v1/providers/acme/secret/versions", http.StatusNotFound},
		{"what may not be read by anybody", nobody, own, "/v1/providers/acme/secret/versions", http.StatusUnauthorized},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			if w := askAs(g, test.caller, test.host, test.path); w.Code != test.want {
				t.Errorf("got %d %s, want %d", w.Code, w.Body, test.want)
			}
		})
	}
}
