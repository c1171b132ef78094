package module

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/usage"
)

// get sends a request to a handler as Caddy does. The next handler answers with 418.
func get(t *testing.T, h *Handler, target string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	r := caddyhttp.PrepareRequest(httptest.NewRequest(http.MethodGet, target, nil), caddy.NewReplacer(), w, &caddyhttp.Server{})
	next := caddyhttp.HandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
		w.WriteHeader(http.StatusTeapot)
		return nil
	})
	if err := h.ServeHTTP(w, r, next); err != nil {
		t.Fatal(err)
	}
	return w
}

func TestServeHTTP(t *testing.T) {
	c := newConfiguration(t)
	root := sampleTree(t)
	h := c.mustHandle(Handler{Root: root})
	custom := c.mustHandle(Handler{Root: root, Prefix: "/terraform", PublicURL: "https://registry.example.com/"})
	c.mustStart()
	snapshot(t, h)

	tests := []struct {
		rule    string
		handler *Handler
		path    string
		status  int
		body    string
	}{
		{"discovery", h, "/.well-known/terraform.json", 200, `"/v1/providers/"`},
		{"a provider", h, "/v1/providers/acme/demo/versions", 200, `"1.2.0"`},
		{"a missing provider", h, "/v1/providers/acme/other/versions", 404, `"errors"`},
		{"a path of another handler", h, "/index.html", 418, ""},
		{"the prefix in discovery", custom, "/.well-known/terraform.json", 200, `"https://registry.example.com/terraform/providers/"`},
		{"the prefix", custom, "/terraform/providers/acme/demo/versions", 200, `"1.2.0"`},
		{"the default prefix, with another one configured", custom, "/v1/providers/acme/demo/versions", 418, ""},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			w := get(t, test.handler, "https://registry.example.com"+test.path)
			if w.Code != test.status || !strings.Contains(w.Body.String(), test.body) {
				t.Errorf("got %d %s, want %d with %s", w.Code, w.Body, test.status, test.body)
			}
		})
	}
}

