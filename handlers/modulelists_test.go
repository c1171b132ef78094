package handlers_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
)

// catalogTree has hosted and mirrored modules and providers with descriptions. Their
// files are dated 2026-01-02.
func catalogTree(t testing.TB) *indextest.Tree {
	t.Helper()
	files := indextest.New(t)
	vpc := []string{
		"README.md", "# VPC\n\nA network with subnets in every zone.\n\n## Usage\n\nSet the cidr and peer with others.\n",
		"main.tf", `
terraform {
  required_providers {
    aws  = { source = "hashicorp/aws", version = ">= 5.0" }
    demo = { source = "registry.example.com/acme/demo", version = "~> 1.0" }
  }
}
variable "cidr" {
  type        = string
  description = "Addresses of the network."
}
variable "zones" {
  type    = list(string)
  default = ["a", "b"]
}
variable "name" {
  type    = string
  default = "main"
}
variable "flow_logs" {
  default = null
}
output "id" {
  description = "Of the network."
  value       = aws_vpc.main.id
}
module "dns" {
  source  = "registry.example.com/acme/dns/aws"
  version = "1.0.0"
}
resource "aws_vpc" "main" {}
data "aws_region" "current" {}
`,
		"modules/peering/main.tf", `variable "other_account" {}`,
		"modules/peering/README.md", "# Peering\n\nConnects two networks of one account.\n",
		"examples/complete/main.tf", `module "vpc" { source = "../.." }`,
	}
	for _, v := range []string{"1.9.0", "1.10.0", "2.0.0-rc.1"} {
		files.Write("modules/acme/vpc/aws/"+v+".tar.gz", indextest.TarGz(vpc...))
	}
	files.Write("modules/acme/vpc/aws/registry.hcl", `
source = "https://github.com/acme/terraform-aws-vpc"
owner  = "platform team"
deprecated "1.9.0" {
  reason = "subnets overlap"
  link   = "https://example.com/1.10"
}
withdrawn "1.8.0" {
  reason = "CVE-2026-1"
}
`)
	files.Write("modules/acme/vpc/google/1.0.0/main.tf", "# a module")
	files.Write("modules/acme/dns/aws/1.0.0/main.tf", `variable "zone" {}`)
	files.Write("modules/acme/dns/aws/registry.hcl", `description = "Names for what is in a vpc"`)
	files.Write("modules/other/bucket/aws/0.1.0/main.tf", "# a module")
	files.Write("modules/mirrored.example.com/acme/vpc/azurerm/9.0.0/main.tf", "# a module")

	files.Provider("acme/demo", "1.0.0", "linux_amd64")
	files.Provider("acme/demo", "1.1.0", "linux_amd64", "darwin_arm64")
	files.Provider("acme/demo", "2.0.0-beta.1", "linux_amd64")
	files.Write("providers/acme/demo/registry.hcl", `
description = "Manages demonstrations"
source      = "https://github.com/acme/terraform-provider-demo"
owner       = "platform team"
withdrawn "0.9.0" {
  reason = "it loses state"
}
`)
	files.Write("providers/acme/demo/1.1.0/docs/index.md", "# The provider\n")
	files.Write("providers/acme/demo/1.1.0/docs/resources/thing.md", "---\npage_title: \"demo_thing\"\nsubcategory: \"Things\"\n---\n# Thing\n")
	files.Provider("acme/other", "0.1.0", "linux_amd64")
	files.Provider("zeta/demo", "1.0.0", "linux_amd64")
	files.Provider("mirrored.example.com/acme/null", "3.0.0", "linux_amd64")
	return files
}

// A modulePage is a list of modules as tools read it.
type modulePage struct {
	Meta    map[string]any   `json:"meta"`
	Modules []map[string]any `json:"modules"`
}

func (p modulePage) ids() []string { return idsOf(p.Modules) }

func idsOf(list []map[string]any) []string {
	ids := make([]string, len(list))
	for i, m := range list {
		ids[i], _ = m["id"].(string)
	}
	return ids
}

