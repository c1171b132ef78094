package handlers_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
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
