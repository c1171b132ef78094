package address_test

import (
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

func TestPattern(t *testing.T) {
	type parts = []address.Wildcard
	for _, test := range []struct {
		rule    string
		pattern parts
		address string
		want    bool
	}{
		{"without parts it covers everything", nil, "acme/demo", true},
		{"a namespace covers its providers", parts{"acme"}, "acme/demo", true},
		{"and its modules", parts{"acme"}, "acme/vpc/aws", true},
		{"but no other namespace", parts{"acme"}, "acme2/demo", false},
		{"a name covers the provider", parts{"acme", "demo"}, "acme/demo", true},
		{"and the module for every system", parts{"acme", "vpc"}, "acme/vpc/aws", true},
		{"but no other name", parts{"acme", "demo"}, "acme/demos", false},
		{"a system covers the module for it", parts{"acme", "vpc", "aws"}, "acme/vpc/aws", true},
		{"but not for another", parts{"acme", "vpc", "aws"}, "acme/vpc/azurerm", false},
		{"and no provider has one", parts{"*", "*", "*"}, "acme/demo", false},
		{"a star stands for any characters of a part", parts{"a*e", "*mo"}, "acme/momo", true},
		{"or for none", parts{"acme*", "*demo*"}, "acme/demo", true},
		{"the hostname makes no difference", parts{"acme", "demo"}, "registry.example.com/acme/demo", true},
	} {
		a, err := address.Parse(test.address)
		if err != nil {
			t.Fatal(err)
		}
		if p := address.NewPattern(test.pattern...); p.Covers(a) != test.want {
			t.Errorf("%s: %q covers %s: %t", test.rule, p, a, !test.want)
		}
	}
	mixed := address.Address{Namespace: "Acme", Name: "VPC", System: "AWS"}
	if !address.NewPattern("acme", "v*", "aws").Covers(mixed) {
		t.Error("the case of an address makes a difference")
	}
}

func TestPatternsThatCoverAll(t *testing.T) {
	for _, test := range []struct {
		pattern address.Pattern
		text    string
		want    bool
	}{
		{address.NewPattern(), "", true},
		{address.NewPattern("*"), "*", true},
		{address.NewPattern("*", "**"), "*/**", true},
		{address.NewPattern("acme"), "acme", false},
		{address.NewPattern("*", "a*"), "*/a*", false},
		{address.NewPattern("*", "*", "*"), "*/*/*", false}, // no providers
	} {
		if got := test.pattern.CoversAll(); got != test.want || test.pattern.String() != test.text {
			t.Errorf("%q covers all: %t", test.pattern, got)
		}
	}
}