func TestModuleLists(t *testing.T) {
	s := serve(t, registry(scan(t, catalogTree(t))))
	const dns, vpc, google, bucket = "acme/dns/aws/1.0.0", "acme/vpc/aws/1.10.0", "acme/vpc/google/1.0.0", "other/bucket/aws/0.1.0"
	for _, test := range []struct {
		rule, path string
		want       []string
	}{
		{"all hosted ones, each with its latest version", "", []string{dns, vpc, google, bucket}},
		{"the same with a slash", "/", []string{dns, vpc, google, bucket}},
		{"of a namespace", "/acme", []string{dns, vpc, google}},
		{"of a namespace in another case", "/Acme", []string{dns, vpc, google}},
		{"of a namespace that has none", "/nobody", nil},
		{"of a name, for each system", "/acme/vpc", []string{vpc, google}},
		{"of a name that does not exist", "/acme/nothing", nil},
		{"for a system", "?provider=aws", []string{dns, vpc, bucket}},
		{"for a system, of a namespace", "/acme?provider=google", []string{google}},
		{"of a namespace by a filter", "?namespace=other", []string{bucket}},
		{"verified ones are all", "?verified=true", []string{dns, vpc, google, bucket}},
		{"of no such system", "?provider=azurerm", nil},
		{"a parameter that means nothing", "?sort=name", []string{dns, vpc, google, bucket}},

		{"found by name, then by the description, then by the README", "/search?q=vpc", []string{vpc, google, dns}},
		{"found by a part of the name", "/search?q=ucke", []string{bucket}},
		{"found by the description", "/search?q=subnets", []string{vpc}},
		{"found by the README", "/search?q=peer", []string{vpc}},
		{"found by an input", "/search?q=cidr", []string{vpc}},
		{"found by a submodule, once", "/search?q=peering", []string{vpc}},
		{"found by the owner", "/search?q=platform", []string{vpc}},
		{"found by an address", "/search?q=acme/vpc/google", []string{google}},
		{"all words must be found", "/search?q=vpc+google", []string{google}},
		{"a word that is not found", "/search?q=vpc+nothing", nil},
		{"in quotes, as some tools write it", "/search?q=%27vpc%27&offset=0", []string{vpc, google, dns}},
		{"in double quotes", "/search?q=%22google%22", []string{google}},
		{"with a filter of systems", "/search?q=vpc&provider=google", []string{google}},
		{"with a filter of namespaces", "/search?q=aws&namespace=other", []string{bucket}},
		{"what is mirrored is not found", "/search?q=azurerm", nil},
	} {
		s.rule(test.rule, func(t *testing.T, s *site) {
			var page modulePage
			s.json("/v1/modules"+test.path, &page)
			if got := page.ids(); !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
			if page.Modules == nil {
				t.Error("modules is null")
			}
		})
	}
	s.rule("an entry has the fields of the public registry", func(t *testing.T, s *site) {
		const want = `{"meta":{"limit":15,"current_offset":0},"modules":[{"id":"acme/vpc/aws/1.10.0","owner":"platform team","namespace":"acme",` +
			`"name":"vpc","version":"1.10.0","provider":"aws","description":"A network with subnets in every zone.",` +
			`"source":"https://github.com/acme/terraform-aws-vpc","published_at":"2026-01-02T03:04:05Z","downloads":0,"verified":true}]}`
		if a := s.get("/v1/modules/acme/vpc?provider=aws"); a.body != want {
			t.Errorf("got %s\nwant %s", a.body, want)
		}
	})
	for _, path := range []string{"/search", "/search?q=", "/search?q=%27%27", "/search?q=++", "/search?q=/"} {
		s.rule("a search for nothing is refused: "+path, func(t *testing.T, s *site) {
			mustRefuse(t, s.get("/v1/modules"+path), http.StatusBadRequest)
			mustRefuse(t, s.get("/v1/providers"+path), http.StatusBadRequest)
		})
	}
	s.rule("a long parameter is refused", func(t *testing.T, s *site) {
		mustRefuse(t, s.get("/v1/modules/search?q="+strings.Repeat("a", 400)), http.StatusBadRequest)
		mustRefuse(t, s.get("/v1/modules?provider="+strings.Repeat("a", 400)), http.StatusBadRequest)
	})
}

