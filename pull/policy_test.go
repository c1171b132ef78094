package pull

import (
	"strings"
	"testing"
	"time"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
)

func TestPatterns(t *testing.T) {
	for _, test := range []struct{ pattern, printed, covers, not string }{
		{"hashicorp/aws", "hashicorp/aws", "hashicorp/aws hashicorp/aws/kubernetes", "hashicorp/awscc hashicorp/aw acme/aws hashicorp/vpc/aws"},
		{"hashicorp", "hashicorp", "hashicorp/aws hashicorp/google-beta hashicorp/consul/aws", "hashicorp2/aws"},
		{"acme/vpc/aws", "acme/vpc/aws", "acme/vpc/aws", "acme/vpc/azurerm acme/vpc acme/vpc2/aws other/vpc/aws"},
		{"acme/*/aws", "acme/*/aws", "acme/vpc/aws acme/iam_role/aws", "acme/vpc/awscc acme/aws"},
		{"*/*/*", "*/*/*", "a/b/c", "a/b"},
		{"acme/iam_role*", "acme/iam_role*", "acme/iam_role/aws acme/iam_roles/aws", "acme/iam/aws"},
		{"HashiCorp/AWS", "hashicorp/aws", "hashicorp/aws", ""},
		{"*", "*", "a/b hashicorp/aws", ""},
		{"*/aws", "*/aws", "a/aws hashicorp/aws", "hashicorp/aws2"},
		{"acme/*-beta", "acme/*-beta", "acme/google-beta acme/x-beta-beta", "acme/beta acme/google-betas"},
		{"a*c*e/x", "a*c*e/x", "ace/x abcde/x aceace/x", "acd/x bace/x"},
		{"a**e/x", "a**e/x", "ae/x abe/x", "a/x"},
	} {
		p, err := ParsePattern(test.pattern)
		if err != nil || p.String() != test.printed {
			t.Errorf("%s: got %v, %v", test.pattern, p, err)
		}
		for i, list := range []string{test.covers, test.not} {
			for _, name := range strings.Fields(list) {
				a, err := address.Parse(name)
				if err != nil {
					t.Fatal(err)
				}
				if got := p.Covers(a); got != (i == 0) {
					t.Errorf("%s covers %s: %v", p, name, got)
				}
			}
		}
	}
	for _, bad := range []string{"", "/", "a/", "/b", "a/b/c/d", "a//c", "a/b/", "a/b/c_d", "example.com/a", "example.com/a/b", "a/b c", "a/[b]", "a?/b", "a/b\x00", "a\\b"} {
		if p, err := ParsePattern(bad); err == nil {
			t.Errorf("%q is taken for %v", bad, p)
		}
	}
}

func FuzzParsePattern(f *testing.F) {
	for _, seed := range []string{"hashicorp/*", "*", "a*b**c/x-*", "ä/ö"} {
		f.Add(seed, "hashicorp", "aws", "")
	}
	f.Add("acme/*/aws", "acme", "vpc", "aws")
	f.Fuzz(func(t *testing.T, pattern, namespace, name, system string) {
		p, err := ParsePattern(pattern)
		if err != nil {
			return
		}
		again, err := ParsePattern(p.String())
		if err != nil || again != p {
			t.Fatalf("%q became %q, %v", p, again, err)
		}
		p.Covers(address.Address{Namespace: namespace, Name: name, System: system})
	})
}

func TestPolicies(t *testing.T) {
	pattern := func(s string) address.Pattern {
		p, err := ParsePattern(s)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	aws := address.Address{Namespace: "hashicorp", Name: "aws"}
	for _, test := range []struct {
		rule   string
		policy Policy
		want   bool
	}{
		{"everything", Policy{}, true},
		{"allowed", Policy{Allow: []address.Pattern{pattern("acme"), pattern("hashicorp/a*")}}, true},
		{"something else is allowed", Policy{Allow: []address.Pattern{pattern("acme")}}, false},
		{"denied", Policy{Deny: []address.Pattern{pattern("hashicorp/aws")}}, false},
		{"something else is denied", Policy{Deny: []address.Pattern{pattern("acme")}}, true},
		{"allowed and denied", Policy{Allow: []address.Pattern{pattern("hashicorp")}, Deny: []address.Pattern{pattern("*/aws")}}, false},
	} {
		if got := test.policy.includes(aws); got != test.want {
			t.Errorf("%s: %v", test.rule, got)
		}
	}
	for word, want := range map[string]Signatures{"require": RequireSignatures, "prefer": PreferSignatures} {
		if got, err := ParseSignatures(word); err != nil || got != want || got.String() != word {
			t.Errorf("%s: got %v, %v", word, got, err)
		}
	}
	if _, err := ParseSignatures("maybe"); err == nil {
		t.Error("\"maybe\" is accepted")
	}
}

func TestNewFiller(t *testing.T) {
	client, err := upstream.NewClient(upstream.Origin{Hostname: "registry.example.com"}, upstream.Network{})
	if err != nil {
		t.Fatal(err)
	}
	short, err := upstream.NewClient(upstream.Origin{Hostname: "registry"}, upstream.Network{})
	if err != nil {
		t.Fatal(err)
	}
	open := func() (tree.Tree, error) { return tree.Tree{}, nil }
	for _, test := range []struct {
		rule     string
		hostname svchost.Hostname
		source   Source
		open     func() (tree.Tree, error)
		says     string
	}{
		{"nothing is missing", "registry.example.com", Source{Client: client}, open, ""},
		{"no client", "registry.example.com", Source{}, open, "no client"},
		{"the client of another", "other.example.com", Source{Client: client}, open, "no client"},
		{"a hostname that has no folder", "registry", Source{Client: short}, open, "without a dot"},
		{"a negative age", "registry.example.com", Source{Client: client, Policy: Policy{MinAge: -time.Hour}}, open, "negative"},
		{"no tree", "registry.example.com", Source{Client: client}, nil, "no tree"},
	} {
		_, err := New(Options{Sources: map[svchost.Hostname]Source{test.hostname: test.source}, Open: test.open})
		if test.says == "" && err != nil || test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says)) {
			t.Errorf("%s: got %v", test.rule, err)
		}
	}
}
