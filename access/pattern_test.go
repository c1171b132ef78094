package access_test

import (
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// Addresses by what they are. With the names of a registry configured, its own
// have a hostname; without, they have none.
var (
	provider       = access.Resource{Address: address.Address{Namespace: "acme", Name: "demo"}, Hosted: true}
	module         = access.Resource{Address: address.Address{Namespace: "acme", Name: "vpc", System: "aws"}, Hosted: true}
	namespace      = access.Resource{Address: address.Address{Namespace: "acme"}, Hosted: true}
	named          = access.Resource{Address: address.Address{Hostname: "registry.example.com", Namespace: "acme", Name: "demo"}, Hosted: true}
	mirrored       = access.Resource{Address: address.Address{Hostname: "registry.terraform.io", Namespace: "hashicorp", Name: "null"}}
	mirroredAcme   = access.Resource{Address: address.Address{Hostname: "registry.terraform.io", Namespace: "acme", Name: "demo"}}
	atPort         = access.Resource{Address: address.Address{Hostname: "registry.example.com:8443", Namespace: "acme", Name: "demo"}}
	inUnicode      = access.Resource{Address: address.Address{Hostname: "xn--bcher-kva.example", Namespace: "münchen", Name: "straße"}}
	internal       = access.Resource{Address: address.Address{Hostname: "internal", Namespace: "acme", Name: "demo"}}
	moduleAsItIs   = access.Resource{Address: address.Address{Namespace: "Acme", Name: "VPC", System: "aws"}, Hosted: true}
	providerAsItIs = access.Resource{Address: address.Address{Namespace: "MÜNCHEN", Name: "Demo"}, Hosted: true}
)

func TestPatternCovers(t *testing.T) {
	for _, test := range []struct {
		rule, pattern string
		address       access.Resource
		want          bool
	}{
		{"a star alone is everything", "*", provider, true},
		{"modules as well", "*", module, true},
		{"mirrored as well", "*", mirrored, true},
		{"whatever it is", "*", access.Resource{}, true},

		{"a namespace has its providers", "acme", provider, true},
		{"and its modules", "acme", module, true},
		{"and is itself", "acme", namespace, true},
		{"under every name of the registry", "acme", named, true},
		{"but not what is mirrored", "acme", mirroredAcme, false},
		{"nor what begins alike", "acm", provider, false},
		{"nor goes on alike", "acmes", provider, false},
		{"a star behind it is the same for a provider", "acme/*", provider, true},
		{"and for a module", "acme/*", module, true},
		{"but not the namespace by itself", "acme/*", namespace, false},

		{"a provider is one", "acme/demo", provider, true},
		{"and not another one", "acme/other", provider, false},
		{"a module is one for all systems", "acme/vpc", module, true},
		{"or for one", "acme/vpc/aws", module, true},
		{"and not for another one", "acme/vpc/azure", module, false},
		{"a system no provider has", "acme/demo/*", provider, false},
		{"so three stars are all modules", "*/*/*", module, true},
		{"and no providers", "*/*/*", provider, false},
		{"two stars are all there is", "*/*", module, true},
		{"of the registry's own", "*/*", mirrored, false},

		{"a star stands for the end", "acme/d*", provider, true},
		{"for the beginning", "acme/*mo", provider, true},
		{"for the middle", "a*e/d*o", provider, true},
		{"for nothing", "acme*/*demo", provider, true},
		{"there may be several", "*c*e/*e*o*", provider, true},
		{"it does not stand for what is not there", "acme/*x", provider, false},
		{"nor for a slash", "*demo", provider, false},
		{"what matches first may have to go on", "acme/*mo", access.Resource{Address: address.Address{Namespace: "acme", Name: "momomo"}, Hosted: true}, true},

		{"the pattern's case does not count", "ACME/Demo", provider, true},
		{"nor the address's", "acme/vpc", moduleAsItIs, true},
		{"nor with a star", "AC*/vP*", moduleAsItIs, true},
		{"nor in Unicode", "münchen", providerAsItIs, true},
		{"nor the pattern's", "MÜNCHEN/demo", providerAsItIs, true},
		{"a star is for Unicode too", "m*nchen", providerAsItIs, true},

		{"a hostname is what is mirrored of it", "registry.terraform.io", mirrored, true},
		{"its namespace", "registry.terraform.io/hashicorp", mirrored, true},
		{"its provider", "registry.terraform.io/hashicorp/null", mirrored, true},
		{"not another namespace", "registry.terraform.io/acme", mirrored, false},
		{"not the registry's own", "registry.terraform.io/acme", provider, false},
		{"but what is asked for under it", "registry.example.com/acme", named, true},
		{"a name of the registry is not each of its names", "registry.example.com/acme", provider, false},
		{"another hostname is another one", "registry.opentofu.org", mirrored, false},
		{"a hostname's case does not count", "Registry.Terraform.IO/Hashicorp", mirrored, true},
		{"a port is part of it", "registry.example.com:8443/acme", atPort, true},
		{"so it is missing", "registry.example.com/acme", atPort, false},
		{"but that of https is not", "registry.example.com:443/acme", named, true},
		{"which makes a hostname of any name", "internal:443/acme", internal, true},
		{"that is a namespace without", "internal/acme", internal, false},
		{"Unicode is punycode", "bücher.example/münchen/straße", inUnicode, true},
		{"and punycode is", "xn--bcher-kva.example", inUnicode, true},

		{"a star stands for part of a hostname", "*.example.com", named, true},
		{"in the middle", "registry.*.io", mirrored, true},
		{"for dots too", "*.io", mirrored, true},
		{"for a port too", "registry.*", atPort, true},
		{"as a port", "registry.example.com:*", atPort, true},
		{"not for none", "registry.example.com:*", named, false},
		{"with a port", "*.example.com:8443", atPort, true},
		{"not another one", "*.example.com:8444", atPort, false},
		{"in some case", "*.Example.COM/acme", named, true},
		{"beside Unicode", "*.example", inUnicode, true},
		{"beside punycode", "*.xn--bcher-kva.example", access.Resource{Address: address.Address{Hostname: "a.xn--bcher-kva.example", Namespace: "acme"}}, true},
		{"or a label in Unicode", "*.bücher.example", access.Resource{Address: address.Address{Hostname: "a.xn--bcher-kva.example", Namespace: "acme"}}, true},
		{"any hostname has a dot", "*.*/hashicorp", mirrored, true},
		{"not one has the registry's own", "*.*", provider, false},
	} {
		t.Run(test.rule, func(t *testing.T) {
			if got := rulesOf(t, "allow anonymous read "+test.pattern).Public(test.address); got != test.want {
				t.Errorf("%q covers %+v: %t", test.pattern, test.address, got)
			}
		})
	}
}

func TestPatternString(t *testing.T) {
	for _, test := range []struct{ rule, given, want string }{
		{"what is in the normal form stays", "*.example.com:8443/acme/v*/aws", "*.example.com:8443/acme/v*/aws"},
		{"case is folded", "Registry.Example.COM/Acme/VPC/AWS", "registry.example.com/acme/vpc/aws"},
		{"with stars as well", "*.Example.COM/Ac*", "*.example.com/ac*"},
		{"the port of https is left out", "registry.example.com:443", "registry.example.com"},
		{"unless it is what makes a hostname", "internal:443/acme", "internal:443/acme"},
		{"a port has no zeros in front", "*.example.com:08443", "*.example.com:8443"},
		{"Unicode is in lower case", "BÜCHER.example/MÜNCHEN/Straße", "bücher.example/münchen/straße"},
		{"punycode is Unicode", "*.xn--bcher-kva.example", "*.bücher.example"},
		{"localhost is in lower case", "LOCALHOST/acme", "localhost/acme"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			const before = "allow anonymous read "
			rule, err := access.ParseRule("allow", "anonymous", "read", test.given)
			if err != nil || rule.String() != before+test.want {
				t.Errorf("%q is printed as %q, %v", test.given, rule, err)
			}
		})
	}
}

