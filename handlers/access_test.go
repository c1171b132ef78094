package handlers_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// Authorization headers of different users.
const (
	anonymous = ""
	reader    = "Authorization: Bearer reader"   // of the namespace acme
	stranger  = "Authorization: Bearer stranger" // reads another namespace
	garbage   = "Authorization: Bearer garbage"
)

// privateTree has public namespaces called open and private ones called acme.
func privateTree(t testing.TB) *indextest.Tree {
	t.Helper()
	files := indextest.New(t)
	for _, namespace := range []string{"acme", "open"} {
		files.Provider(namespace+"/demo", "1.0.0", "linux_amd64", "darwin_arm64")
		files.Write("modules/"+namespace+"/vpc/aws/1.0.0/main.tf", "# a module")
	}
	files.Provider("registry.terraform.io/acme/null", "3.2.0", "linux_amd64")
	files.Provider("registry.terraform.io/open/null", "3.2.0", "linux_amd64")
	return files
}

// private returns a registry of privateTree with two users.
func private(t testing.TB, rules ...string) *handlers.Registry {
	t.Helper()
	if rules == nil {
		rules = []string{
			"allow anonymous read open registry.terraform.io/open",
			"allow reader read acme registry.terraform.io/acme",
			"allow stranger read other registry.terraform.io/other",
		}
	}
	return privately(t, registry(scan(t, privateTree(t))), rules...)
}

// privately gives a registry access rules.
func privately(t testing.TB, g *handlers.Registry, rules ...string) *handlers.Registry {
	t.Helper()
	var list []access.Rule
	for _, line := range rules {
		rule, err := access.ParseRule(strings.Fields(line)...)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, rule)
	}
	g.Rules = access.NewRules(list...)
	g.Authenticate = func(r *http.Request) (access.Subject, error) {
		switch _, token, _ := strings.Cut(r.Header.Get("Authorization"), "Bearer "); token {
		case "reader", "stranger":
			return access.Subject{ID: token}, nil
		case "unknowable":
			return access.Subject{}, errors.New("the issuer is down")
		}
		return access.Subject{}, nil
	}
	keys := linkKeys(t)
	g.Links = &access.Links{Life: 15 * time.Minute, Keys: func() *access.LinkKeys { return keys }}
	return g
}

