package command

import (
	"slices"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
)

// Clients refuse to plan without the required variables of a module.
func TestExampleVariables(t *testing.T) {
	const configuration = `
variable "team" {
  type        = string
  description = "default = nothing"
}
variable "untyped" {}
variable "count_of_them" { type = number }
variable "private" { type = bool }
variable "zones" { type = list(string) }
variable "tags" { type = map(string) }
variable "network" {
  type = object({ cidr = string, size = optional(number, 8), zones = set(string) })
}
variable "region" { default = "eu" }
`
	const want = `
  # Required by the module; the values are examples.
  count_of_them = 1
  network = {
    cidr  = "example"
    zones = []
  }
  private = false
  tags    = {}
  team    = "example"
  untyped = "example"
  zones   = []
`
	nested := "module \"a\" { source = \"./modules/a\" }\n"
	for rule, packed := range map[string]map[string]string{
		"a folder": {"1.0.0/main.tf": nested, "1.0.0/variables.tf": configuration, "1.0.0/modules/a/main.tf": `variable "other" {}`},
		"a tar.gz": {"1.0.0.tar.gz": indextest.TarGz("main.tf", nested, "./variables.tf", configuration, "examples/main.tf", `variable "other" {}`)},
		"a zip":    {"1.0.0.zip": indextest.Zip("main.tf", nested+configuration, "examples/main.tf", `variable "other" {}`)},
	} {
		files := indextest.New(t)
		for name, content := range packed {
			files.Write("modules/acme/vpc/aws/"+name, content)
		}
		s, err := index.Scan(t.Context(), index.Options{Open: files.Open})
		if err != nil {
			t.Fatal(err)
		}
		if got := arguments(exampleVariables(t.Context(), s, "acme/vpc/aws", "1.0.0")); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", rule, got, want)
		}
		if v := exampleVariables(t.Context(), s, "acme/vpc/aws", "2.0.0"); v != nil {
			t.Errorf("%s: of a version that is not there, got %v", rule, v)
		}
	}
}

// Variables that cannot be read do not keep the other variables from the example. Malformed
// names are left out: the example is printed on a terminal.
func TestExampleVariablesOfABrokenModule(t *testing.T) {
	files := indextest.New(t).
		Write("modules/acme/vpc/aws/1.0.0/a.tf", "\x00").
		Write("modules/acme/vpc/aws/1.0.0/main.tf", `variable "x\u001b[2J" {}`+"\n"+`variable "x" { type = nonsense }`+"\n"+`variable "broken" {`)
	s, err := index.Scan(t.Context(), index.Options{Open: files.Open})
	if err != nil {
		t.Fatal(err)
	}
	v := exampleVariables(t.Context(), s, "acme/vpc/aws", "1.0.0")
	if !slices.Equal(v, []exampleVariable{{"broken", `"example"`}, {"x", `"example"`}}) {
		t.Errorf("got %v", v)
	}
}

func TestWelcomeGivesModulesTheirVariables(t *testing.T) {
	s, err := planSite("registry.example.com", "", false)
	if err != nil {
		t.Fatal(err)
	}
	w := welcome{site: s, root: "/srv", report: sampleReport(), variables: func(address, version string) []exampleVariable {
		if address != "acme/vpc/aws" || version != "1.0.0" {
			t.Errorf("asked for %s %s", address, version)
		}
		return []exampleVariable{{"team", `"example"`}}
	}}
	var b strings.Builder
	if err := w.write(&b); err != nil {
		t.Fatal(err)
	}
	if want := "  version = \"1.0.0\"\n\n  # Required by the module; the values are examples.\n  team = \"example\"\n}\n"; !strings.Contains(b.String(), want) {
		t.Errorf("got\n%s\nwant in it\n%s", b.String(), want)
	}
}
