package pages

import (
	"fmt"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
)

// A page has its versions in one order, offered or withdrawn.
func TestGroupVersions(t *testing.T) {
	for _, test := range []struct{ rule, offered, withdrawn, want string }{
		{"the newest first", "2.0.0 1.0.0", "1.1.0", "2.0.0 1.1.0 1.0.0"},
		{"a withdrawn build after its version", "1.0.0", "1.0.0+a", "1.0.0 1.0.0+a"},
		{"withdrawn builds among the others", "1.0.0 1.0.0+b", "1.0.0+c 1.0.0+a", "1.0.0 1.0.0+c 1.0.0+b 1.0.0+a"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			var offered []versionRow
			for version := range strings.FieldsSeq(test.offered) {
				offered = append(offered, versionRow{Version: version})
			}
			var withdrawn []index.WithdrawnVersion
			for version := range strings.FieldsSeq(test.withdrawn) {
				withdrawn = append(withdrawn, index.WithdrawnVersion{Version: version})
			}
			var got []string
			for _, g := range (&visit{site: new(Site)}).groupVersions(offered, withdrawn) {
				for _, row := range g.Rows {
					got = append(got, row.Version)
				}
			}
			if strings.Join(got, " ") != test.want {
				t.Errorf("got %q", got)
			}
		})
	}
}

// A notice also withdraws versions that are not here: it keeps mirrored ones from coming.
func TestAWithdrawnVersionThatIsNotHere(t *testing.T) {
	files := indextest.New(t)
	const notice = "withdrawn \"5.31.0\" {\n  reason = \"It destroys the state.\"\n}\n"
	files.Write("modules/acme/vpc/aws/1.0.0.zip", indextest.Zip("main.tf", "")).Write("modules/acme/vpc/aws/registry.hcl", notice)
	files.ProviderIn("providers/registry.terraform.io/hashicorp/aws", "aws", "5.30.0", "linux_amd64").Checksums()
	files.Write("providers/registry.terraform.io/hashicorp/aws/registry.hcl", notice).Write("providers/registry.terraform.io/hashicorp/null/registry.hcl", notice)
	s := siteOf(t, snapshotOf(t, files))
	for _, test := range []struct {
		path   string
		status int
	}{
		{"/modules/acme/vpc/aws/5.31.0", 410},
		{"/modules/acme/vpc/aws/5.32.0", 404},
		{"/registries/registry.terraform.io/providers/hashicorp/aws/5.31.0", 410},
		{"/registries/registry.terraform.io/providers/hashicorp/aws/5.32.0", 404},
		{"/registries/registry.terraform.io/providers/hashicorp/null/5.31.0", 410},
	} {
		w := s.get(test.path, "")
		if said := strings.Contains(w.Body.String(), "It destroys the state."); w.Code != test.status || said != (test.status == 410) {
			t.Errorf("%s: the status is %d, and it says why: %v", test.path, w.Code, said)
		}
	}
}

// A version with more names than its summary has room for is not said to have lost some.
func TestVersionsWithManyNames(t *testing.T) {
	files := indextest.New(t)
	variables := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "variable \"a_rather_long_input_%03d\" { default = 1 }\n", i)
		}
		return b.String()
	}
	files.Write("modules/acme/small/aws/1.0.0.zip", indextest.Zip("main.tf", variables(3)))
	files.Write("modules/acme/small/aws/1.1.0.zip", indextest.Zip("main.tf", "variable \"news\" { default = 1 }\n"+variables(3)))
	files.Write("modules/acme/large/aws/1.0.0.zip", indextest.Zip("main.tf", variables(236)))
	files.Write("modules/acme/large/aws/1.1.0.zip", indextest.Zip("main.tf", "variable \"news\" { default = 1 }\n"+variables(236)))
	s := siteOf(t, snapshotOf(t, files))
	for module, compared := range map[string]bool{"small": true, "large": false} {
		body := s.get("/modules/acme/"+module+"/aws?tab=versions", "").Body.String()
		if strings.Contains(body, "news") != compared || strings.Contains(body, "a_rather_long_input") {
			t.Errorf("%s: its versions are\n%s", module, body)
		}
	}
}
