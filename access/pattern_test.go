package access_test

import (
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// Resources of each kind. Hosted ones have a hostname if the names of the registry
// are configured.
var (
	provider          = access.Resource{Address: address.Address{Namespace: "acme", Name: "demo"}, Hosted: true}
	module            = access.Resource{Address: address.Address{Namespace: "acme", Name: "vpc", System: "aws"}, Hosted: true}
	named             = access.Resource{Address: address.Address{Hostname: "registry.example.com", Namespace: "acme", Name: "demo"}, Hosted: true}
	mirrored          = access.Resource{Address: address.Address{Hostname: "registry.terraform.io", Namespace: "hashicorp", Name: "null"}}
	mirroredAcme      = access.Resource{Address: address.Address{Hostname: "registry.terraform.io", Namespace: "acme", Name: "demo"}}
	atPort            = access.Resource{Address: address.Address{Hostname: "registry.example.com:8443", Namespace: "acme", Name: "demo"}}
	inUnicode         = access.Resource{Address: address.Address{Hostname: "xn--bcher-kva.example", Namespace: "münchen", Name: "straße"}}
	internal          = access.Resource{Address: address.Address{Hostname: "internal", Namespace: "acme", Name: "demo"}}
	moduleMixedCase   = access.Resource{Address: address.Address{Namespace: "Acme", Name: "VPC", System: "aws"}, Hosted: true}
	providerMixedCase = access.Resource{Address: address.Address{Namespace: "MÜNCHEN", Name: "Demo"}, Hosted: true}
)

func TestPatternCovers(t *testing.T) {
	for _, test := range []struct {
		rule, pattern string
		address       access.Resource
		want          bool
	}{
		{"a single star covers everything", "*", provider, true},
		{"including modules", "*", module, true},
		{"including mirrored resources", "*", mirrored, true},
		{"including the zero resource", "*", access.Resource{}, true},

		{"a namespace covers its providers", "acme", provider, true},
		{"and its modules", "acme", module, true},
		{"under every name of the registry", "acme", named, true},
		{"but no mirrored resources", "acme", mirroredAcme, false},
		{"nor a longer namespace", "acm", provider, false},
		{"nor a shorter one", "acmes", provider, false},
		{"a star after it makes no difference for a provider", "acme/*", provider, true},
		{"nor for a module", "acme/*", module, true},

		{"a provider", "acme/demo", provider, true},
		{"and not another one", "acme/other", provider, false},
		{"a module for all systems", "acme/vpc", module, true},
		{"or for one system", "acme/vpc/aws", module, true},
		{"and not for another system", "acme/vpc/azure", module, false},
		{"no provider has a system", "acme/demo/*", provider, false},
		{"so three stars cover all modules", "*/*/*", module, true},
		{"and no providers", "*/*/*", provider, false},
		{"two stars cover everything", "*/*", module, true},
		{"that is hosted", "*/*", mirrored, false},

		{"a star at the end", "acme/d*", provider, true},
		{"at the beginning", "acme/*mo", provider, true},
		{"in the middle of parts", "a*e/d*o", provider, true},
		{"for no characters", "acme*/*demo", provider, true},
		{"several stars", "*c*e/*e*o*", provider, true},
		{"a star that does not match", "acme/*x", provider, false},
		{"a star does not match a slash", "*demo", provider, false},
		{"the first match of a star may be too short", "acme/*mo", access.Resource{Address: address.Address{Namespace: "acme", Name: "momomo"}, Hosted: true}, true},

		{"the case of the pattern does not matter", "ACME/Demo", provider, true},
		{"nor that of the address", "acme/vpc", moduleMixedCase, true},
		{"nor with a wildcard", "AC*/vP*", moduleMixedCase, true},
		{"nor in Unicode", "münchen", providerMixedCase, true},
		{"nor the pattern's in Unicode", "MÜNCHEN/demo", providerMixedCase, true},
		{"a star matches Unicode", "m*nchen", providerMixedCase, true},

		{"a hostname covers what is mirrored from it", "registry.terraform.io", mirrored, true},
		{"its namespace", "registry.terraform.io/hashicorp", mirrored, true},
		{"its provider", "registry.terraform.io/hashicorp/null", mirrored, true},
		{"not another namespace", "registry.terraform.io/acme", mirrored, false},
		{"no hosted resources", "registry.terraform.io/acme", provider, false},
		{"except those requested under it", "registry.example.com/acme", named, true},
		{"but not under the registry's other names", "registry.example.com/acme", provider, false},
		{"another hostname", "registry.opentofu.org", mirrored, false},
		{"the case of a hostname does not matter", "Registry.Terraform.IO/Hashicorp", mirrored, true},
		{"a port is part of the hostname", "registry.example.com:8443/acme", atPort, true},
		{"so it must be there", "registry.example.com/acme", atPort, false},
		{"except that of https", "registry.example.com:443/acme", named, true},
		{"which marks a hostname", "internal:443/acme", internal, true},
		{"that is a namespace without it", "internal/acme", internal, false},
		{"a hostname in Unicode", "bücher.example/münchen/straße", inUnicode, true},
		{"and in punycode", "xn--bcher-kva.example", inUnicode, true},

		{"a star in a hostname", "*.example.com", named, true},
		{"in the middle", "registry.*.io", mirrored, true},
		{"including dots", "*.io", mirrored, true},
		{"including a port", "registry.*", atPort, true},
		{"as the port", "registry.example.com:*", atPort, true},
		{"not for no port", "registry.example.com:*", named, false},
		{"beside a port", "*.example.com:8443", atPort, true},
		{"not beside another port", "*.example.com:8444", atPort, false},
		{"in any case", "*.Example.COM/acme", named, true},
		{"beside Unicode", "*.example", inUnicode, true},
		{"beside punycode", "*.xn--bcher-kva.example", access.Resource{Address: address.Address{Hostname: "a.xn--bcher-kva.example", Namespace: "acme", Name: "demo"}}, true},
		{"beside a label in Unicode", "*.bücher.example", access.Resource{Address: address.Address{Hostname: "a.xn--bcher-kva.example", Namespace: "acme", Name: "demo"}}, true},
		{"for any hostname with a dot", "*.*/hashicorp", mirrored, true},
		{"hosted resources have none", "*.*", provider, false},
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
		{"a normalised pattern is unchanged", "*.example.com:8443/acme/v*/aws", "*.example.com:8443/acme/v*/aws"},
		{"case is folded", "Registry.Example.COM/Acme/VPC/AWS", "registry.example.com/acme/vpc/aws"},
		{"also beside stars", "*.Example.COM/Ac*", "*.example.com/ac*"},
		{"the port of https is left out", "registry.example.com:443", "registry.example.com"},
		{"unless it marks the hostname", "internal:443/acme", "internal:443/acme"},
		{"leading zeros of a port are removed", "*.example.com:08443", "*.example.com:8443"},
		{"Unicode is in lower case", "BÜCHER.example/MÜNCHEN/Straße", "bücher.example/münchen/straße"},
		{"punycode becomes Unicode", "*.xn--bcher-kva.example", "*.bücher.example"},
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
		{"an empty string", "", "write [HOSTNAME/]NAMESPACE/NAME, or * for everything"},
		{"a slash", "/", "remove the slash"},
		{"a slash in front", "/acme", "remove the slash"},
		{"a slash at the end", "acme/", "remove the slash"},
		{"two slashes", "acme//demo", "remove the slash"},
		{"two stars", "**", "write a single *"},
		{"two stars below", "acme/**", "write a single *"},
		{"a URL", "https://registry.terraform.io/hashicorp", `leave out "https://"`},
		{"four parts", "a/b/c/d", "HOSTNAME contains a dot"},
		{"a star as a hostname", "*/a/b/c", "HOSTNAME contains a dot"},
		{"four parts with a hostname", "a.b/a/b/c/d", "write at most"},
		{"a version", "acme/demo/1.0.0", `"1.0.0" contains '.'`},
		{"a hostname at the end", "acme/registry.example.com", `contains '.'`},
		{"a space", "ac me", `contains ' '`},
		{"a comma", "acme,other", `contains ','`},
		{"a brace", "acme/{a,b}", `contains '{'`},
		{"a question mark", "acme/d?mo", `contains '?'`},
		{"an encoded slash", "acme%2fdemo", `contains '%'`},
		{"a line feed", "acme\n", `contains '\n'`},
		{"a parent folder", "..", `".." is not a hostname`},
		{"an empty label", "registry..example/acme", `"registry..example" is not a hostname`},
		{"an empty label beside a star", "*..example/acme", `"*..example" is not a hostname`},
		{"an empty port", "registry.example.com:/acme", "is not a hostname"},
		{"an empty port beside a star", "*.example.com:/acme", "write a number up to 65535"},
		{"a port that is too large", "*.example.com:70000", "write a number up to 65535"},
		{"a port with a letter", "*.example.com:8*a", "write digits and * only"},
		{"the port of https beside a star", "*.example.com:443/acme", "leave out :443"},
		{"an invalid label beside a star", "*.my_host.example", `"*.my_host.example" is not a hostname`},
		{"an invalid character beside a star", "my_*.example", `write "my_*" in full`},
		{"Unicode in a label with a star", "bü*.example", `write "bü*" in full`},
		{"Unicode in a part with a star", "mün*", "write the name in full"},
		{"an invalid name in Unicode", "acme/ä--b", "is not a provider type"},
		{"Unicode in a system", "acme/vpc/größe", `"größe" is not a system`},
		{"Unicode that becomes a hostname", "ｌｏｃａｌｈｏｓｔ/acme", "write localhost"},
		{"a full-width slash", "acme／other", `"acme／other" is not a provider namespace`},
		{"a full-width star", "＊", `"＊" is not a provider namespace`},
		{"a full-width parent folder", "acme/．．", `"．．" is not a provider type`},
		{"a character that is normalised to a space", "p\u0385", "is not a provider namespace"},
		{"invalid UTF-8", "ac\xffme", "not UTF-8"},
		{"invalid UTF-8 in a hostname", "\xff.example", "not UTF-8"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			rule, err := access.ParseRule("allow", "anonymous", "read", test.given)
			if err == nil {
				t.Fatalf("%q was parsed as %q", test.given, rule)
			}
			if !strings.Contains(err.Error(), test.why) || strings.Contains(err.Error(), "\n") {
				t.Errorf("it is refused with %q, not because of %q", err, test.why)
			}
		})
	}
}

