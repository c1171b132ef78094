package module

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
)

// onSiteRoute is a route as the Caddyfile adapter writes it.
func onSiteRoute(host, registry string) string {
	return `{"match":[{"host":["` + host + `"]}],"terminal":true,"handle":[{"handler":"subroute","routes":[{"handle":[` + registry + `]}]}]}`
}

// A rule with the registry's own name that nothing says is its own would be void. It
// is an error when the configuration is loaded.
func TestRulesWithOwnName(t *testing.T) {
	t.Setenv("OWN_NAMES_TEST", "env.example.com")
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
		want   string // empty: it is no error
	}{
		{"the site's name", []string{onSiteRoute(r, registry(r+"/acme", ""))},
			"access: rule 2: the name in the pattern \"registry.example.com/acme\" is that of the site, so it is this registry's own: add the option `hostname registry.example.com`, or write \"acme\""},
		{"in another case", []string{onSiteRoute("Registry.Example.com", registry("REGISTRY.example.com/acme", ""))}, "is that of the site"},
		{"with a port", []string{onSiteRoute(r, registry(r+":8443/acme", ""))}, "add the option `hostname registry.example.com:8443`"},
		{"alone", []string{onSiteRoute(r, registry(r, ""))}, `or write "*/*"`},
		{"in punycode", []string{onSiteRoute("xn--bcher-kva.example", registry("bücher.example/acme", ""))}, "is that of the site"},
		{"one of a site's names", []string{`{"match":[{"host":["a.example.com","` + r + `"]}],"handle":[` + registry(r+"/acme", "") + `]}`}, "is that of the site"},
		{"of a site for many names", []string{onSiteRoute("*.example.com", registry(r+"/acme", ""))}, "is that of the site"},
		{"of a site by a placeholder", []string{onSiteRoute("{env.OWN_NAMES_TEST}", registry("env.example.com/acme", ""))}, "is that of the site"},
		{"of the second site", []string{other, onSiteRoute(r, registry(r+"/acme", "")), onSiteRoute("third.example.com", `{"handler":"static_response"}`)}, "is that of the site"},
		{"of a route in a site", []string{nested(r, registry(r+"/acme", ""))}, "is that of the site"},
		{"of the public URL", []string{`{"handle":[` + registry(r+"/acme", `,"public_url":"https://registry.example.com:8443"`) + `]}`}, "is that of public_url"},

		{"with the name configured", []string{onSiteRoute(r, registry(r+"/acme", `,"hostname":["`+r+`"]`))}, ""},
		{"with another name configured", []string{onSiteRoute(r, registry(r+"/acme", `,"hostname":["a.example.com"]`))}, ""},
		{"no name", []string{onSiteRoute(r, registry("acme/vpc", ""))}, ""},
		{"a wildcard", []string{onSiteRoute(r, registry("*.example.com/acme", ""))}, ""},
		{"another registry's name", []string{onSiteRoute(r, registry("registry.terraform.io/acme", ""))}, ""},
		{"the name of another site, which is mirrored", []string{other, onSiteRoute(r, registry("other.example.com/acme", ""))}, ""},
		{"the name of a later site", []string{onSiteRoute(r, registry("other.example.com/acme", "")), other}, ""},
		{"the name of another route of the site", []string{nested(r, registry("other.example.com/acme", ""))}, ""},
		{"a site for any name", []string{`{"handle":[` + registry(r+"/acme", "") + `]}`}, ""},
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
