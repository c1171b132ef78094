package pages

import (
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
)

func TestWhatAConstraintTakes(t *testing.T) {
	for _, test := range []struct {
		rule, of, constraint, version string
		want                          bool
	}{
		{"none takes any", "acme/vpc/aws", "", "1.2.0", true},
		{"a range", "acme/vpc/aws", "~> 1.0", "1.2.0", true},
		{"an older range", "acme/vpc/aws", "~> 1.0", "2.0.0", false},
		{"several", "acme/vpc/aws", ">= 1.0, < 1.2", "1.2.0", false},
		{"no constraint at all", "acme/vpc/aws", "latest", "1.2.0", false},
		{"one number of a module, as clients read it", "acme/vpc/aws", "~> 1", "2.0.0", true},
		{"one number of a provider", "hashicorp/aws", "~> 1", "2.0.0", false},
		{"a comma that is too much", "hashicorp/aws", ">= 1.0,", "1.2.0", false},
		{"none takes no pre-release", "acme/vpc/aws", "", "1.0.0-rc.1", false},
		{"a pre-release is not taken for its boundary", "acme/vpc/aws", ">= 1.0.0-rc.1", "1.0.0-rc.1", false},
	} {
		a, err := address.Parse(test.of)
		if err != nil {
			t.Fatal(err)
		}
		if got := takesOf(a, test.version, []string{test.version})(test.constraint); (got == test.version) != test.want || !test.want && got != "" {
			t.Errorf("%s: %q", test.rule, got)
		}
	}
}

// Clients do not heed deprecations: a constraint may take a version that the registry does not
// call the latest.
func TestWhatAConstraintTakesOfDeprecatedVersions(t *testing.T) {
	offered := []string{"2.0.0-rc.1", "1.5.1", "1.5.0", "1.4.0", "1.3.0"}
	for constraint, want := range map[string]string{
		"": "1.5.1", "~> 1.4": "1.5.1", "~> 1.4.0": "1.4.0", "1.5.0": "1.5.0", "2.0.0-rc.1": "2.0.0-rc.1", "1.3.0": "", "~> 3.0": "",
	} {
		if got := takesOf(address.Address{Namespace: "acme", Name: "vpc", System: "aws"}, "1.4.0", offered)(constraint); got != want {
			t.Errorf("%q takes %q, want %q", constraint, got, want)
		}
	}
}

func TestUsersThatTakeADeprecatedVersion(t *testing.T) {
	files := indextest.New(t).
		Write("modules/acme/net/aws/1.0.0/main.tf", "").
		Write("modules/acme/net/aws/1.1.0/main.tf", "").
		Write("modules/acme/net/aws/registry.hcl", "deprecated \"1.1.0\" {}\n").
		Write("modules/acme/vpc/aws/1.0.0/main.tf", "module \"net\" {\n  source  = \"registry.example.com/acme/net/aws\"\n  version = \"~> 1.0\"\n}\n")
	main := siteOf(t, snapshotOf(t, files)).get("/modules/acme/net/aws?tab=used-by", "").Body.String()
	if !strings.Contains(main, "takes 1.1.0, not 1.0.0") {
		t.Errorf("it is\n%s", main)
	}
}
