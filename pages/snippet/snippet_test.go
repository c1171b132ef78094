package snippet

import (
	"slices"
	"strings"
	"testing"

	version "github.com/hashicorp/go-version"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index/moduledoc"
)

func TestSnippetCallsTheModule(t *testing.T) {
	required := []moduledoc.Variable{
		{Name: "cidr", Type: "string"}, {Name: "zones", Type: "list(\n  string\n)"}, {Name: "any"},
		{Name: "rules", Type: "map(object({ from = number, to = number, protocol = string }))"},
		{Name: "tags", Type: "map(string)", Default: "{}"}, {Name: "size", Type: "number"}, {Name: "on", Type: "bool"},
	}
	for _, test := range []struct {
		name, version string
		module        moduledoc.Module
		want          string
	}{
		{"without required inputs", "1.4.0", moduledoc.Module{}, `
module "vpc" {
  source  = "r.example.com/acme/vpc/aws"
  version = "~> 1.4"
}`},
		{"required inputs have a value of their type", "2.0.1", moduledoc.Module{Variables: required}, `
module "vpc" {
  source  = "r.example.com/acme/vpc/aws"
  version = "~> 2.0"

  cidr  = "…"
  zones = [] # list( string )
  any   = null # any
  rules = {} # map(object({ from, to, protocol }))
  size  = 0
  on    = false
}`},
		{"providers are passed to a module that has aliases of one", "1.4.0", moduledoc.Module{Variables: required[:1], Providers: []moduledoc.Provider{
			{Name: "aws", Source: "hashicorp/aws", Aliases: "aws.east, aws.peer"}, {Name: "tls", Source: "hashicorp/tls"},
		}}, `
module "vpc" {
  source  = "r.example.com/acme/vpc/aws"
  version = "~> 1.4"

  providers = {
    aws      = aws
    aws.east = aws.east
    aws.peer = aws.peer
    tls      = tls
  }

  cidr = "…"
}`},
		{"a submodule is named by its path", "1.4.0", moduledoc.Module{Path: "modules/subnets"}, `
module "subnets" {
  source  = "r.example.com/acme/vpc/aws//modules/subnets"
  version = "~> 1.4"
}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := Module("r.example.com/acme/vpc/aws", constraintFor(test.version), &test.module, "vpc")
			if got.Text != strings.TrimPrefix(test.want, "\n") {
				t.Errorf("got\n%s", got.Text)
			}
		})
	}
}

// What requires a provider is valid configuration.
func TestProviderSnippet(t *testing.T) {
	for _, test := range []struct{ rule, source, name, version, want string }{
		{
			"a hosted one", "registry.example.com/acme/demo", "demo", "1.2.3",
			"terraform {\n  required_providers {\n    demo = {\n      source  = \"registry.example.com/acme/demo\"\n      version = \"~> 1.2\"\n    }\n  }\n}",
		},
		{
			"a name with a dash, and a prerelease", "hashicorp/google-beta", "google-beta", "1.0.0-rc.1",
			"terraform {\n  required_providers {\n    google-beta = {\n      source  = \"hashicorp/google-beta\"\n      version = \"1.0.0-rc.1\"\n    }\n  }\n}",
		},
		{
			"a name that is no identifier", "acme/3d", "3d", "0.1.2",
			"terraform {\n  required_providers {\n    provider-3d = {\n      source  = \"acme/3d\"\n      version = \"~> 0.1.2\"\n    }\n  }\n}",
		},
	} {
		t.Run(test.rule, func(t *testing.T) {
			if got := Provider(test.source, test.name, constraintFor(test.version)).Text; got != test.want {
				t.Errorf("%s\nis not\n%s", got, test.want)
			}
		})
	}
}

// The block has the form that clients write: hashes in their order, each once.
func TestLockBlock(t *testing.T) {
	a, err := address.Parse("registry.terraform.io/acme/demo")
	if err != nil {
		t.Fatal(err)
	}
	got := LockBlock(a, "1.2.0", []string{"zh:bb", "h1:B=", "zh:aa", "h1:A=", "zh:cc", "h1:A="}).Text
	want := `provider "registry.terraform.io/acme/demo" {
  version = "1.2.0"
  hashes = [
    "h1:A=",
    "h1:B=",
    "zh:aa",
    "zh:bb",
    "zh:cc",
  ]
}`
	if got != want {
		t.Errorf("got\n%s", got)
	}
}

func TestConstraintAllowsTheVersionAndWhatIsCompatible(t *testing.T) {
	for _, test := range []struct{ name, version, want string }{
		{"the minor version can rise", "1.4.2", "~> 1.4"},
		{"before 1.0.0 only the patch", "0.4.2", "~> 0.4.2"},
		{"a prerelease is named", "2.0.0-rc.1", "2.0.0-rc.1"},
		{"a prerelease of 0.x too", "0.1.0-beta", "0.1.0-beta"},
		{"a build has the constraint of its version", "1.0.0+build.5", "~> 1.0"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := constraintFor(test.version)
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			c, err := address.ParseConstraints(got)
			if err != nil {
				t.Fatal(err)
			}
			if !c.Allow(version.Must(version.NewVersion(test.version))) {
				t.Errorf("%q does not allow %s", got, test.version)
			}
		})
	}
}

// Names of modules and folders may have characters that identifiers may not.
func TestBlockNamesAreIdentifiers(t *testing.T) {
	for name, want := range map[string]string{
		"vpc": "vpc", "kubernetes-cluster": "kubernetes-cluster", "3tier": "module_3tier", "-x": "module_-x", "a b.c": "a_b_c", "": "module_", "ä": "_",
	} {
		got := blockName(name)
		if got != want || !hclsyntax.ValidIdentifier(got) {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}

// For all names, the snippet has one block with two arguments, and one for its input.
func FuzzSnippetIsConfiguration(f *testing.F) {
	f.Add("r.example.com/acme/vpc/aws", "1.2.3", "modules/x", "name", "string")
	f.Add(`a"b${c}%{d}`, "\n}", "modules/\"\n", "x\ny = 1", "object({\n a = string\r})")
	f.Add("a", "1\u2028", "b", "\r", "\x00")
	f.Fuzz(func(t *testing.T, source, version, path, name, typ string) {
		m := moduledoc.Module{Path: path, Variables: []moduledoc.Variable{{Name: name, Type: typ}}}
		text := Module(source, constraintFor(version), &m, "vpc").Text
		arguments := 2
		if hclsyntax.ValidIdentifier(name) && !slices.Contains(reserved, name) {
			arguments++
		}
		file, problems := hclsyntax.ParseConfig([]byte(text), "main.tf", hcl.InitialPos)
		if problems.HasErrors() {
			t.Fatalf("%v in\n%s", problems, text)
		}
		body := file.Body.(*hclsyntax.Body)
		if len(body.Blocks) != 1 || len(body.Attributes) != 0 || len(body.Blocks[0].Body.Attributes) != arguments || len(body.Blocks[0].Body.Blocks) != 0 {
			t.Fatalf("it is more than one block in\n%s", text)
		}
		if v, problems := body.Blocks[0].Body.Attributes["source"].Expr.Value(nil); problems.HasErrors() || !v.IsKnown() {
			t.Fatalf("the source is not a literal in\n%s", text)
		}
	})
}