// rulesOf parses rules.
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

var parsedResources = []struct {
	rule, given string
	want        access.Resource
	printed     string // empty: as given
}{
	{"two parts", "acme/demo", access.Resource{Address: address.Address{Namespace: "acme", Name: "demo"}, Hosted: true}, ""},
	{"three parts", "acme/vpc/aws", access.Resource{Address: address.Address{Namespace: "acme", Name: "vpc", System: "aws"}, Hosted: true}, ""},
	{"a dot marks a hostname", "registry.terraform.io/hashicorp/null", access.Resource{Address: address.Address{Hostname: "registry.terraform.io", Namespace: "hashicorp", Name: "null"}}, ""},
	{"so does a port", "registry:8443/acme/vpc/aws", access.Resource{Address: address.Address{Hostname: "registry:8443", Namespace: "acme", Name: "vpc", System: "aws"}}, ""},
	{"and localhost is a hostname", "localhost/acme/demo", access.Resource{Address: address.Address{Hostname: "localhost", Namespace: "acme", Name: "demo"}}, ""},
	{"in any case", "LocalHost/acme/demo", access.Resource{Address: address.Address{Hostname: "localhost", Namespace: "acme", Name: "demo"}}, "localhost/acme/demo"},
	{"otherwise it is a namespace", "registry/acme/demo", access.Resource{Address: address.Address{Namespace: "registry", Name: "acme", System: "demo"}, Hosted: true}, ""},
	{"case is folded", "Registry.Example.COM/Acme/Demo", access.Resource{Address: address.Address{Hostname: "registry.example.com", Namespace: "acme", Name: "demo"}}, "registry.example.com/acme/demo"},
	{"also for modules", "Acme/VPC/aws", access.Resource{Address: address.Address{Namespace: "acme", Name: "vpc", System: "aws"}, Hosted: true}, "acme/vpc/aws"},
	{"the port of https is left out", "registry.example.com:443/acme/demo", access.Resource{Address: address.Address{Hostname: "registry.example.com", Namespace: "acme", Name: "demo"}}, "registry.example.com/acme/demo"},
	{"but printed where it marks the hostname", "registry:443/acme/demo", access.Resource{Address: address.Address{Hostname: "registry", Namespace: "acme", Name: "demo"}}, ""},
	{"a hostname is in punycode and printed in Unicode", "BÜCHER.example/acme/demo", access.Resource{Address: address.Address{Hostname: "xn--bcher-kva.example", Namespace: "acme", Name: "demo"}}, "bücher.example/acme/demo"},
	{"a provider stays in Unicode", "MÜNCHEN/straße", access.Resource{Address: address.Address{Namespace: "münchen", Name: "straße"}, Hosted: true}, "münchen/straße"},
}