// Every endpoint, for every user: a request for something private is refused in the
// same way whether it exists or not.
func TestWhoReadsWhat(t *testing.T) {
	s := serve(t, private(t))
	const (
		ok, found, unauthorized, notFound = http.StatusOK, http.StatusNoContent, http.StatusUnauthorized, http.StatusNotFound
		mirror                            = "/v1/mirror/registry.terraform.io/"
		zip                               = "terraform-provider-null_3.2.0_linux_amd64.zip"
	)
	callers := []string{anonymous, stranger, reader, garbage}
	tests := []struct {
		rule, path string
		want       [4]int
	}{
		{"discovery is public (checklist 4)", wellKnown, [4]int{ok, ok, ok, ok}},

		{"provider versions", "/v1/providers/acme/demo/versions", [4]int{unauthorized, notFound, ok, unauthorized}},
		{"provider download", "/v1/providers/acme/demo/1.0.0/download/linux/amd64", [4]int{unauthorized, notFound, ok, unauthorized}},
		{"module versions", "/v1/modules/acme/vpc/aws/versions", [4]int{unauthorized, notFound, ok, unauthorized}},
		{"module download", "/v1/modules/acme/vpc/aws/1.0.0/download", [4]int{unauthorized, notFound, found, unauthorized}},
		{"module package", "/v1/modules/acme/vpc/aws/1.0.0/archive.tar.gz", [4]int{unauthorized, notFound, ok, unauthorized}},
		{"mirror index", mirror + "acme/null/index.json", [4]int{unauthorized, notFound, ok, unauthorized}},
		{"mirror archives: none, as for a version that does not exist (checklist 66)", mirror + "acme/null/3.2.0.json", [4]int{unauthorized, ok, ok, unauthorized}},
		{"mirror package", mirror + "acme/null/" + zip, [4]int{unauthorized, notFound, ok, unauthorized}},
		{"mirror checksums", mirror + "acme/null/terraform-provider-null_3.2.0_SHA256SUMS", [4]int{unauthorized, notFound, ok, unauthorized}},
		{"mirror signature", mirror + "acme/null/terraform-provider-null_3.2.0_SHA256SUMS.sig", [4]int{unauthorized, notFound, ok, unauthorized}},
		{"a hosted provider through the mirror", "/v1/mirror/" + ownHost + "/acme/demo/index.json", [4]int{unauthorized, notFound, ok, unauthorized}},

		{"public provider versions", "/v1/providers/open/demo/versions", [4]int{ok, ok, ok, ok}},
		{"public provider download", "/v1/providers/open/demo/1.0.0/download/linux/amd64", [4]int{ok, ok, ok, ok}},
		{"public module versions", "/v1/modules/open/vpc/aws/versions", [4]int{ok, ok, ok, ok}},
		{"public module download", "/v1/modules/open/vpc/aws/1.0.0/download", [4]int{found, found, found, found}},
		{"public module package", "/v1/modules/open/vpc/aws/1.0.0/archive.tar.gz", [4]int{ok, ok, ok, ok}},
		{"public mirror index", mirror + "open/null/index.json", [4]int{ok, ok, ok, ok}},
		{"public mirror archives", mirror + "open/null/3.2.0.json", [4]int{ok, ok, ok, ok}},
		{"public mirror package", mirror + "open/null/" + zip, [4]int{ok, ok, ok, ok}},

		{"the newest of a module", "/v1/modules/acme/vpc/aws/download", [4]int{unauthorized, notFound, http.StatusFound, unauthorized}},
		{"the newest of a public module", "/v1/modules/open/vpc/aws/download", [4]int{http.StatusFound, http.StatusFound, http.StatusFound, http.StatusFound}},
		{"module detail", "/v1/modules/acme/vpc/aws", [4]int{unauthorized, notFound, ok, unauthorized}},
		{"module detail of a version", "/v1/modules/acme/vpc/aws/1.0.0", [4]int{unauthorized, notFound, ok, unauthorized}},
		{"provider detail", "/v1/providers/acme/demo", [4]int{unauthorized, notFound, ok, unauthorized}},
		{"provider detail of a version", "/v1/providers/acme/demo/1.0.0", [4]int{unauthorized, notFound, ok, unauthorized}},
		{"public module detail", "/v1/modules/open/vpc/aws/1.0.0", [4]int{ok, ok, ok, ok}},
		{"public provider detail", "/v1/providers/open/demo", [4]int{ok, ok, ok, ok}},
		{"the detail of a missing module", "/v1/modules/acme/nothing/aws/1.0.0", [4]int{unauthorized, notFound, notFound, unauthorized}},
		{"the detail of a missing provider", "/v1/providers/acme/nothing", [4]int{unauthorized, notFound, notFound, unauthorized}},
		{"the detail of a missing version", "/v1/modules/acme/vpc/aws/9.0.0", [4]int{unauthorized, notFound, notFound, unauthorized}},
		{"lists are for everyone, but not as if they were all with wrong credentials", "/v1/modules", [4]int{ok, ok, ok, unauthorized}},
		{"the list of a private namespace", "/v1/modules/acme", [4]int{ok, ok, ok, unauthorized}},
		{"the list of systems", "/v1/modules/acme/vpc", [4]int{ok, ok, ok, unauthorized}},
		{"a search of modules", "/v1/modules/search?q=vpc", [4]int{ok, ok, ok, unauthorized}},
		{"providers", "/v1/providers", [4]int{ok, ok, ok, unauthorized}},
		{"providers of a private namespace", "/v1/providers/acme", [4]int{ok, ok, ok, unauthorized}},
		{"a search of providers", "/v1/providers/search?q=demo", [4]int{ok, ok, ok, unauthorized}},

		{"a missing provider", "/v1/providers/acme/nothing/versions", [4]int{unauthorized, notFound, notFound, unauthorized}},
		{"a missing release", "/v1/providers/acme/demo/9.0.0/download/linux/amd64", [4]int{unauthorized, notFound, notFound, unauthorized}},
		{"a missing module", "/v1/modules/acme/nothing/aws/versions", [4]int{unauthorized, notFound, notFound, unauthorized}},
		{"the package of a missing module", "/v1/modules/acme/nothing/aws/1.0.0/archive.zip", [4]int{unauthorized, notFound, notFound, unauthorized}},
		{"a missing mirrored provider", mirror + "acme/nothing/index.json", [4]int{unauthorized, notFound, notFound, unauthorized}},
		{"archives of a missing provider", mirror + "acme/nothing/1.0.0.json", [4]int{unauthorized, ok, ok, unauthorized}},
		{"a missing mirrored package", mirror + "acme/null/terraform-provider-null_9.0.0_linux_amd64.zip", [4]int{unauthorized, notFound, notFound, unauthorized}},

		{"an address in no rule", "/v1/providers/unnamed/demo/versions", [4]int{unauthorized, notFound, notFound, unauthorized}},
		{"rules for hosted addresses do not cover mirrored ones", mirror + "acme/demo/index.json", [4]int{unauthorized, notFound, notFound, unauthorized}},
		{"an address in upper case", "/v1/modules/ACME/Vpc/aws/versions", [4]int{unauthorized, notFound, ok, unauthorized}},
	}
	for _, test := range tests {
		s.rule(test.rule, func(t *testing.T, s *site) {
			for i, caller := range callers {
				for _, method := range []string{http.MethodGet, http.MethodHead} {
					a := s.do(method, home+test.path, caller)
					if a.StatusCode != test.want[i] {
						t.Errorf("%s as %q: got %d %s, want %d", method, caller, a.StatusCode, a.body, test.want[i])
					}
					if method == http.MethodGet && a.StatusCode >= 400 {
						checkError(t, a.Header, a.body)
					}
				}
			}
		})
	}
	s.rule("the answers for private and missing addresses are the same bytes", func(t *testing.T, s *site) {
		for _, path := range []string{
			"/v1/providers/acme/demo/versions", "/v1/providers/acme/demo/1.0.0/download/linux/amd64", "/v1/modules/acme/vpc/aws/versions",
			"/v1/modules/acme/vpc/aws/1.0.0/download", "/v1/modules/acme/vpc/aws", "/v1/modules/acme/vpc/aws/1.0.0",
			"/v1/providers/acme/demo", "/v1/providers/acme/demo/1.0.0", mirror + "acme/null/index.json", mirror + "acme/null/3.2.0.json", mirror + "acme/null/" + zip,
		} {
			for _, caller := range []string{anonymous, stranger, garbage} {
				is, isNot := s.get(path, caller), s.get(strings.NewReplacer("demo", "xxxx", "vpc", "xxx", "acme/null", "acme/xxxx").Replace(path), caller)
				is.body = strings.NewReplacer("demo", "xxxx", "vpc", "xxx", "acme/null", "acme/xxxx").Replace(is.body)
				for _, h := range []http.Header{is.Header, isNot.Header} {
					h.Del("Date")
					h.Del("Content-Length")
				}
				if is.StatusCode != isNot.StatusCode || is.body != isNot.body || !sameHeader(is.Header, isNot.Header) {
					t.Errorf("%s as %q: %v %s, but if it is missing %v %s", path, caller, is.Header, is.body, isNot.Header, isNot.body)
				}
			}
		}
	})
}

