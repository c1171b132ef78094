package address_test

import (
	"strings"
	"testing"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

var hostnames = []struct {
	rule, given string
	want        svchost.Hostname // empty: refused
}{
	{"a plain name stays", "registry.example.com", "registry.example.com"},
	{"upper case is folded", "Registry.EXAMPLE.com", "registry.example.com"},
	{"a name without a dot is one too", "localhost", "localhost"},
	{"a port is part of the name", "registry.example.com:8443", "registry.example.com:8443"},
	{"localhost may have a port", "localhost:8080", "localhost:8080"},
	{"but the port 443 of https is left out", "registry.example.com:443", "registry.example.com"},
	{"a port is a number without leading zeros", "registry.example.com:0443", "registry.example.com"},
	{"Unicode becomes punycode", "bücher.example", "xn--bcher-kva.example"},
	{"Unicode in upper case is folded first", "BÜCHER.example", "xn--bcher-kva.example"},
	{"punycode stays, as clients of a mirror send it", "xn--bcher-kva.example", "xn--bcher-kva.example"},
	{"punycode keeps its port", "xn--bcher-kva.example:8443", "xn--bcher-kva.example:8443"},
	{"punycode that stands for nothing", "xn--.example", ""},
	{"nothing", "", ""},
	{"a port of nothing", ":8443", ""},
	{"a port that is no number", "example.com:https", ""},
	{"a port that is no port", "example.com:65536", ""},
	{"an empty label", "registry..example", ""},
	{"a URL", "https://registry.example.com", ""},
	{"a path", "registry.example.com/v1", ""},
	{"a parent folder", "..", ""},
	{"an encoded slash", "registry%2fexample.com", ""},
	{"a NUL", "registry\x00.example.com", ""},
	{"a line feed", "registry.example.com\n", ""},
	{"a space", "registry .example.com", ""},
	{"an underscore", "my_registry.example.com", ""},
	{"a user", "me@registry.example.com", ""},
	{"invalid UTF-8", "registry\xff.example.com", ""},
	{"more than any name has", strings.Repeat("a.", 200) + "example", ""},
}

func TestParseHostname(t *testing.T) {
	for _, test := range hostnames {
		t.Run(test.rule, func(t *testing.T) {
			got, err := address.ParseHostname(test.given)
			if test.want == "" && err == nil {
				t.Fatalf("%q is taken for %q", test.given, got)
			}
			if test.want != "" && (err != nil || got != test.want) {
				t.Fatalf("%q is %q, %v", test.given, got, err)
			}
		})
	}
}

var providerAddresses = []struct {
	rule, hostname, namespace, typ string
	want                           string // empty: refused
}{
	{"the registry's own has no hostname", "", "acme", "demo", "acme/demo"},
	{"another registry's has one", "registry.terraform.io", "hashicorp", "null", "registry.terraform.io/hashicorp/null"},
	{"case is folded", "Registry.Example.COM", "Acme", "Demo", "registry.example.com/acme/demo"},
	{"a dash in the type is part of it", "", "hashicorp", "google-beta", "hashicorp/google-beta"},
	{"digits are fine", "", "1password", "k8s2", "1password/k8s2"},
	{"Unicode is written as such", "bücher.example", "münchen", "straße", "bücher.example/münchen/straße"},
	{"punycode in the hostname is the same name", "xn--bcher-kva.example", "acme", "demo", "bücher.example/acme/demo"},
	{"new clients take an underscore in a namespace", "", "acme_corp", "demo", "acme_corp/demo"},
	{"but not at its end", "", "acme_", "demo", ""},
	{"full-width letters are plain ones", "", "ａcme", "ｄemo", "acme/demo"},
	{"a full-width slash is not let through as one", "", "a／b", "demo", ""},
	{"nor are full-width dots", "", "．．", "demo", ""},
	{"nor in a type", "", "acme", "．．", ""},
	{"nor a full-width star", "", "＊", "demo", ""},
	{"nor a full-width slash in a type", "", "acme", "..／x", ""},
	{"nor in a type", "", "acme", "demo_x", ""},
	{"two dashes", "", "acme--corp", "demo", ""},
	{"a dash in front", "", "acme", "-demo", ""},
	{"a dash at the end", "", "acme", "demo-", ""},
	{"a dot", "", "acme.corp", "demo", ""},
	{"a dot in the type", "", "acme", "demo.zip", ""},
	{"the prefix of the repository's name", "", "acme", "terraform-demo", ""},
	{"the prefix of the file's name", "", "acme", "terraform-provider-demo", ""},
	{"but terraform by itself is a type", "", "acme", "terraform", "acme/terraform"},
	{"an empty namespace", "", "", "demo", ""},
	{"an empty type", "", "acme", "", ""},
	{"a slash", "", "acme/x", "demo", ""},
	{"an encoded slash", "", "acme%2fx", "demo", ""},
	{"a parent folder", "", "..", "demo", ""},
	{"a space", "", "ac me", "demo", ""},
	{"a NUL", "", "acme", "demo\x00", ""},
	{"a line feed", "", "acme", "demo\n", ""},
	{"invalid UTF-8", "", "acme", "\xff", ""},
	{"punycode in a namespace", "", "xn--mnchen-3ya", "demo", ""},
	{"a bad hostname", "registry..example", "acme", "demo", ""},
}

func TestParseProvider(t *testing.T) {
	for _, test := range providerAddresses {
		t.Run(test.rule, func(t *testing.T) {
			a, err := address.ParseProvider(test.hostname, test.namespace, test.typ)
			if err != nil {
				if test.want != "" || a != (address.Address{}) {
					t.Fatalf("%+v: %v", a, err)
				}
				return
			}
			if a.String() != test.want {
				t.Errorf("it is %q, not %q", a, test.want)
			}
		})
	}
}

var moduleAddresses = []struct {
	rule, hostname, namespace, name, system string
	want                                    string // empty: refused
}{
	{"the registry's own has no hostname", "", "acme", "vpc", "aws", "acme/vpc/aws"},
	{"another registry's has one", "registry.terraform.io", "hashicorp", "consul", "aws", "registry.terraform.io/hashicorp/consul/aws"},
	{"case is folded, since clients keep it", "", "Acme", "VPC", "aws", "acme/vpc/aws"},
	{"but clients take no system in upper case", "", "acme", "vpc", "AWS", ""},
	{"underscores and dashes are fine within", "", "acme_corp", "my-vpc_2", "aws", "acme_corp/my-vpc_2/aws"},
	{"not at the ends", "", "acme", "_vpc", "aws", ""},
	{"a system has no dash", "", "acme", "vpc", "aws-cn", ""},
	{"a name is at most 64 long", "", "acme", strings.Repeat("x", 64), "aws", "acme/" + strings.Repeat("x", 64) + "/aws"},
	{"and not longer", "", "acme", strings.Repeat("x", 65), "aws", ""},
	{"no Unicode", "", "münchen", "vpc", "aws", ""},
	{"no dot", "", "acme.corp", "vpc", "aws", ""},
	{"no slash", "", "acme/x", "vpc", "aws", ""},
	{"no submodule", "", "acme", "vpc", "aws//modules/x", ""},
	{"no query", "", "acme", "vpc", "aws?ref=1", ""},
	{"no encoded slash", "", "acme", "vpc%2fx", "aws", ""},
	{"no parent folder", "", "..", "vpc", "aws", ""},
	{"nothing empty", "", "", "", "", ""},
	{"no line feed", "", "acme", "vpc\n", "aws", ""},
	{"no bad hostname", "registry..example", "acme", "vpc", "aws", ""},
}

func TestParseModule(t *testing.T) {
	for _, test := range moduleAddresses {
		t.Run(test.rule, func(t *testing.T) {
			a, err := address.ParseModule(test.hostname, test.namespace, test.name, test.system)
			if err != nil {
				if test.want != "" || a != (address.Address{}) {
					t.Fatalf("%+v: %v", a, err)
				}
				return
			}
			if a.String() != test.want {
				t.Errorf("it is %q, not %q", a, test.want)
			}
		})
	}
}

// An accepted hostname is in normal form: parsing it again, in Unicode or in punycode,
// returns the same hostname, and it is safe as a part of a path.
func FuzzParseHostname(f *testing.F) {
	for _, test := range hostnames {
		f.Add(test.given)
	}
	f.Fuzz(func(t *testing.T, s string) {
		h, err := address.ParseHostname(s)
		if err != nil {
			return
		}
		if h == "" || strings.ContainsAny(string(h), "/\\%?#\x00\n ") || h == ".." {
			t.Fatalf("%q is taken for %q", s, h)
		}
		for _, form := range []string{string(h), svchost.ForDisplay(string(h))} {
			if again, err := address.ParseHostname(form); err != nil || again != h {
				t.Fatalf("%q is %q, and that read again as %q is %q, %v", s, h, form, again, err)
			}
		}
	})
}

func FuzzParseProvider(f *testing.F) {
	for _, test := range providerAddresses {
		f.Add(test.hostname, test.namespace, test.typ)
	}
	f.Fuzz(func(t *testing.T, hostname, namespace, typ string) {
		a, err := address.ParseProvider(hostname, namespace, typ)
		if err != nil {
			return
		}
		if (a.Hostname == "") != (hostname == "") || strings.ContainsAny(a.Namespace+a.Name, "./\\%?#\x00\n ") || a.Namespace == "" || a.Name == "" {
			t.Fatalf("accepted as %+v", a)
		}
		if again, err := address.ParseProvider(string(a.Hostname), a.Namespace, a.Name); err != nil || again != a {
			t.Fatalf("%+v read again is %+v, %v", a, again, err)
		}
	})
}

func FuzzParseModule(f *testing.F) {
	for _, test := range moduleAddresses {
		f.Add(test.hostname, test.namespace, test.name, test.system)
	}
	f.Fuzz(func(t *testing.T, hostname, namespace, name, system string) {
		a, err := address.ParseModule(hostname, namespace, name, system)
		if err != nil {
			return
		}
		if (a.Hostname == "") != (hostname == "") || strings.ContainsAny(a.Namespace+a.Name+a.System, "./\\%?#\x00\n ") || a.Namespace == "" || a.Name == "" || a.System == "" {
			t.Fatalf("accepted as %+v", a)
		}
		if again, err := address.ParseModule(string(a.Hostname), a.Namespace, a.Name, a.System); err != nil || again != a {
			t.Fatalf("%+v read again is %+v, %v", a, again, err)
		}
	})
}