func TestParseResource(t *testing.T) {
	for _, test := range parsedResources {
		t.Run(test.rule, func(t *testing.T) {
			got, err := access.ParseResource(test.given)
			if err != nil || got != test.want {
				t.Fatalf("%q is %+v, %v", test.given, got, err)
			}
			printed := test.printed
			if printed == "" {
				printed = test.given
			}
			if got.String() != printed {
				t.Errorf("it is printed as %q, not %q", got, printed)
			}
		})
	}
}

var refusedResources = []struct{ rule, given, why string }{
	{"an empty string", "", "write [HOSTNAME/]NAMESPACE/TYPE"},
	{"a namespace alone", "acme", "write [HOSTNAME/]NAMESPACE/TYPE"},
	{"a hostname alone", "registry.terraform.io", "write [HOSTNAME/]NAMESPACE/TYPE"},
	{"a hostname and a namespace", "registry.terraform.io/hashicorp", "write [HOSTNAME/]NAMESPACE/TYPE"},
	{"too many parts", "acme/vpc/aws/1", "write [HOSTNAME/]NAMESPACE/TYPE"},
	{"a version", "acme/demo/1.0.0", `"acme/demo/1.0.0" is not a module`},
	{"a URL", "https://registry.terraform.io/hashicorp/null", `leave out "https://"`},
	{"an empty part", "acme//aws", `"acme//aws" is not a module`},
	{"a slash at the end", "acme/demo/", `"acme/demo/" is not a module`},
	{"a slash in front", "/acme", `"" is not a provider namespace`},
	{"an invalid hostname", "registry..example/acme/demo", `"registry..example" is not a hostname`},
	{"a namespace with a space", "ac me/demo", `"ac me" is not a provider namespace`},
	{"a pattern", "acme/*", `"*" is not a provider type`},
	{"a module's part with a dot", "acme/v.pc/aws", `"acme/v.pc/aws" is not a module`},
	{"a namespace that becomes a hostname", "ｌｏｃａｌｈｏｓｔ/demo", "localhost is a hostname, not a namespace"},
	{"a full-width slash", "acme／other/demo", `"acme／other" is not a provider namespace`},
	{"a full-width star", "＊/demo", `"＊" is not a provider namespace`},
	{"a full-width parent folder", "acme/．．", `"．．" is not a provider type`},
	{"a full-width dot", "acme．example/demo", `"acme．example" is not a provider namespace`},
	{"invalid UTF-8", "acme/\xff", "not UTF-8"},
	{"a line feed", "acme/demo\n", `"demo\n" is not a provider type`},
}