// The HTTP server may start before the app.
func TestRequestBeforeStart(t *testing.T) {
	c := newConfiguration(t)
	h := c.mustHandle(Handler{Root: sampleTree(t)})
	answered := make(chan *httptest.ResponseRecorder)
	go func() { answered <- get(t, h, "https://registry.example.com/v1/providers/acme/demo/versions") }()
	c.mustStart()
	switch w := <-answered; w.Code {
	case http.StatusOK: // the scan was faster
	case http.StatusServiceUnavailable:
		if w.Header().Get("Retry-After") != "1" {
			t.Errorf("Retry-After is %q", w.Header().Get("Retry-After"))
		}
	default:
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}

// A change that a request finds is in the answers to later requests.
func TestChangedHasTheTreeScanned(t *testing.T) {
	root := sampleTree(t)
	c := newConfiguration(t)
	h := c.mustHandle(Handler{Root: root, Rescan: -1})
	logged := c.listen()
	c.mustStart()
	snapshot(t, h)
	indextest.OnDisk(t, root).Provider("acme/demo", "1.3.0", "linux_amd64")
	awaitChange(t, h, logged, 3)
}

func TestDefaults(t *testing.T) {
	h := newConfiguration(t).mustHandle(Handler{Root: sampleTree(t)})
	if h.Prefix != "/v1" || h.Signatures != "prefer" || h.Rescan != caddy.Duration(5*time.Minute) || h.source.tree.rescan != 5*time.Minute {
		t.Errorf("got %+v", h)
	}
	if !h.source.tree.signing.stored {
		t.Error("the key in the storage is not used")
	}
}

func TestPlaceholders(t *testing.T) {
	root := sampleTree(t)
	t.Setenv("REGISTRY_ROOT", root)
	t.Setenv("REGISTRY_NAME", "registry.example.com")
	t.Setenv("REGISTRY_SIGNATURES", "require")
	t.Setenv("REGISTRY_RIGHT", "publish")
	t.Setenv("REGISTRY_COUNT", "group")
	h := newConfiguration(t).mustHandle(Handler{
		Root:       "{env.REGISTRY_ROOT}",
		Hostnames:  []string{"{env.REGISTRY_NAME}"},
		PublicURL:  "https://{env.REGISTRY_NAME}",
		Signatures: "{env.REGISTRY_SIGNATURES}",
		Usage:      &Usage{By: "{env.REGISTRY_COUNT}"},
		Access:     &Access{Rules: []AccessRule{{Effect: "allow", Who: "anonymous", Right: "{env.REGISTRY_RIGHT}", Addresses: []string{"{env.REGISTRY_NAME}/acme"}}}},
	})
	if h.source.tree.root() != root {
		t.Errorf("the root is %q, want %q", h.source.tree.root(), root)
	}
	if h.registry.Hostnames[0] != "registry.example.com" || h.registry.PublicURL != "https://registry.example.com" {
		t.Errorf("got %v and %v", h.registry.Hostnames, h.registry.PublicURL)
	}
	if !h.source.tree.require || h.registry.UsageBy != usage.ByGroup {
		t.Errorf("signatures are required: %t, and downloads are counted by %q", h.source.tree.require, h.registry.UsageBy)
	}
	for rule := range h.registry.Rules.All() {
		if got := rule.String(); got != "allow anonymous publish registry.example.com/acme" {
			t.Errorf("the rule is %s", got)
		}
	}
	if !h.Access.allows(access.Publish) {
		t.Error("the start warns that nobody may publish")
	}
}

func TestProvisionAccepts(t *testing.T) {
	root := sampleTree(t)
	if err := os.Mkdir(filepath.Join(root, "mirror"), 0o755); err != nil {
		t.Fatal(err)
	}
	elsewhere := t.TempDir()
	tests := []struct {
		rule    string
		handler Handler
	}{
		{"a tree without some of its folders", Handler{}},
		{"a folder under the root", Handler{Providers: "mirror"}},
		{"a folder elsewhere", Handler{Providers: elsewhere, Keys: elsewhere}},
		{"a hostname with a port", Handler{Hostnames: []string{"registry.example.com:8443"}}},
		{"a hostname in Unicode", Handler{Hostnames: []string{"bücher.example.com"}}},
		{"a prefix with two segments", Handler{Prefix: "/terraform/v1"}},
		{"a public URL with a port", Handler{PublicURL: "https://registry.example.com:8443"}},
		{"a public URL with a path", Handler{PublicURL: "https://registry.example.com/tools/"}},
		{"pages below a path", Handler{UI: &UI{Path: "/registry/"}}},
		{"pages below the prefix", Handler{UI: &UI{Path: "/v1/pages"}}},
		{"links of pages", Handler{UI: &UI{Links: []UILink{{"Ask", "https://chat.example.com"}, {"Write", "mailto:a@example.com"}, {"Handbook", "/handbook"}}}}},
		{"a public URL without TLS", Handler{PublicURL: "http://localhost:8080"}},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			test.handler.Root = root
			newConfiguration(t).mustHandle(test.handler)
		})
	}
}