// Hidden packages change no answer for a user who cannot see them: not lists, counts,
// pages, searches, details or validators.
func TestHiddenNamesAreInNoList(t *testing.T) {
	rules := []string{
		"allow anonymous read open registry.terraform.io/open",
		"deny group:guests read acme/vpc/google",
		"allow reader read acme registry.terraform.io/acme",
		"allow stranger read other",
	}
	visible := func() *indextest.Tree {
		files := indextest.New(t)
		for i := range 20 {
			files.Write(fmt.Sprintf("modules/open/m%02d/aws/1.0.0/main.tf", i), "# a module")
		}
		files.Write("modules/open/vpc/aws/1.0.0/main.tf", `variable "cidr" {}`)
		files.Provider("open/demo", "1.0.0", "linux_amd64")
		return files
	}
	all := visible()
	for _, namespace := range []string{"acme", "zzz"} {
		all.Write("modules/"+namespace+"/vpc/aws/1.0.0/main.tf", `variable "cidr" {}`)
		all.Write("modules/"+namespace+"/vpc/aws/1.0.0/modules/aws/main.tf", `variable "cidr" {}`)
		all.Write("modules/"+namespace+"/open/aws/1.0.0/main.tf", "# a module")
		all.Provider(namespace+"/demo", "1.0.0", "linux_amd64")
		all.Provider(ownHost+"/"+namespace+"/named", "1.0.0", "linux_amd64")
	}
	all.Write("modules/"+ownHost+"/open/named/aws/1.0.0/main.tf", "# a module")
	all.Write("modules/registry.terraform.io/acme/vpc/aws/1.0.0/main.tf", "# a module")
	full := privately(t, registry(scan(t, all)), rules...)
	less := privately(t, registry(scan(t, visible())), rules...)
	for _, path := range []string{
		"/v1/modules", "/v1/modules?limit=1", "/v1/modules?limit=21", "/v1/modules?limit=20&offset=1", "/v1/modules?offset=21", "/v1/modules?provider=aws",
		"/v1/modules/acme", "/v1/modules/open", "/v1/modules/acme/vpc", "/v1/modules/open/vpc", "/v1/modules/open/named", "/v1/modules?namespace=zzz",
		"/v1/modules/search?q=vpc", "/v1/modules/search?q=cidr", "/v1/modules/search?q=aws&limit=3", "/v1/modules/search?q=acme", "/v1/modules/search?q=open&limit=100",
		"/v1/modules/search?q=named", "/v1/modules/open/vpc/aws", "/v1/modules/open/vpc/aws/1.0.0",
		"/v1/providers", "/v1/providers?limit=1", "/v1/providers/acme", "/v1/providers/open", "/v1/providers/search?q=demo", "/v1/providers/search?q=named",
		"/v1/providers/open/demo",
	} {
		for _, caller := range []string{anonymous, stranger} {
			for _, host := range []string{ownHost, "registry.terraform.io", "zzz.example.com"} {
				is, isNot := askAs(full, caller, host, path), askAs(less, caller, host, path)
				if is.Code != http.StatusOK || is.Code != isNot.Code || is.Body.String() != isNot.Body.String() || !sameHeader(is.Header(), isNot.Header()) {
					t.Errorf("%s as %q at %s: %d %v %s\nwithout what is hidden: %d %v %s", path, caller, host, is.Code, is.Header(), is.Body, isNot.Code, isNot.Header(), isNot.Body)
				}
			}
		}
		w := askAs(full, reader, ownHost, path)
		if strings.Contains(w.Body.String(), "zzz") && !strings.Contains(path, "zzz") || strings.Contains(w.Body.String(), "named\"") {
			t.Errorf("%s as reader: %s", path, w.Body)
		}
		if caching, public := w.Header().Get("Cache-Control"), strings.Contains(path, "/open/vpc/aws") || strings.Contains(path, "/open/demo"); (caching == "no-cache") != public {
			t.Errorf("%s: Cache-Control is %q", path, caching)
		}
	}
	if w := askAs(full, reader, ownHost, "/v1/modules/search?q=vpc"); !strings.Contains(w.Body.String(), `"acme/vpc/aws/1.0.0"`) {
		t.Errorf("who may read it does not find it: %s", w.Body)
	}
}

