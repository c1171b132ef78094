package handlers_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/fill"
)

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
	p := pull(t, origin, fill.Policy{}, func(tree *indextest.Tree) {
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