// Clients select the version that the page calls the latest.
func TestConstraintOfALatestVersion(t *testing.T) {
	for _, test := range []struct {
		rule, text, latest string
		offered            []string
		want               string
	}{
		{"later compatible versions are allowed", "1.4.0", "1.4.0", []string{"1.4.0", "1.3.0"}, "~> 1.4"},
		{"on the page of another version, none", "1.3.0", "1.4.0", []string{"1.4.0", "1.3.0"}, "1.3.0"},
		{"nor if a newer one is deprecated", "1.4.0", "1.4.0", []string{"1.5.0", "1.4.0"}, "1.4.0"},
		{"unless its major version is another", "1.4.0", "1.4.0", []string{"2.0.0", "1.4.0"}, "~> 1.4"},
		{"or clients do not select it", "1.4.0", "1.4.0", []string{"1.5.0-rc.1", "1.4.0"}, "~> 1.4"},
		{"in 0.x, a minor version is another", "0.4.0", "0.4.0", []string{"0.5.0", "0.4.0"}, "~> 0.4.0"},
		{"and a patch is not", "0.4.0", "0.4.0", []string{"0.4.1", "0.4.0"}, "0.4.0"},
	} {
		if got := ConstraintOn(test.text, test.latest, test.offered); got != test.want {
			t.Errorf("%s: %s", test.rule, got)
		}
	}
}
