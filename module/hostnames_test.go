package module

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// onSiteRoute returns a route in the form of the Caddyfile adapter.
func onSiteRoute(host, registry string) string {
	return `{"match":[{"host":["` + host + `"]}],"terminal":true,"handle":[{"handler":"subroute","routes":[{"handle":[` + registry + `]}]}]}`
}

// A rule with a hostname of the registry that is not in the option hostname would match
// nothing. It is an error when the configuration is loaded.
func TestRulesWithTheHostnameOfTheSite(t *testing.T) {
	t.Setenv("HOSTNAMES_TEST", "env.example.com")
	root := sampleTree(t)
	registry := func(pattern string, more string) string {
		return fmt.Sprintf(`{"handler":"terraform_registry","root":%q%s,"access":{"rules":[
			{"effect":"allow","who":"ci","right":"read","addresses":["acme"]},
			{"effect":"deny","who":"jo","right":"read","addresses":["other",%q]}]}}`, root, more, pattern)
	}
	const r = "registry.example.com"
	nested := func(host, registry string) string {
		return `{"match":[{"host":["*.example.com"]}],"handle":[{"handler":"subroute","routes":[{"match":[{"host":["` + host + `"]}],"handle":[` + registry + `]}]}]}`
	}
	other := onSiteRoute("other.example.com", `{"handler":"static_response"}`)
	for _, test := range []struct {
		rule   string
		routes []string
		want   string // empty: no error
	}{
		{"the host of the site", []string{onSiteRoute(r, registry(r+"/acme", ""))},
			"access: rule 2: the hostname in the pattern \"registry.example.com/acme\" is that of the site, so it is one of this registry's: add the option `hostname registry.example.com`, or write \"acme\""},
		{"in another case", []string{onSiteRoute("Registry.Example.com", registry("REGISTRY.example.com/acme", ""))}, "is that of the site"},
		{"with a port", []string{onSiteRoute(r, registry(r+":8443/acme", ""))}, "add the option `hostname registry.example.com:8443`"},
		{"alone", []string{onSiteRoute(r, registry(r, ""))}, `or write "*/*"`},
		{"in punycode", []string{onSiteRoute("xn--bcher-kva.example", registry("bücher.example/acme", ""))}, "is that of the site"},
		{"one of the hosts of the site", []string{`{"match":[{"host":["a.example.com","` + r + `"]}],"handle":[` + registry(r+"/acme", "") + `]}`}, "is that of the site"},
		{"the host of a wildcard site", []string{onSiteRoute("*.example.com", registry(r+"/acme", ""))}, "is that of the site"},
		{"the host of a site with a placeholder", []string{onSiteRoute("{env.HOSTNAMES_TEST}", registry("env.example.com/acme", ""))}, "is that of the site"},
		{"the host of the second site", []string{other, onSiteRoute(r, registry(r+"/acme", "")), onSiteRoute("third.example.com", `{"handler":"static_response"}`)}, "is that of the site"},
		{"the host of a route in the site", []string{nested(r, registry(r+"/acme", ""))}, "is that of the site"},
		{"the host of the public URL", []string{`{"handle":[` + registry(r+"/acme", `,"public_url":"https://registry.example.com:8443"`) + `]}`}, "is that of public_url"},

		{"the host of the site, configured", []string{onSiteRoute(r, registry(r+"/acme", `,"hostname":["`+r+`"]`))}, ""},
		{"the host of the site, with another hostname configured", []string{onSiteRoute(r, registry(r+"/acme", `,"hostname":["a.example.com"]`))}, ""},
		{"no hostname", []string{onSiteRoute(r, registry("acme/vpc", ""))}, ""},
		{"a wildcard", []string{onSiteRoute(r, registry("*.example.com/acme", ""))}, ""},
		{"the hostname of another registry", []string{onSiteRoute(r, registry("registry.terraform.io/acme", ""))}, ""},
		{"the host of another site, which is mirrored", []string{other, onSiteRoute(r, registry("other.example.com/acme", ""))}, ""},
		{"the host of a later site", []string{onSiteRoute(r, registry("other.example.com/acme", "")), other}, ""},
		{"the host of another route of the site", []string{nested(r, registry("other.example.com/acme", ""))}, ""},
		{"a site without hosts", []string{`{"handle":[` + registry(r+"/acme", "") + `]}`}, ""},
	} {
		t.Run(test.rule, func(t *testing.T) {
			var config caddy.Config
			raw := `{"admin":{"disabled":true},"storage":{"module":"file_system","root":` + fmt.Sprintf("%q", t.TempDir()) + `},
				"apps":{"http":{"servers":{"srv0":{"listen":["127.0.0.1:0"],"automatic_https":{"disable":true},"routes":[` + strings.Join(test.routes, ",") + `]}}}}}`
			if err := json.Unmarshal([]byte(raw), &config); err != nil {
				t.Fatal(err)
			}
			err := caddy.Validate(&config)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("validate: got error %v, want %q", err, test.want)
			}
		})
	}
}