func TestParseResourceRefuses(t *testing.T) {
	for _, test := range refusedResources {
		t.Run(test.rule, func(t *testing.T) {
			got, err := access.ParseResource(test.given)
			if err == nil || got != (access.Resource{}) {
				t.Fatalf("%q is %+v, %v", test.given, got, err)
			}
			if !strings.Contains(err.Error(), test.why) {
				t.Errorf("it is refused with %q, not because of %q", err, test.why)
			}
		})
	}
}

// A pattern covers what an equivalent regular expression matches.
func FuzzPattern(f *testing.F) {
	for _, address := range []string{"acme/demo", "acme/vpc/aws", "registry.terraform.io/hashicorp/null", "internal:443/acme/demo", "bücher.example:8443/münchen/straße"} {
		for _, pattern := range []string{address, "*", "acme", "*/*", "*c*/d*o", "*.*", "r*.io/h*p/*", "internal:443", "*:*/*/*", "*.example:8443/münchen", "localhost"} {
			f.Add(pattern, address)
		}
	}
	f.Fuzz(func(t *testing.T, pattern, address string) {
		rule, err := access.ParseRule("allow", "anonymous", "read", pattern)
		if err != nil {
			checkSentence(t, err)
			return
		}
		a, err := access.ParseResource(address)
		if err != nil {
			return
		}
		text := strings.TrimPrefix(rule.String(), "allow anonymous read ")
		if text != "*" && strings.ContainsFunc(text+a.String(), func(r rune) bool { return r > unicode.MaxASCII }) {
			return // the hostname may be printed differently from how it is compared
		}
		patterns, parts, hosted := strings.Split(text, "/"), []string{a.Namespace, a.Name}, true
		if a.System != "" {
			parts = append(parts, a.System)
		}
		if first := patterns[0]; strings.ContainsAny(first, ".:") || first == "localhost" {
			// The port of https is not compared.
			patterns[0], parts, hosted = strings.TrimSuffix(first, ":443"), append([]string{string(a.Hostname)}, parts...), false
		}
		want := hosted == a.Hosted && len(patterns) <= len(parts)
		for i := range min(len(patterns), len(parts)) {
			expression := strings.ReplaceAll(regexp.QuoteMeta(patterns[i]), `\*`, ".*")
			want = want && regexp.MustCompile("^"+expression+"$").MatchString(parts[i])
		}
		if got := access.NewRules(rule).Public(a); got != (want || text == "*") {
			t.Fatalf("%q covers %+v: %t", text, a, got)
		}
	})
}