// The detail of a module lists its systems. A public module's detail lists the public
// systems, and is the same for everyone. A private module's detail lists the systems
// that the reader may see.
func TestSystemsOfADetailAreThoseThatMayBeSeen(t *testing.T) {
	files := indextest.New(t)
	for _, system := range []string{"aws", "azurerm", "google", "oci"} {
		files.Write("modules/acme/vpc/"+system+"/1.0.0/main.tf", "# a module")
	}
	g := privately(t, registry(scan(t, files)), "allow anonymous read acme/vpc/aws acme/vpc/azurerm", "allow reader read acme/vpc/google")
	for _, test := range []struct{ caller, system, want string }{
		{anonymous, "aws", `"providers":["aws","azurerm"]`},
		{stranger, "aws", `"providers":["aws","azurerm"]`},
		{reader, "aws", `"providers":["aws","azurerm"]`},
		{reader, "google", `"providers":["aws","azurerm","google"]`},
	} {
		if w := askAs(g, test.caller, ownHost, "/v1/modules/acme/vpc/"+test.system); !strings.Contains(w.Body.String(), test.want) {
			t.Errorf("%s as %q: got %s, want %s", test.system, test.caller, w.Body, test.want)
		}
	}
}

// If everyone may read everything, rules make no difference to lists, and no request is
// authenticated.
func TestListsOfAnOpenRegistryWithRules(t *testing.T) {
	plain := registry(scan(t, privateTree(t)))
	g := privately(t, registry(plain.Snapshot()), "allow ci publish acme", "allow anonymous read *")
	g.Authenticate = func(*http.Request) (access.Subject, error) {
		return access.Subject{}, errors.New("the issuer is down")
	}
	for _, path := range []string{"/v1/modules", "/v1/modules/search?q=vpc", "/v1/providers", "/v1/modules/acme/vpc/aws"} {
		is, want := askAs(g, garbage, ownHost, path), askAs(plain, anonymous, ownHost, path)
		if is.Code != http.StatusOK || is.Body.String() != want.Body.String() || !sameHeader(is.Header(), want.Header()) {
			t.Errorf("%s: got %d %v %s, want %v %s", path, is.Code, is.Header(), is.Body, want.Header(), want.Body)
		}
	}
}

func sameHeader(a, b http.Header) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

func TestUnauthorized(t *testing.T) {
	g := private(t)
	tests := []struct {
		rule, host, path, credentials string
		login                         bool
		challenge, message            string
	}{
		{"without credentials: how to get them", ownHost, "/v1/modules/acme/vpc/aws/1.0.0/download", "", false,
			`Bearer realm="terraform registry"`,
			"acme/vpc/aws is private: give your client a token for registry.example.com in TF_TOKEN_registry_example_com"},
		{"with a login, which comes first", ownHost, "/v1/modules/acme/vpc/aws/1.0.0/download", "", true,
			`Bearer realm="terraform registry"`,
			"acme/vpc/aws is private: run terraform login registry.example.com, or give your client a token for registry.example.com in TF_TOKEN_registry_example_com"},
		{"with an unknown token", ownHost, "/v1/providers/acme/demo/versions", "Bearer garbage", false,
			`Bearer realm="terraform registry", error="invalid_token"`,
			"the credentials for acme/demo are unknown, expired or revoked: give your client a token for registry.example.com in TF_TOKEN_registry_example_com"},
		{"an empty token is anonymous", ownHost, "/v1/providers/acme/demo/versions", "Bearer ", false,
			`Bearer realm="terraform registry"`,
			"acme/demo is private: give your client a token for registry.example.com in TF_TOKEN_registry_example_com"},
		{"a dash of the hostname is two underscores in the variable", "my-registry.example.com", "/v1/providers/acme/demo/versions", "", false,
			`Bearer realm="terraform registry"`,
			"acme/demo is private: give your client a token for my-registry.example.com in TF_TOKEN_my__registry_example_com"},
		{"a hostname with a port has no variable", ownHost + ":8443", "/v1/providers/acme/demo/versions", "", false,
			`Bearer realm="terraform registry"`,
			"acme/demo is private: give your client a token for registry.example.com:8443"},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			g := &handlers.Registry{Snapshot: g.Snapshot, Rules: g.Rules, Authenticate: g.Authenticate, Links: g.Links}
			if test.login {
				g.Login = func(context.Context) *wire.Login { return &wire.Login{Client: "terraform-cli"} }
			}
			r := httptest.NewRequest(http.MethodGet, test.path, nil)
			r.Host = test.host
			if test.credentials != "" {
				r.Header.Set("Authorization", test.credentials)
			}
			w := serveRecorded(g, r)
			var body struct{ Errors []string }
			if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil || len(body.Errors) != 1 {
				t.Fatalf("body is %s", w.Body)
			}
			if w.Code != http.StatusUnauthorized || body.Errors[0] != test.message {
				t.Errorf("got %d %q\nwant 401 %q", w.Code, body.Errors[0], test.message)
			}
			if got := w.Header().Get("WWW-Authenticate"); got != test.challenge {
				t.Errorf("challenge is %s, want %s", got, test.challenge)
			}
		})
	}
}

