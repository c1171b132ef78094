package pages

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
)

type rowOf string

func (r rowOf) number() string { return string(r) }

// A page has its versions in one order, offered or withdrawn.
func TestGroupVersions(t *testing.T) {
	for _, test := range []struct {
		rule               string
		offered, withdrawn []rowOf
		want               []rowOf
	}{
		{"the newest first", []rowOf{"2.0.0", "1.0.0"}, []rowOf{"1.1.0"}, []rowOf{"2.0.0", "1.1.0", "1.0.0"}},
		{"a withdrawn build after its version", []rowOf{"1.0.0"}, []rowOf{"1.0.0+a"}, []rowOf{"1.0.0", "1.0.0+a"}},
		{"withdrawn builds among the others", []rowOf{"1.0.0", "1.0.0+b"}, []rowOf{"1.0.0+c", "1.0.0+a"}, []rowOf{"1.0.0", "1.0.0+c", "1.0.0+b", "1.0.0+a"}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			var got []rowOf
			for _, g := range groupVersions(test.offered, test.withdrawn) {
				got = append(got, g.Rows...)
			}
			if !slices.Equal(got, test.want) {
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
	x := index.New(index.Options{Open: files.Open})
	t.Cleanup(func() { x.Close() })
	s := siteOf(t, indextest.Rescan(t, x))
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
	x := index.New(index.Options{Open: files.Open})
	t.Cleanup(func() { x.Close() })
	s := siteOf(t, indextest.Rescan(t, x))
	for module, compared := range map[string]bool{"small": true, "large": false} {
		body := s.get("/modules/acme/"+module+"/aws?tab=versions", "").Body.String()
		if strings.Contains(body, "news") != compared || strings.Contains(body, "a_rather_long_input") {
			t.Errorf("%s: its versions are\n%s", module, body)
		}
	}
}