// A parsed resource prints as an address that parses to the same, and is denied
// without rules.
func FuzzParseResource(f *testing.F) {
	f.Add("｛ｏｃ﹁･ｈｏｓｔ/demo", "ci")
	for _, test := range parsedResources {
		f.Add(test.given, "ci")
	}
	for _, test := range refusedResources {
		f.Add(test.given, "")
	}
	everything := rulesOf(f, "allow anonymous read *")
	f.Fuzz(func(t *testing.T, s, id string) {
		a, err := access.ParseResource(s)
		if err != nil {
			checkSentence(t, err)
			return
		}
		if again, err := access.ParseResource(a.String()); err != nil || again != a {
			t.Fatalf("%+v printed as %q is %+v, %v", a, a, again, err)
		}
		if a.Hosted != (a.Hostname == "") || a.Namespace == "" || a.Name == "" {
			t.Fatalf("%q is %+v", s, a)
		}
		for _, right := range []access.Right{access.Read, access.Publish, access.Manage} {
			if d := access.NewRules().Decide(access.Subject{ID: id, Groups: []string{id}}, right, a); d != (access.Decision{}) {
				t.Fatalf("without rules it is %+v", d)
			}
		}
		if access.NewRules().Public(a) || !everything.Public(a) {
			t.Fatalf("%v is public without rules, or not public with a rule for everything", a)
		}
		// A resource is covered by its address as a pattern, and by each beginning of it.
		itself := a.String()
		for above := itself; ; above = above[:strings.LastIndex(above, "/")] {
			if !rulesOf(t, "allow anonymous read "+above).Public(a) {
				t.Fatalf("%q does not cover %+v", above, a)
			}
			if !strings.Contains(above, "/") {
				return
			}
		}
	})
}