func TestPaging(t *testing.T) {
	files := indextest.New(t)
	for i := range 130 {
		files.Write(fmt.Sprintf("modules/acme/m%03d/aws/1.0.0/main.tf", i), "# a module")
	}
	s := serve(t, registry(scan(t, files)))
	for _, test := range []struct {
		rule, query string
		first, many int
		meta        string
	}{
		{"the first page", "", 0, 15, `{"limit":15,"current_offset":0,"next_offset":15,"next_url":"/v1/modules?limit=15&offset=15"}`},
		{"a page in the middle", "?limit=2&offset=4", 4, 2, `{"limit":2,"current_offset":4,"next_offset":6,"next_url":"/v1/modules?limit=2&offset=6","prev_offset":2,"prev_url":"/v1/modules?limit=2&offset=2"}`},
		{"the page after an odd offset", "?limit=10&offset=3", 3, 10, `{"limit":10,"current_offset":3,"next_offset":13,"next_url":"/v1/modules?limit=10&offset=13","prev_offset":0,"prev_url":"/v1/modules?limit=10&offset=0"}`},
		{"the last page", "?limit=100&offset=100", 100, 30, `{"limit":100,"current_offset":100,"prev_offset":0,"prev_url":"/v1/modules?limit=100&offset=0"}`},
		{"the last page, which is full", "?limit=30&offset=100", 100, 30, `{"limit":30,"current_offset":100,"prev_offset":70,"prev_url":"/v1/modules?limit=30&offset=70"}`},
		{"beyond the last page", "?offset=1000", 0, 0, `{"limit":15,"current_offset":1000,"prev_offset":985,"prev_url":"/v1/modules?limit=15&offset=985"}`},
		{"a larger limit is lowered", "?limit=1000000", 0, 100, `{"limit":100,"current_offset":0,"next_offset":100,"next_url":"/v1/modules?limit=100&offset=100"}`},
		{"bad values are the defaults", "?limit=many&offset=-1", 0, 15, `{"limit":15,"current_offset":0,"next_offset":15,"next_url":"/v1/modules?limit=15&offset=15"}`},
		{"zero is no limit", "?limit=0&offset=0", 0, 15, `{"limit":15,"current_offset":0,"next_offset":15,"next_url":"/v1/modules?limit=15&offset=15"}`},
		{"values beyond all numbers", "?limit=99999999999999999999&offset=99999999999999999999", 0, 15, `{"limit":15,"current_offset":0,"next_offset":15,"next_url":"/v1/modules?limit=15&offset=15"}`},
		{"the largest offset", "?offset=9223372036854775807", 0, 0, `{"limit":15,"current_offset":9223372036854775807,"prev_offset":9223372036854775792,"prev_url":"/v1/modules?limit=15&offset=9223372036854775792"}`},
		{"filters are kept, and what means nothing is not", "?verified=true&provider=aws&token=s3cret&limit=1", 0, 1,
			`{"limit":1,"current_offset":0,"next_offset":1,"next_url":"/v1/modules?limit=1&offset=1&provider=aws&verified=true"}`},
		{"a query is kept", "/search?q=aws+m0&limit=1", 0, 1, `{"limit":1,"current_offset":0,"next_offset":1,"next_url":"/v1/modules/search?limit=1&offset=1&q=aws+m0"}`},
		{"a path is kept", "/acme?limit=1", 0, 1, `{"limit":1,"current_offset":0,"next_offset":1,"next_url":"/v1/modules/acme?limit=1&offset=1"}`},
	} {
		s.rule(test.rule, func(t *testing.T, s *site) {
			var page modulePage
			a := s.json("/v1/modules"+test.query, &page)
			var want []string
			for i := range test.many {
				want = append(want, fmt.Sprintf("acme/m%03d/aws/1.0.0", test.first+i))
			}
			if got := page.ids(); !slices.Equal(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
			if meta := strings.ReplaceAll(test.meta, "&", `\u0026`); !strings.HasPrefix(a.body, `{"meta":`+meta+`,`) {
				t.Errorf("got %.300s\nwant %s", a.body, meta)
			}
		})
	}
	for _, path := range []string{"/v1/modules?limit=7", "/v1/modules/acme?limit=100", "/v1/modules/search?q=aws&limit=33", "/v1/modules/search?q=m1&limit=3"} {
		s.rule("following next_url visits each once, and prev_url leads back: "+path, func(t *testing.T, s *site) {
			seen := make(map[string]bool)
			var before string
			for next := path; next != ""; {
				var page modulePage
				s.json(next, &page)
				for _, id := range page.ids() {
					if seen[id] {
						t.Fatalf("%s is listed twice", id)
					}
					seen[id] = true
				}
				if prev, _ := page.Meta["prev_url"].(string); before != "" {
					var again modulePage
					s.json(prev, &again)
					if got, _ := again.Meta["next_url"].(string); got != next {
						t.Errorf("the page before %s is %s, after which comes %s", next, prev, got)
					}
				}
				before = next
				next, _ = page.Meta["next_url"].(string)
			}
			want := 130
			if strings.Contains(path, "q=m1") {
				want = 30
			}
			if len(seen) != want {
				t.Errorf("%d modules are visited, want %d", len(seen), want)
			}
		})
	}
	s.rule("with a prefix and a public URL, the pages are paths there", func(t *testing.T, _ *site) {
		g := registry(scan(t, files))
		g.Prefix, g.PublicURL = "/registry", "https://tools.example.com/terraform"
		var page modulePage
		serve(t, g).json("/registry/modules?limit=1", &page)
		if got := page.Meta["next_url"]; got != "/terraform/registry/modules?limit=1&offset=1" {
			t.Errorf("got %v", got)
		}
	})
}
