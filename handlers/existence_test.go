package handlers_test

import (
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
)

// Who may not read something takes the same way through the registry whether it
// exists or not: nothing is looked up, and nothing done, that depends on it.
func TestExistenceTakesTheSameWay(t *testing.T) {
	g := private(t)
	link := "?exp=4102444800&sig=" + strings.Repeat("A", 48)
	for _, test := range []struct{ rule, exists, missing string }{
		{"provider versions", "/v1/providers/acme/demo/versions", "/v1/providers/acme/dems/versions"},
		{"in another namespace", "/v1/providers/acme/demo/versions", "/v1/providers/acms/demo/versions"},
		{"written otherwise", "/v1/providers/ACME/demo/versions", "/v1/providers/ACME/dems/versions"},
		{"a platform", "/v1/providers/acme/demo/1.0.0/download/linux/amd64", "/v1/providers/acme/demo/2.0.0/download/linux/amd64"},
		{"module versions", "/v1/modules/acme/vpc/aws/versions", "/v1/modules/acme/vps/aws/versions"},
		{"a module written otherwise", "/v1/modules/Acme/vpc/aws/versions", "/v1/modules/Acme/vps/aws/versions"},
		{"the newest of a module", "/v1/modules/acme/vpc/aws/download", "/v1/modules/acme/vps/aws/download"},
		{"a module's location", "/v1/modules/acme/vpc/aws/1.0.0/download", "/v1/modules/acme/vpc/aws/2.0.0/download"},
		{"a module's package", "/v1/modules/acme/vpc/aws/1.0.0/archive.tar.gz", "/v1/modules/acme/vps/aws/1.0.0/archive.tar.gz"},
		{"a module's package by a forged link", "/v1/modules/acme/vpc/aws/1.0.0/archive.tar.gz" + link, "/v1/modules/acme/vps/aws/1.0.0/archive.tar.gz" + link},
		{"a module of a hostname", "/v1/modules/registry.terraform.io/acme/vpc/aws/1.0.0/archive.tar.gz", "/v1/modules/registry.terraform.io/acme/vps/aws/1.0.0/archive.tar.gz"},
		{"index.json", "/v1/mirror/registry.terraform.io/acme/null/index.json", "/v1/mirror/registry.terraform.io/acme/nuls/index.json"},
		{"index.json of another hostname", "/v1/mirror/registry.terraform.io/acme/null/index.json", "/v1/mirror/registry.terraform.is/acme/null/index.json"},
		{"VERSION.json", "/v1/mirror/registry.terraform.io/acme/null/3.2.0.json", "/v1/mirror/registry.terraform.io/acme/null/3.2.1.json"},
		{"VERSION.json of another", "/v1/mirror/registry.terraform.io/acme/null/3.2.0.json", "/v1/mirror/registry.terraform.io/acme/nuls/3.2.0.json"},
		{"a mirrored file", "/v1/mirror/registry.terraform.io/acme/null/terraform-provider-null_3.2.0_linux_amd64.zip", "/v1/mirror/registry.terraform.io/acme/null/terraform-provider-null_3.2.1_linux_amd64.zip"},
		{"a mirrored file by a forged link", "/v1/mirror/registry.terraform.io/acme/null/terraform-provider-null_3.2.0_linux_amd64.zip" + link, "/v1/mirror/registry.terraform.io/acme/null/terraform-provider-null_3.2.1_linux_amd64.zip" + link},
		{"a hosted file", "/v1/mirror/-/acme/demo/terraform-provider-demo_1.0.0_linux_amd64.zip", "/v1/mirror/-/acme/dems/terraform-provider-demo_1.0.0_linux_amd64.zip"},
		{"a hosted file under a name", "/v1/mirror/" + own + "/acme/demo/terraform-provider-demo_1.0.0_linux_amd64.zip", "/v1/mirror/" + own + "/acme/demo/terraform-provider-demo_1.0.1_linux_amd64.zip"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			for _, caller := range []string{nobody, stranger, garbage} {
				exists, code := allocations(g, caller, test.exists)
				missing, same := allocations(g, caller, test.missing)
				if exists != missing || code != same {
					t.Errorf("as %q: %v allocations and %d for what exists, %v and %d for what does not", caller, exists, code, missing, same)
				}
			}
		})
	}
}

// allocations is how many an answer takes, which tells ways through the code apart
// as time does. It is the fewest of several answers: pools may lose what they keep.
func allocations(g *handlers.Registry, credentials, path string) (float64, int) {
	r := httptest.NewRequest(http.MethodGet, home+path, nil)
	if name, value, ok := strings.Cut(credentials, ": "); ok {
		r.Header.Set(name, value)
	}
	w := &sink{header: make(http.Header)}
	fewest := math.Inf(1)
	for range 200 { // under the race detector pools lose a quarter on purpose
		fewest = min(fewest, testing.AllocsPerRun(1, func() {
			clear(w.header)
			g.ServeHTTP(w, r)
		}))
	}
	return fewest, w.status
}