func TestCredentialsThatCannotBeChecked(t *testing.T) {
	s := serve(t, private(t))
	a := s.get("/v1/providers/acme/demo/versions", "Authorization: Bearer unknowable")
	mustRefuse(t, a, http.StatusServiceUnavailable)
	if a.Header.Get("Retry-After") != "1" {
		t.Error("clients are not told to try again")
	}
	if got := s.get("/v1/providers/open/demo/versions", "Authorization: Bearer unknowable").StatusCode; got != http.StatusOK {
		t.Errorf("a public provider: got %d", got)
	}
}

// Clients follow the links they are given without their token (checklist 39, 40,
// 67, 91).
func TestFilesOfPrivateReleases(t *testing.T) {
	for _, public := range []string{"", home} {
		g := private(t)
		g.PublicURL = public
		s := serve(t, g)
		token := strings.TrimPrefix(reader, "Authorization: ")

		s.rule("provider registry, public URL "+public, func(t *testing.T, s *site) {
			var d struct {
				DownloadURL  string `json:"download_url"`
				ChecksumsURL string `json:"shasums_url"`
				SignatureURL string `json:"shasums_signature_url"`
			}
			a := s.json("/v1/providers/acme/demo/1.0.0/download/linux/amd64", &d, "Authorization: "+token)
			for _, link := range []string{d.DownloadURL, d.ChecksumsURL, d.SignatureURL} {
				checkLink(t, s, resolve(t, a, link))
			}
		})
		s.rule("mirror, public URL "+public, func(t *testing.T, s *site) {
			var l archives
			a := s.json("/v1/mirror/registry.terraform.io/acme/null/3.2.0.json", &l, "Authorization: "+token)
			checkLink(t, s, resolve(t, a, l.Archives["linux_amd64"].URL))
		})
		s.rule("module registry, public URL "+public, func(t *testing.T, s *site) {
			a := s.get("/v1/modules/acme/vpc/aws/1.0.0/download", "Authorization: "+token)
			checkLink(t, s, resolve(t, a, a.Header.Get("X-Terraform-Get")))
		})
	}
}

// checkLink uses a link in all the ways clients do.
func checkLink(t *testing.T, s *site, link *url.URL) {
	t.Helper()
	whole := s.get(link.String())
	if whole.StatusCode != http.StatusOK || whole.body == "" {
		t.Fatalf("%s: got %d %s", link, whole.StatusCode, whole.body)
	}
	if got := whole.Header.Get("Cache-Control"); !strings.HasPrefix(got, "private, ") {
		t.Errorf("%s: Cache-Control is %q, which lets shared caches keep it", link, got)
	}
	if a := s.do(http.MethodHead, link.String()); a.StatusCode != http.StatusOK {
		t.Errorf("HEAD: got %d (checklist 41, 92)", a.StatusCode)
	}
	if a := s.get(link.String(), "Range: bytes=2-5"); a.StatusCode != http.StatusPartialContent || a.body != whole.body[2:6] {
		t.Errorf("a range: got %d %q", a.StatusCode, a.body)
	}
	if a := s.get(link.String(), "Authorization: Basic bmV0cmM6c2VjcmV0"); a.StatusCode != http.StatusOK {
		t.Errorf("with credentials from .netrc: got %d (checklist 40)", a.StatusCode)
	}
	q := link.Query()
	again := *link
	again.RawQuery = "zzz=1&sig=" + url.QueryEscape(q.Get("sig")) + "&archive=tar.gz&exp=" + q.Get("exp")
	if a := s.get(again.String()); a.StatusCode != http.StatusOK {
		t.Errorf("with the query in another order: got %d (checklist 93)", a.StatusCode)
	}

	for rule, changed := range map[string]func(*url.URL){
		"another file":     func(u *url.URL) { u.Path = "/v1/modules/acme/vpc/aws/9.9.9/archive.zip" },
		"another provider": func(u *url.URL) { u.Path = "/v1/mirror/" + ownHost + "/acme/other/x.zip" },
		"a later expiry":   func(u *url.URL) { u.RawQuery = "exp=9999999999&sig=" + q.Get("sig") },
		"no expiry":        func(u *url.URL) { u.RawQuery = "sig=" + q.Get("sig") },
		"a forgery":        func(u *url.URL) { u.RawQuery = "exp=" + q.Get("exp") + "&sig=AAAA" },
	} {
		u := *link
		changed(&u)
		if a := s.get(u.String()); a.StatusCode != http.StatusForbidden {
			t.Errorf("%s: got %d %s, want 403", rule, a.StatusCode, a.body)
		} else {
			checkError(t, a.Header, a.body)
		}
	}
	bare := *link
	bare.RawQuery = ""
	if a := s.get(bare.String()); a.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a signature: got %d, want 401", a.StatusCode)
	}
	bad := *link
	bad.RawQuery = "exp=1&sig=AAAA"
	if a := s.get(bad.String(), reader); a.StatusCode != http.StatusOK {
		t.Errorf("a bad link with a token that may read: got %d", a.StatusCode)
	}
}

