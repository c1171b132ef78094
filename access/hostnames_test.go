package access_test

import (
	"testing"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
)

// With the names of the registry known, a rule for one of them is one for what
// is its own, by whatever name that is asked for, and for nothing mirrored.
func TestRulesWithHostnames(t *testing.T) {
	names := []svchost.Hostname{"registry.example.com", "alias.internal:8443"}
	for _, test := range []struct {
		rule, pattern string
		address       access.Resource
		want          bool
	}{
		{"the first name", "registry.example.com/acme", provider, true},
		{"a module", "registry.example.com/acme", module, true},
		{"an alias, with its port", "alias.internal:8443/acme", provider, true},
		{"an alias without its port is another name", "alias.internal/acme", provider, false},
		{"another namespace", "registry.example.com/other", provider, false},
		{"another provider", "registry.example.com/acme/other", provider, false},
		{"another hostname", "registry.terraform.io/acme", provider, false},
		{"which is still that of what is mirrored", "registry.terraform.io/acme", mirroredAcme, true},
		{"its own name is not that of what is mirrored", "registry.example.com/acme", mirroredAcme, false},
		{"a wildcard that covers a name", "*.example.com", provider, true},
		{"also where another name has another port", "*:8443/acme", provider, true},
		{"a wildcard that covers no name", "*.terraform.io", provider, false},
		{"without a hostname it is as ever", "acme", provider, true},
		{"and nothing mirrored", "acme", mirroredAcme, false},
	} {
		t.Run(test.rule, func(t *testing.T) {
			plain := rulesOf(t, "allow anonymous read "+test.pattern)
			rules := plain.WithHostnames(names)
			if got := rules.Public(test.address); got != test.want {
				t.Errorf("%q covers %+v: %t", test.pattern, test.address, got)
			}
			// The rules that were given stay what they were.
			if alone := rulesOf(t, "allow anonymous read "+test.pattern); plain.Public(test.address) != alone.Public(test.address) {
				t.Error("the rules without hostnames have changed")
			}
		})
	}
	t.Run("a denial under an alias is one under every name", func(t *testing.T) {
		rules := rulesOf(t, "deny group:guests read alias.internal:8443/acme", "allow authenticated read *").WithHostnames(names)
		guest := access.Subject{ID: "jo", Groups: []string{"guests"}}
		if rules.Decide(guest, access.Read, provider).Allowed {
			t.Error("the guest may read it")
		}
		if !rules.Decide(guest, access.Read, mirroredAcme).Allowed {
			t.Error("what is mirrored is denied too")
		}
	})
}

func TestRuleHostnames(t *testing.T) {
	rule, err := access.ParseRule("allow", "ci", "read", "acme", "Registry.Example.com:443/acme", "*.example.com/acme", "internal:443", "*")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for pattern, name := range rule.Hostnames() {
		got = append(got, pattern+" "+string(name))
	}
	if len(got) != 2 || got[0] != "registry.example.com/acme registry.example.com" || got[1] != "internal:443 internal" {
		t.Errorf("got %q", got)
	}
}
