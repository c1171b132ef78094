package access_test

import (
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

var parsedAddresses = []struct {
	rule, given string
	want        access.Resource
	printed     string // empty: as given
}{
	{"two parts are a provider", "acme/demo", access.Resource{Address: address.Address{Namespace: "acme", Name: "demo"}, Hosted: true}, ""},
	{"three are a module", "acme/vpc/aws", access.Resource{Address: address.Address{Namespace: "acme", Name: "vpc", System: "aws"}, Hosted: true}, ""},
	{"a dot makes a hostname", "registry.terraform.io/hashicorp/null", access.Resource{Address: address.Address{Hostname: "registry.terraform.io", Namespace: "hashicorp", Name: "null"}}, ""},
	{"so does a port", "registry:8443/acme/vpc/aws", access.Resource{Address: address.Address{Hostname: "registry:8443", Namespace: "acme", Name: "vpc", System: "aws"}}, ""},
	{"and localhost is one", "localhost/acme/demo", access.Resource{Address: address.Address{Hostname: "localhost", Namespace: "acme", Name: "demo"}}, ""},
	{"in any case", "LocalHost/acme/demo", access.Resource{Address: address.Address{Hostname: "localhost", Namespace: "acme", Name: "demo"}}, "localhost/acme/demo"},
	{"without dot, port or that it is a namespace", "registry/acme/demo", access.Resource{Address: address.Address{Namespace: "registry", Name: "acme", System: "demo"}, Hosted: true}, ""},
	{"case is folded", "Registry.Example.COM/Acme/Demo", access.Resource{Address: address.Address{Hostname: "registry.example.com", Namespace: "acme", Name: "demo"}}, "registry.example.com/acme/demo"},
	{"that of a module too", "Acme/VPC/aws", access.Resource{Address: address.Address{Namespace: "acme", Name: "vpc", System: "aws"}, Hosted: true}, "acme/vpc/aws"},
	{"the port of https is left out", "registry.example.com:443/acme/demo", access.Resource{Address: address.Address{Hostname: "registry.example.com", Namespace: "acme", Name: "demo"}}, "registry.example.com/acme/demo"},
	{"and printed where nothing else tells a hostname", "registry:443/acme/demo", access.Resource{Address: address.Address{Hostname: "registry", Namespace: "acme", Name: "demo"}}, ""},
	{"a hostname is kept in punycode and printed in Unicode", "BÜCHER.example/acme/demo", access.Resource{Address: address.Address{Hostname: "xn--bcher-kva.example", Namespace: "acme", Name: "demo"}}, "bücher.example/acme/demo"},
	{"a provider has Unicode as it is", "MÜNCHEN/straße", access.Resource{Address: address.Address{Namespace: "münchen", Name: "straße"}, Hosted: true}, "münchen/straße"},
}

func TestParseAddress(t *testing.T) {
	for _, test := range parsedAddresses {
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

var refusedAddresses = []struct{ rule, given, why string }{
	{"nothing", "", "write [HOSTNAME/]NAMESPACE/TYPE"},
	{"a namespace alone", "acme", "write [HOSTNAME/]NAMESPACE/TYPE"},
	{"a hostname alone", "registry.terraform.io", "write [HOSTNAME/]NAMESPACE/TYPE"},
	{"a hostname and a namespace", "registry.terraform.io/hashicorp", "write [HOSTNAME/]NAMESPACE/TYPE"},
	{"too many parts", "acme/vpc/aws/1", "write [HOSTNAME/]NAMESPACE/TYPE"},
	{"a version", "acme/demo/1.0.0", `"acme/demo/1.0.0" is not a module`},
	{"a URL", "https://registry.terraform.io/hashicorp/null", `leave out "https://"`},
	{"an empty part", "acme//aws", `"acme//aws" is not a module`},
	{"a slash at the end", "acme/demo/", `"acme/demo/" is not a module`},
	{"a slash in front", "/acme", `"" is not a provider namespace`},
	{"a bad hostname", "registry..example/acme/demo", `"registry..example" is not a hostname`},
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

func TestParseAddressRefuses(t *testing.T) {
	for _, test := range refusedAddresses {
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

func TestAddressString(t *testing.T) {
	for _, test := range []struct {
		rule    string
		address access.Resource
		want    string
	}{
		{"its own has the hostname it was asked for under", access.Resource{Address: address.Address{Hostname: "registry.example.com", Namespace: "acme", Name: "demo"}, Hosted: true}, "registry.example.com/acme/demo"},
		{"a module's case is the user's", access.Resource{Address: address.Address{Namespace: "Acme", Name: "VPC", System: "aws"}, Hosted: true}, "Acme/VPC/aws"},
		{"a namespace is one part", access.Resource{Address: address.Address{Namespace: "acme"}, Hosted: true}, "acme"},
		{"nothing is nothing", access.Resource{}, ""},
	} {
		t.Run(test.rule, func(t *testing.T) {
			if got := test.address.String(); got != test.want {
				t.Errorf("%+v is printed as %q, not %q", test.address, got, test.want)
			}
		})
	}
}
