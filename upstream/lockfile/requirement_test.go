package lockfile

import (
	"strings"
	"testing"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

var requirementArguments = []struct{ rule, given, want, says string }{
	{"a provider", "hashicorp/null", "registry.terraform.io/hashicorp/null", ""},
	{"a version", "hashicorp/null@3.2.2", "registry.terraform.io/hashicorp/null@3.2.2", ""},
	{"a constraint", "hashicorp/aws@~> 5.0", "registry.terraform.io/hashicorp/aws@~> 5.0", ""},
	{"constraints", "hashicorp/aws@>=5,<6", "registry.terraform.io/hashicorp/aws@>= 5, < 6", ""},
	{"a hostname", "registry.example.com/acme/demo@1.0.0", "registry.example.com/acme/demo@1.0.0", ""},
	{"a port", "registry.example.com:8443/acme/demo", "registry.example.com:8443/acme/demo", ""},
	{"localhost", "localhost/acme/demo", "localhost/acme/demo", ""},
	{"a hostname in Unicode", "Régistry.example.com/acme/demo", "régistry.example.com/acme/demo", ""},
	{"the case is folded", "HashiCorp/Null", "registry.terraform.io/hashicorp/null", ""},
	{"a type with a dash", "hashicorp/google-beta", "registry.terraform.io/hashicorp/google-beta", ""},

	{"a type alone", "null", "", "[HOSTNAME/]NAMESPACE/TYPE"},
	{"a module", "a.example.com/acme/naming/any", "", "[HOSTNAME/]NAMESPACE/TYPE"},
	{"nothing", "", "", "[HOSTNAME/]NAMESPACE/TYPE"},
	{"a version alone", "@1.0.0", "", "[HOSTNAME/]NAMESPACE/TYPE"},
	{"nothing behind the @", "hashicorp/null@", "", "hashicorp/null@1.2.3"},
	{"no constraint behind the @", "hashicorp/null@latest", "", "not a version constraint"},
	{"two versions", "hashicorp/null@1.0.0@2.0.0", "", "not a version constraint"},
	{"a hostname without a dot", "registry/acme/demo", "", "has a dot"},
	{"an empty hostname", "/acme/demo", "", "has a dot"},
	{"an empty type", "acme/", "", "provider type"},
	{"the prefix of the binary", "acme/terraform-provider-demo", "", "provider type"},
	{"a URL", "https://registry.example.com/acme/demo", "", "[HOSTNAME/]NAMESPACE/TYPE"},
	{"a built-in provider", "terraform.io/builtin/terraform", "", "leave it out"},
	{"the address of Terraform 0.12", "-/aws", "", "provider namespace"},
	{"a very long one", strings.Repeat("a", 600) + "/b", "", "at most"},
}

func TestParseRequirement(t *testing.T) {
	for _, test := range requirementArguments {
		t.Run(test.rule, func(t *testing.T) {
			r, err := ParseRequirement(test.given, false)
			if test.says != "" {
				if err == nil || !strings.Contains(err.Error(), test.says) {
					t.Fatalf("%q is %s, %v", test.given, r, err)
				}
				return
			}
			if err != nil || r.String() != test.want || len(r.From) != 1 || r.From[0] != test.given {
				t.Fatalf("%q is %s of %q, %v", test.given, r, r.From, err)
			}
		})
	}
}

func TestParseRequirementOfOpenTofu(t *testing.T) {
	r, err := ParseRequirement("hashicorp/null", true)
	if err != nil || r.Address.Hostname != "registry.opentofu.org" {
		t.Errorf("got %s, %v", r, err)
	}
}

// An accepted requirement has an address that a tree can have. Written out and parsed
// again, it is the same.
func FuzzParseRequirement(f *testing.F) {
	for _, test := range requirementArguments {
		f.Add(test.given)
	}
	for _, constraints := range []string{"3.2.2", ">=1.0,<2", "~> 3.0-beta1", "1.0.0+build.5", "=> 1.0", "1.x"} {
		f.Add("acme/demo@" + constraints)
	}
	f.Fuzz(func(t *testing.T, argument string) {
		r, err := ParseRequirement(argument, false)
		if err != nil {
			if err.Error() == "" {
				t.Fatal("the error is empty")
			}
			return
		}
		if host := string(r.Address.Hostname); host != "localhost" && !strings.ContainsAny(host, ".:") || !svchost.IsValid(r.Address.Hostname.ForDisplay()) {
			t.Fatalf("%q has the hostname %q", argument, host)
		}
		if strings.ContainsAny(r.Address.Namespace+r.Address.Name, "/\\.%\x00\n ") || r.Address.Namespace == "" || r.Address.Name == "" {
			t.Fatalf("%q is accepted as %s", argument, r)
		}
		again, err := ParseRequirement(r.String(), false)
		if err != nil || again.String() != r.String() || again.Address != r.Address {
			t.Fatalf("%q is %s, and that is %s, %v", argument, r, again, err)
		}
	})
}

func TestSelect(t *testing.T) {
	for _, test := range []struct{ rule, constraints, offered, want, says string }{
		{"of all", "", "1.0.0 1.10.0 1.9.0", "1.10.0", ""},
		{"without pre-releases", "", "1.0.0 2.0.0-rc.1", "1.0.0", ""},
		{"within the constraints", "~> 1.2", "1.1.0 1.2.0 1.3.0 2.0.0", "1.3.0", ""},
		{"a pre-release by its name", "2.0.0-rc.1", "1.0.0 2.0.0-rc.1 2.0.0", "2.0.0-rc.1", ""},
		{"the plain one of its builds", ">= 1.0", "1.0.0+b 1.0.0 1.0.0+a", "1.0.0", ""},
		{"a build by its name", "1.0.0+a", "1.0.0+b 1.0.0 1.0.0+a", "1.0.0+a", ""},
		{"ignoring invalid versions", "", "1.0.0 v2.0.0 2.0 latest", "1.0.0", ""},
		{"none is on offer", "", "", "", "no version of registry.terraform.io/acme/demo is on offer"},
		{"none is valid", "", "v1.0.0 latest", "", "is on offer"},
		{"none meets the constraints", ">= 3.0", "1.0.0 2.0.0", "", "is >= 3.0, as main.tf:3 and mod.tf:7 asks for: the newest on offer is 2.0.0"},
		{"pre-releases only", "", "1.0.0-rc.1", "", "is any release, as"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			r, err := ParseRequirement("acme/demo", false)
			if err != nil {
				t.Fatal(err)
			}
			r.From = []string{"main.tf:3", "mod.tf:7"}
			if r.constraints, err = address.ParseConstraints(test.constraints); err != nil {
				t.Fatal(err)
			}
			got, err := r.Select(strings.Fields(test.offered))
			if got != test.want || test.says == "" && err != nil || test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says)) {
				t.Fatalf("got %q, %v", got, err)
			}
		})
	}
}