func TestPatternRefused(t *testing.T) {
	for _, test := range []struct{ rule, given, why string }{
		{"nothing", "", "write [HOSTNAME/]NAMESPACE/NAME, or * for everything"},
		{"a slash", "/", "take out the slash"},
		{"a slash in front", "/acme", "take out the slash"},
		{"a slash at the end", "acme/", "take out the slash"},
		{"two slashes", "acme//demo", "take out the slash"},
		{"two stars", "**", "write one * only"},
		{"two stars below", "acme/**", "write one * only"},
		{"a URL", "https://registry.terraform.io/hashicorp", `leave out "https://"`},
		{"four parts", "a/b/c/d", "HOSTNAME has a dot"},
		{"a star as a hostname", "*/a/b/c", "HOSTNAME has a dot"},
		{"five with a hostname", "a.b/a/b/c/d", "or less"},
		{"a version", "acme/demo/1.0.0", `"1.0.0" has '.' in it`},
		{"a hostname behind", "acme/registry.example.com", `has '.' in it`},
		{"a space", "ac me", `has ' ' in it`},
		{"a comma", "acme,other", `has ',' in it`},
		{"a brace", "acme/{a,b}", `has '{' in it`},
		{"a question mark", "acme/d?mo", `has '?' in it`},
		{"an encoded slash", "acme%2fdemo", `has '%' in it`},
		{"a line feed", "acme\n", `has '\n' in it`},
		{"a parent folder", "..", `".." is not a hostname`},
		{"an empty label", "registry..example/acme", `"registry..example" is not a hostname`},
		{"one beside a star", "*..example/acme", `"*..example" is not a hostname`},
		{"a port of nothing", "registry.example.com:/acme", "is not a hostname"},
		{"one beside a star", "*.example.com:/acme", "write a number up to 65535"},
		{"a port that is none", "*.example.com:70000", "write a number up to 65535"},
		{"a port with a letter", "*.example.com:8*a", "write digits and * only"},
		{"the port of https beside a star", "*.example.com:443/acme", "leave out :443"},
		{"an odd label beside a star", "*.my_host.example", `"*.my_host.example" is not a hostname`},
		{"an odd character in a label with a star", "my_*.example", `write "my_*" in full`},
		{"Unicode in a label with a star", "bü*.example", `write "bü*" in full`},
		{"Unicode in a part with a star", "mün*", "write the name in full"},
		{"Unicode that is no name", "acme/ä--b", "is not a provider type"},
		{"Unicode in a system", "acme/vpc/größe", `"größe" is not a system`},
		{"Unicode that becomes a hostname", "ｌｏｃａｌｈｏｓｔ/acme", "write localhost"},
		{"a full-width slash", "acme／other", `"acme／other" is not a provider namespace`},
		{"a full-width star", "＊", `"＊" is not a provider namespace`},
		{"a full-width parent folder", "acme/．．", `"．．" is not a provider type`},
		{"what a space comes of", "p\u0385", "is not a provider namespace"},
		{"invalid UTF-8", "ac\xffme", "not UTF-8"},
		{"invalid UTF-8 in a hostname", "\xff.example", "not UTF-8"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			rule, err := access.ParseRule("allow", "anonymous", "read", test.given)
			if err == nil {
				t.Fatalf("%q is taken for %q", test.given, rule)
			}
			if !strings.Contains(err.Error(), test.why) || strings.Contains(err.Error(), "\n") {
				t.Errorf("it is refused with %q, not because of %q", err, test.why)
			}
		})
	}
}

// rulesOf reads rules, one a line.
func rulesOf(t testing.TB, lines ...string) *access.Rules {
	t.Helper()
	var rules []access.Rule
	for _, line := range lines {
		rule, err := access.ParseRule(splitRule(line)...)
		if err != nil {
			t.Fatal(err)
		}
		rules = append(rules, rule)
	}
	return access.NewRules(rules...)
}