func resolve(t *testing.T, a answer, reference string) *url.URL {
	t.Helper()
	u, err := a.Request.URL.Parse(reference)
	if err != nil {
		t.Fatal(err)
	}
	if u.Query().Get("sig") == "" {
		t.Fatalf("%s is not signed", u)
	}
	return u
}

// Rules change no public answer, and public answers contain no secret.
func TestPublicAnswersAreAsWithoutRules(t *testing.T) {
	snapshot := scan(t, privateTree(t))
	plain, ruled := serve(t, registry(snapshot)), serve(t, privately(t, registry(snapshot), "allow anonymous read open registry.terraform.io/open"))
	for _, path := range []string{
		"/v1/providers/open/demo/versions", "/v1/providers/open/demo/1.0.0/download/linux/amd64", "/v1/modules/open/vpc/aws/1.0.0/download",
		"/v1/mirror/registry.terraform.io/open/null/3.2.0.json", "/v1/mirror/registry.terraform.io/open/null/terraform-provider-null_3.2.0_linux_amd64.zip",
	} {
		for _, caller := range []string{anonymous, reader} {
			a, b := plain.get(path), ruled.get(path, caller)
			a.Header.Del("Date")
			b.Header.Del("Date")
			if a.body != b.body || !sameHeader(a.Header, b.Header) {
				t.Errorf("%s as %q: %v %s\nwithout rules %v %s", path, caller, b.Header, b.body, a.Header, a.body)
			}
		}
	}
}

// Documents with signed links keep their ETag for a while, and never longer than
// the links are valid.
func TestDocumentsWithLinksChangeInTime(t *testing.T) {
	g := private(t)
	synctest.Test(t, func(t *testing.T) {
		ask := func(ifNoneMatch string) *httptest.ResponseRecorder {
			r := httptest.NewRequest(http.MethodGet, home+"/v1/mirror/registry.terraform.io/acme/null/3.2.0.json", nil)
			r.Header.Set("Authorization", "Bearer reader")
			r.Header.Set("If-None-Match", ifNoneMatch)
			return serveRecorded(g, r)
		}
		first := ask("")
		if got := ask(first.Header().Get("Etag")).Code; got != http.StatusNotModified {
			t.Errorf("immediately: got %d, want 304", got)
		}
		time.Sleep(2 * time.Minute) // by the clock of synctest
		later := ask(first.Header().Get("Etag"))
		if later.Code != http.StatusOK || later.Body.String() == first.Body.String() {
			t.Errorf("after two of fifteen minutes: got %d with the same links", later.Code)
		}
		link := "https://" + ownHost + "/v1/mirror/registry.terraform.io/acme/null/" + firstLink(t, later.Body.Bytes())
		if w := serveRecorded(g, httptest.NewRequest(http.MethodGet, link, nil)); w.Code != http.StatusOK {
			t.Errorf("a link: got %d", w.Code)
		}
		time.Sleep(17 * time.Minute)
		w := serveRecorded(g, httptest.NewRequest(http.MethodGet, link, nil))
		if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "this link has expired") {
			t.Errorf("an old link: got %d %s", w.Code, w.Body)
		}
	})
}