// URLs that some tools do not resolve are absolute if the name is known, and lead to
// the right files. All others stay as they are.
func TestAbsoluteURLs(t *testing.T) {
	auth, tokens := tokensProvider(t, "ci")
	root := sampleTree(t)
	c := newConfiguration(t)
	plain := c.mustHandle(Handler{Root: root})
	private := c.mustHandle(Handler{Root: root, AuthRaw: []json.RawMessage{auth}})
	public := c.mustHandle(Handler{Root: root, PublicURL: "https://public.example.com"})
	c.mustStart()
	snapshot(t, plain)
	const home = "https://registry.example.com"
	const (
		download = "/v1/providers/acme/demo/1.2.0/download/linux/amd64"
		module   = "/v1/modules/acme/vpc/aws/1.0.0/download"
		newest   = "/v1/modules/acme/vpc/aws/download"
		archives = "/v1/mirror/registry.example.com/acme/demo/1.2.0.json"
	)
	unencrypted := func(r *http.Request, _ *caddy.Replacer) { r.TLS = nil }
	for _, test := range []struct {
		rule    string
		h       *Handler
		token   string
		prepare func(*http.Request, *caddy.Replacer)
		want    string
	}{
		{"by TLS", plain, "", nil, home},
		{"not by TLS", plain, "", unencrypted, ""},
		{"with a public URL", public, "", nil, "https://public.example.com"},
		{"with a public URL, not by TLS", public, "", unencrypted, "https://public.example.com"},
		{"signed", private, tokens["ci"], nil, home},
		{"signed, not by TLS", private, tokens["ci"], unencrypted, ""},
	} {
		t.Run(test.rule, func(t *testing.T) {
			w := ask(t, test.h, download, test.token, test.prepare)
			var d map[string]any
			if err := json.Unmarshal(w.Body.Bytes(), &d); err != nil {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
			for _, name := range []string{"download_url", "shasums_url", "shasums_signature_url"} {
				got := d[name].(string)
				if !strings.HasPrefix(got, test.want+"/v1/mirror/-/acme/demo/") {
					t.Errorf("%s is %s, want it at %s", name, got, test.want)
				}
				if w := ask(t, test.h, strings.TrimPrefix(got, test.want), "", nil); w.Code != http.StatusOK {
					t.Errorf("%s is %d %s", got, w.Code, w.Body)
				}
			}
			got := ask(t, test.h, module, test.token, test.prepare).Header().Get("X-Terraform-Get")
			if !strings.HasPrefix(got, test.want+"/v1/modules/acme/vpc/aws/1.0.0/archive.tar.gz") {
				t.Errorf("X-Terraform-Get is %s, want it at %s", got, test.want)
			}
			if w := ask(t, test.h, strings.TrimPrefix(got, test.want), "", nil); w.Code != http.StatusOK {
				t.Errorf("%s is %d %s", got, w.Code, w.Body)
			}
			if got := ask(t, test.h, newest, test.token, test.prepare).Header().Get("Location"); got != module {
				t.Errorf("Location is %s, want the path alone: clients keep their token (checklist 30)", got)
			}
			if test.h == public {
				return
			}
			if got := ask(t, test.h, archives, test.token, test.prepare).Body.String(); !strings.Contains(got, `"url":"terraform-provider-demo_1.2.0_`) {
				t.Errorf("VERSION.json is %s", got)
			}
			if got := ask(t, test.h, "/.well-known/terraform.json", "", test.prepare).Body.String(); !strings.Contains(got, `"/v1/providers/"`) {
				t.Errorf("discovery is %s (checklist 11)", got)
			}
		})
	}
}

// The headers of a proxy count only if Caddy trusts it.
func TestAbsoluteURLsBehindProxies(t *testing.T) {
	root := sampleTree(t)
	const routes = `"listen":[%q],"automatic_https":{"disable":true},"routes":[{"handle":[{"handler":"terraform_registry","root":%q,"signing_key":{"off":true}}]}]`
	config := fmt.Sprintf(`{
		"admin":{"disabled":true,"config":{"persist":false}},
		"storage":{"module":"file_system","root":%q},
		"apps":{"http":{"servers":{
			"trusting":{"trusted_proxies":{"source":"static","ranges":["127.0.0.1/32"]},`+routes+`},
			"plain":{`+routes+`}}}}}`, t.TempDir(), "127.0.0.1:0", root, "localhost:0", root)
	if err := caddy.Load([]byte(config), true); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := caddy.Stop(); err != nil {
			t.Error(err)
		}
	})
	app, err := caddy.ActiveContext().AppIfConfigured("http")
	if err != nil {
		t.Fatal(err)
	}
	awaitLive(t)
	const path = "/v1/modules/acme/vpc/aws/1.0.0/archive.tar.gz"
	for _, test := range []struct{ rule, server, proto, host, want string }{
		{"a trusted proxy", "trusting", "https", "registry.example.com", "https://registry.example.com" + path},
		{"a trusted proxy that keeps the name", "trusting", "https", "", "https://internal:8080" + path},
		{"a trusted proxy without headers", "trusting", "", "", path},
		{"another", "plain", "https", "registry.example.com", path},
	} {
		t.Run(test.rule, func(t *testing.T) {
			address := app.(*caddyhttp.App).Servers[test.server].Listeners()[0].Addr().String()
			r, err := http.NewRequest(http.MethodGet, "http://"+address+"/v1/modules/acme/vpc/aws/1.0.0/download", nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Host = "internal:8080"
			if test.proto != "" {
				r.Header.Set("X-Forwarded-Proto", test.proto)
			}
			if test.host != "" {
				r.Header.Set("X-Forwarded-Host", test.host)
			}
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			answer.Body.Close()
			if got := answer.Header.Get("X-Terraform-Get"); got != test.want {
				header, _ := json.Marshal(answer.Header)
				t.Errorf("got %d %s, want %s", answer.StatusCode, header, test.want)
			}
		})
	}
}