func TestProvisionRefuses(t *testing.T) {
	root := sampleTree(t)
	file := filepath.Join(root, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		rule    string
		handler Handler // with root unless it has one
		want    string
	}{
		{"a missing root", Handler{Root: filepath.Join(root, "missing")}, "root: "},
		{"a root that is a file", Handler{Root: file}, "is not a folder"},
		{"a root with a placeholder of requests", Handler{Root: "{http.vars.root}"}, "root: "},
		{"a root with an unset variable", Handler{Root: "{env.REGISTRY_UNSET}"}, "root: "},
		{"missing providers", Handler{Providers: "missing"}, "providers: "},
		{"missing modules elsewhere", Handler{Modules: filepath.Join(root, "missing")}, "modules: "},
		{"keys that are a file", Handler{Keys: "file"}, "keys: "},
		{"a relative path that leaves the root", Handler{Providers: "../mirror"}, "leads out of the root: give an absolute path"},
		{"an upstream that is null", Handler{Upstreams: []*Upstream{nil}}, "upstream: an entry is null: leave it out"},
		{"a host of an upstream that is null", Handler{Upstreams: []*Upstream{{Hostnames: []string{"a.example.com"}, Modules: true, Hosts: []*UpstreamHost{nil}}}}, "upstream: hosts: an entry is null: leave it out"},
		{"a host of git that is null", Handler{Git: &Git{Hosts: []*GitHost{nil}}}, "git: hosts: an entry is null: leave it out"},
		{"counting by what is not known", Handler{Usage: &Usage{By: "{env.REGISTRY_UNSET}"}}, "usage: by: "},
		{"a hostname with a scheme", Handler{Hostnames: []string{"https://registry.example.com"}}, `hostname: "https://registry.example.com" is not a hostname`},
		{"an empty hostname", Handler{Hostnames: []string{""}}, "hostname: "},
		{"a prefix without slash", Handler{Prefix: "v1"}, `prefix: "v1" does not start with a slash`},
		{"a prefix with a trailing slash", Handler{Prefix: "/v1/"}, `prefix: "/v1/" must not end in a slash`},
		{"a prefix that is only a slash", Handler{Prefix: "/"}, "must not end in a slash"},
		{"a prefix with dots", Handler{Prefix: "/a/../b"}, "has empty or dot segments"},
		{"a prefix with a space", Handler{Prefix: "/my registry"}, "need escaping"},
		{"a prefix with a query", Handler{Prefix: "/v1?a=b"}, "need escaping"},
		{"a public URL without scheme", Handler{PublicURL: "registry.example.com"}, "does not begin with https://"},
		{"a public URL with another scheme", Handler{PublicURL: "ftp://registry.example.com"}, "does not begin with https://"},
		{"a public URL without host", Handler{PublicURL: "https:///v1"}, "has no host"},
		{"a public URL with a user", Handler{PublicURL: "https://bob:secret@registry.example.com"}, "must not have a user name"},
		{"a public URL with a query", Handler{PublicURL: "https://registry.example.com?a=b"}, "query or a fragment"},
		{"a public URL with a fragment", Handler{PublicURL: "https://registry.example.com#"}, "query or a fragment"},
		{"pages at a path without slash", Handler{UI: &UI{Path: "registry"}}, `ui: the path "registry" does not start with a slash`},
		{"pages at a path with dots", Handler{UI: &UI{Path: "/a/../b"}}, "has empty or dot segments"},
		{"pages at a path with a space", Handler{UI: &UI{Path: "/my pages"}}, "need escaping"},
		{"a long name of the pages", Handler{UI: &UI{Name: strings.Repeat("x", 61)}}, "ui: the name is longer than 60 characters"},
		{"a link without a text", Handler{UI: &UI{Links: []UILink{{"", "/handbook"}}}}, `ui: the link to "/handbook" has no text`},
		{"a link to a script", Handler{UI: &UI{Links: []UILink{{"x", "javascript:alert(1)"}}}}, "neither a URL with https, http or mailto nor a path"},
		{"a link to nowhere", Handler{UI: &UI{Links: []UILink{{"x", "handbook"}}}}, "neither a URL with https, http or mailto nor a path"},
		{"a logo that is not there", Handler{UI: &UI{Logo: "/nowhere/logo.svg"}}, "ui: logo: open /nowhere/logo.svg"},
		{"a logo that is no image", Handler{UI: &UI{Logo: "handler_test.go"}}, "no image that browsers show"},
		{"pages at the prefix", Handler{UI: &UI{Path: "/v1/"}}, `ui: the path "/v1/" is one that clients use`},
		{"pages where clients ask", Handler{UI: &UI{Path: "/v1/modules"}}, `ui: the path "/v1/modules" is one that clients use`},
		{"pages below where clients ask", Handler{Prefix: "/tf", UI: &UI{Path: "/tf/mirror/pages"}}, "is one that clients use"},
		{"pages where registries are stood in for", Handler{UI: &UI{Path: "/v1/registries"}}, "is one that clients use"},
		{"pages below a probe", Handler{UI: &UI{Path: "/v1/ready/pages"}}, "is one that clients use"},
		{"unknown signatures", Handler{Signatures: "always"}, `signatures: "always" is neither prefer nor require`},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			if test.handler.Root == "" {
				test.handler.Root = root
			}
			_, err := newConfiguration(t).handle(test.handler)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got error %v, want one with %q", err, test.want)
			}
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("error %q has the password in it", err)
			}
		})
	}
	if _, err := newConfiguration(t).handle(Handler{}); err == nil || !strings.Contains(err.Error(), "root: it is required") {
		t.Errorf("without a root: got error %v", err)
	}
}