// New links are signed with the new key at once: other instances may no longer have
// the one before.
func TestDocumentsWithLinksChangeWithTheKey(t *testing.T) {
	g := private(t)
	keys := linkKeys(t)
	g.Links = &access.Links{Life: 15 * time.Minute, Keys: func() *access.LinkKeys { return keys }}
	const document = "/v1/mirror/registry.terraform.io/acme/null/3.2.0.json"
	before := firstLink(t, askAs(g, reader, ownHost, document).Body.Bytes())
	keys = linkKeys(t)
	after := firstLink(t, askAs(g, reader, ownHost, document).Body.Bytes())
	if before == after {
		t.Fatal("the link is signed with a key that was replaced")
	}
	const folder = "/v1/mirror/registry.terraform.io/acme/null/"
	if w := ask(g, ownHost, folder+after); w.Code != http.StatusOK {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}

func firstLink(t *testing.T, document []byte) string {
	t.Helper()
	var l archives
	if err := json.Unmarshal(document, &l); err != nil {
		t.Fatal(err)
	}
	return l.Archives["linux_amd64"].URL
}

// OpenTofu since 1.12 fetches small packages with its token (checklist 83, 84).
func TestModulesForOpenTofu(t *testing.T) {
	tests := []struct {
		rule, client, module string
		credentials          string
		status               int
	}{
		{"OpenTofu 1.12", "OpenTofu/1.12.6", "acme", reader, http.StatusOK},
		{"a later version", "OpenTofu/1.20.0", "acme", reader, http.StatusOK},
		{"a release candidate", "OpenTofu/1.12.0-rc1", "acme", reader, http.StatusOK},
		{"an older version", "OpenTofu/1.11.9", "acme", reader, http.StatusNoContent},
		{"Terraform", "Terraform/1.15.0", "acme", reader, http.StatusNoContent},
		{"a public module", "OpenTofu/1.12.6", "open", reader, http.StatusNoContent},
		{"without a token", "OpenTofu/1.12.6", "open", anonymous, http.StatusNoContent},
	}
	s := serve(t, private(t))
	for _, test := range tests {
		s.rule(test.rule, func(t *testing.T, s *site) {
			a := s.get("/v1/modules/"+test.module+"/vpc/aws/1.0.0/download", "User-Agent: "+test.client, test.credentials)
			if a.StatusCode != test.status {
				t.Fatalf("got %d %s, want %d", a.StatusCode, a.body, test.status)
			}
			if a.Header.Get("X-Terraform-Get") == "" {
				t.Error("there is no X-Terraform-Get, which Terragrunt reads first")
			}
			if test.status == http.StatusNoContent {
				return
			}
			const want = `{"location":"/v1/modules/acme/vpc/aws/1.0.0/archive.tar.gz","use_registry_credentials":true}`
			if a.body != want {
				t.Errorf("got %s, want %s", a.body, want)
			}
			if got := s.get("/v1/modules/acme/vpc/aws/1.0.0/archive.tar.gz", reader).StatusCode; got != http.StatusOK {
				t.Errorf("the location: got %d", got)
			}
		})
	}
	s.rule("a package that may take longer than ten seconds", func(t *testing.T, _ *site) {
		files := privateTree(t)
		files.Write("modules/acme/big/aws/1.0.0/data.bin", strings.Repeat("0123456789abcdef", 1<<17))
		files.Write("modules/acme/big/aws/1.0.0/main.tf", "# a module")
		s := serve(t, privately(t, registry(scan(t, files)), "allow reader read acme"))
		if a := s.get("/v1/modules/acme/big/aws/1.0.0/download", "User-Agent: OpenTofu/1.12.6", reader); a.StatusCode != http.StatusNoContent {
			t.Errorf("got %d %s, want a link", a.StatusCode, a.body)
		}
	})
}

func TestNothingIsHandedOutUnsigned(t *testing.T) {
	g := private(t)
	g.Links = &access.Links{Life: time.Minute, Keys: func() *access.LinkKeys { return nil }}
	s := serve(t, g)
	for _, path := range []string{"/v1/providers/acme/demo/1.0.0/download/linux/amd64", "/v1/modules/acme/vpc/aws/1.0.0/download", "/v1/mirror/registry.terraform.io/acme/null/3.2.0.json"} {
		mustRefuse(t, s.get(path, reader), http.StatusServiceUnavailable)
	}
	// A link that cannot be checked is not reported as forged either.
	mustRefuse(t, s.get("/v1/modules/acme/vpc/aws/1.0.0/archive.tar.gz?exp=1&sig="+strings.Repeat("A", 48)), http.StatusServiceUnavailable)
}

func linkKeys(t testing.TB) *access.LinkKeys {
	t.Helper()
	return access.NewLinkKeys(time.Now())
}

// A request that may not read something is handled in the same way whether it exists or
// not, so that the time of an answer tells nothing.
func TestExistenceTakesTheSameWay(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector, under which tests are short, finds nothing in what answers allocate")
	}
	g := private(t)
	link := "?exp=4102444800&sig=" + strings.Repeat("A", 48)
	for _, test := range []struct{ rule, exists, missing string }{
		{"provider versions", "/v1/providers/acme/demo/versions", "/v1/providers/acme/dems/versions"},
		{"in another namespace", "/v1/providers/acme/demo/versions", "/v1/providers/acms/demo/versions"},
		{"in upper case", "/v1/providers/ACME/demo/versions", "/v1/providers/ACME/dems/versions"},
		{"a platform", "/v1/providers/acme/demo/1.0.0/download/linux/amd64", "/v1/providers/acme/demo/2.0.0/download/linux/amd64"},
		{"module versions", "/v1/modules/acme/vpc/aws/versions", "/v1/modules/acme/vps/aws/versions"},
		{"a module in upper case", "/v1/modules/Acme/vpc/aws/versions", "/v1/modules/Acme/vps/aws/versions"},
		{"the newest of a module", "/v1/modules/acme/vpc/aws/download", "/v1/modules/acme/vps/aws/download"},
		{"the download of a module", "/v1/modules/acme/vpc/aws/1.0.0/download", "/v1/modules/acme/vpc/aws/2.0.0/download"},
		{"the detail of a module", "/v1/modules/acme/vpc/aws", "/v1/modules/acme/vps/aws"},
		{"the detail of a version", "/v1/modules/acme/vpc/aws/1.0.0", "/v1/modules/acme/vpc/aws/2.0.0"},
		{"the detail of a provider", "/v1/providers/acme/demo", "/v1/providers/acme/dems"},
		{"the modules of a namespace", "/v1/modules/acme", "/v1/modules/acms"},
		{"the systems of a module", "/v1/modules/acme/vpc", "/v1/modules/acme/vps"},
		{"a search for a namespace", "/v1/modules/search?q=acme", "/v1/modules/search?q=acmx"},
		{"a search of providers", "/v1/providers/search?q=acme", "/v1/providers/search?q=acmx"},
		{"a module's package", "/v1/modules/acme/vpc/aws/1.0.0/archive.tar.gz", "/v1/modules/acme/vps/aws/1.0.0/archive.tar.gz"},
		{"a module's package by a forged link", "/v1/modules/acme/vpc/aws/1.0.0/archive.tar.gz" + link, "/v1/modules/acme/vps/aws/1.0.0/archive.tar.gz" + link},
		{"a module of a hostname", "/v1/modules/registry.terraform.io/acme/vpc/aws/1.0.0/archive.tar.gz", "/v1/modules/registry.terraform.io/acme/vps/aws/1.0.0/archive.tar.gz"},
		{"index.json", "/v1/mirror/registry.terraform.io/acme/null/index.json", "/v1/mirror/registry.terraform.io/acme/nuls/index.json"},
		{"index.json of another hostname", "/v1/mirror/registry.terraform.io/acme/null/index.json", "/v1/mirror/registry.terraform.is/acme/null/index.json"},
		{"VERSION.json", "/v1/mirror/registry.terraform.io/acme/null/3.2.0.json", "/v1/mirror/registry.terraform.io/acme/null/3.2.1.json"},
		{"VERSION.json of another", "/v1/mirror/registry.terraform.io/acme/null/3.2.0.json", "/v1/mirror/registry.terraform.io/acme/nuls/3.2.0.json"},
		{"a mirrored file", "/v1/mirror/registry.terraform.io/acme/null/terraform-provider-null_3.2.0_linux_amd64.zip", "/v1/mirror/registry.terraform.io/acme/null/terraform-provider-null_3.2.1_linux_amd64.zip"},
		{"a mirrored file by a forged link", "/v1/mirror/registry.terraform.io/acme/null/terraform-provider-null_3.2.0_linux_amd64.zip" + link, "/v1/mirror/registry.terraform.io/acme/null/terraform-provider-null_3.2.1_linux_amd64.zip" + link},
		{"a hosted file", "/v1/mirror/-/acme/demo/terraform-provider-demo_1.0.0_linux_amd64.zip", "/v1/mirror/-/acme/dems/terraform-provider-demo_1.0.0_linux_amd64.zip"},
		{"a hosted file under a name", "/v1/mirror/" + ownHost + "/acme/demo/terraform-provider-demo_1.0.0_linux_amd64.zip", "/v1/mirror/" + ownHost + "/acme/demo/terraform-provider-demo_1.0.1_linux_amd64.zip"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			for _, caller := range []string{anonymous, stranger, garbage} {
				exists, code := allocations(g, caller, test.exists)
				missing, same := allocations(g, caller, test.missing)
				if exists != missing || code != same {
					t.Errorf("as %q: %v allocations and %d if it exists, %v and %d if not", caller, exists, code, missing, same)
				}
			}
		})
	}
}

// allocations returns the allocations of an answer, which differ between ways through
// the code as times do. It is the minimum of several answers, since pools may be
// emptied.
func allocations(g *handlers.Registry, credentials, path string) (float64, int) {
	r := withHeaders(httptest.NewRequest(http.MethodGet, home+path, nil), credentials)
	w := &sink{header: make(http.Header)}
	fewest := math.Inf(1)
	for range 200 { // under the race detector, pools drop a quarter at random
		fewest = min(fewest, testing.AllocsPerRun(1, func() {
			clear(w.header)
			g.ServeHTTP(w, r)
		}))
	}
	return fewest, w.status
}
