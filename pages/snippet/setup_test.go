package snippet

import (
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/caddy-terraform/caddy-terraform-registry/clientconfig"
)

func TestConfigurationToPaste(t *testing.T) {
	origins := []clientconfig.Origin{{Hostname: "a.example.com", Providers: true}, {Hostname: "b.example.com", Modules: true, Private: true}}
	for _, test := range []struct {
		name  string
		setup Setup
		want  []string
	}{
		{"an empty registry", Setup{}, []string{"Modules"}},
		{"modules and providers", Setup{Modules: true, Providers: true}, []string{"Modules", "Providers"}},
		{"providers alone", Setup{Providers: true}, []string{"Providers"}},
		{"a mirror alone", Setup{Mirror: true}, []string{"Network mirror"}},
		{"a mirror that can stand in", Setup{Mirror: true, Registry: clientconfig.Registry{Origins: origins[:1]}}, []string{"Network mirror", "In place of a.example.com"}},
		{"for several", Setup{Mirror: true, Registry: clientconfig.Registry{Origins: origins}}, []string{"Network mirror", "In place of other registries"}},
		{"who has to sign in, and can", Setup{Modules: true, Registry: clientconfig.Registry{Private: true, Login: true}}, []string{"Sign in", "Modules"}},
		{"who needs a token", Setup{Modules: true, Registry: clientconfig.Registry{Private: true}}, []string{"Credentials", "Modules"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.setup.Hostnames, test.setup.URL = []string{"registry.example.com:8443"}, "https://registry.example.com:8443/v1"
			var got []string
			for _, s := range test.setup.Steps() {
				got = append(got, s.Title)
				if s.Code.Language == "" {
					continue
				}
				if _, problems := hclsyntax.ParseConfig([]byte(s.Code.Text), "", hcl.InitialPos); problems.HasErrors() {
					t.Errorf("%s: %v in\n%s", s.Title, problems, s.Code.Text)
				}
				if !strings.Contains(s.Code.Text, "registry.example.com:8443") {
					t.Errorf("%s does not name the registry:\n%s", s.Title, s.Code.Text)
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
