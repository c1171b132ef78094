package lockfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// readConfiguration reads a configuration in folder p, given as names and contents of
// its files. It returns a line for each requirement, and then for each unresolved part.
func readConfiguration(t *testing.T, tofu bool, files ...string) (string, error) {
	t.Helper()
	t.Chdir(t.TempDir())
	writeFiles(t, files)
	c, err := ReadConfiguration("p", tofu)
	if err != nil {
		return "", err
	}
	return needs(c), nil
}

// writeFiles writes files, given as names and contents.
func writeFiles(t *testing.T, files []string) {
	t.Helper()
	for i := 0; i < len(files); i += 2 {
		name := filepath.FromSlash(files[i])
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(files[i+1]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// needs returns a line for each requirement of a configuration, and then for each
// unresolved part.
func needs(c *Configuration) string {
	var lines []string
	for _, r := range c.Requirements() {
		lines = append(lines, r.String()+" of "+strings.Join(r.From, " "))
	}
	for _, u := range c.Unresolved() {
		lines = append(lines, "unresolved "+u.String())
	}
	return filepath.ToSlash(strings.Join(lines, "\n"))
}

const requiresNull = `terraform {
  required_providers {
    null = {
      source  = "hashicorp/null"
      version = "~> 3.0"
    }
  }
}
`

func TestReadConfiguration(t *testing.T) {
	const hashicorp = "registry.terraform.io/hashicorp/"
	for _, test := range []struct {
		rule  string
		files []string
		want  []string
	}{
		{"a source and a version", []string{"p/main.tf", requiresNull},
			[]string{hashicorp + "null@~> 3.0 of p/main.tf:3"}},
		{"a hostname", []string{"p/main.tf", "terraform {\n required_providers {\n  demo = { source = \"Registry.example.com/Acme/Demo\" }\n }\n}"},
			[]string{"registry.example.com/acme/demo of p/main.tf:3"}},
		{"a hostname without a dot", []string{"p/main.tf", "terraform {\n required_providers {\n  demo = { source = \"local/acme/demo\" }\n }\n}"},
			[]string{"local:443/acme/demo of p/main.tf:3"}},
		{"other arguments", []string{"p/main.tf", "terraform {\n required_providers {\n  demo = {\n   \"source\" = \"acme/demo\"\n   configuration_aliases = [demo.a, demo.b]\n   later = upper(\"x\")\n }\n }\n}"},
			[]string{"registry.terraform.io/acme/demo of p/main.tf:3"}},
		{"no source", []string{"p/main.tf", "terraform {\n required_providers {\n  aws = { version = \">= 5\" }\n }\n}"},
			[]string{hashicorp + "aws@>= 5 of p/main.tf:3"}},
		{"constraints alone, as in Terraform 0.12", []string{"p/main.tf", "terraform {\n required_providers {\n  aws = \">= 2\"\n }\n}"},
			[]string{hashicorp + "aws@>= 2 of p/main.tf:3"}},
		{"JSON", []string{"p/main.tf.json", "{\n\"terraform\": {\"required_providers\": {\n\"demo\": {\"source\": \"acme/demo\", \"version\": \"1.0.0\"}}},\n\"resource\": {\"aws_x\": {\"y\": {}}}}"},
			[]string{"registry.terraform.io/acme/demo@1.0.0 of p/main.tf.json:3", hashicorp + "aws of p/main.tf.json:4"}},
		{"in several files", []string{"p/a.tf", requiresNull, "p/b.tf", "terraform {\n required_providers {\n  aws = {}\n }\n}"},
			[]string{hashicorp + "aws of p/b.tf:3", hashicorp + "null@~> 3.0 of p/a.tf:3"}},
		{"temporary files of editors", []string{"p/a.tf", requiresNull, "p/.b.tf", "!", "p/c.tf~", "!", "p/#d.tf#", "!", "p/e.tf.bak", "!"},
			[]string{hashicorp + "null@~> 3.0 of p/a.tf:3"}},

		{"every kind of block that needs a provider, by the first of each", []string{"p/main.tf", `resource "aws_vpc" "x" {}
resource "aws_vpc" "y" {}
data "google_x" "x" {}
ephemeral "random_password" "x" {}
action "azurerm_x" "x" {}
provider "vault" {}
check "x" {
  data "http" "x" {}
}
`}, []string{
			hashicorp + "aws of p/main.tf:1", hashicorp + "azurerm of p/main.tf:5", hashicorp + "google of p/main.tf:3",
			hashicorp + "http of p/main.tf:8", hashicorp + "random of p/main.tf:4", hashicorp + "vault of p/main.tf:6",
		}},
		{"the argument provider", []string{"p/main.tf", `resource "a_x" "x" {
  provider = b.west
}
resource "a_x" "y" {
  provider = "c.west"
}
resource "a_x" "z" {
  provider = d.by_region[each.key]
}
resource "a_x" "w" {
  provider = e
}
`}, []string{hashicorp + "b of p/main.tf:1", hashicorp + "c of p/main.tf:4", hashicorp + "d of p/main.tf:7", hashicorp + "e of p/main.tf:10"}},
		{"the argument provider in JSON", []string{"p/main.tf.json", `{"resource": {"a_x": {"x": {"provider": "b.west"}, "y": {"provider": "${c.west}"}}}}`},
			[]string{hashicorp + "b of p/main.tf.json:1", hashicorp + "c of p/main.tf.json:1"}},
		{"the module's name for it", []string{"p/main.tf", "terraform {\n required_providers {\n  mine = { source = \"acme/demo\" }\n }\n}\nresource \"mine_x\" \"x\" {}\nprovider \"mine\" {}"},
			[]string{"registry.terraform.io/acme/demo of p/main.tf:3"}},
		{"a constraint in a provider block", []string{"p/main.tf", requiresNull + "provider \"null\" {\n version = \"!= 3.1.0\"\n}"},
			[]string{hashicorp + "null@~> 3.0, != 3.1.0 of p/main.tf:3 p/main.tf:9"}},
		{"providers built into clients", []string{"p/main.tf", "terraform {\n required_providers {\n  a = { source = \"terraform.io/builtin/terraform\" }\n }\n}\nresource \"terraform_data\" \"x\" {}\ndata \"terraform_remote_state\" \"x\" {}"},
			nil},
		{"a configuration on which terraform-config-inspect fails", []string{"p/main.tf", "variable \"x\" {\n default = 1e400\n sensitive = var.y\n}\n"},
			nil},

		{"an override, as a whole", []string{"p/a.tf", requiresNull, "p/b_override.tf", "terraform {\n required_providers {\n  null = { source = \"acme/null\" }\n }\n}"},
			[]string{"registry.terraform.io/acme/null of p/b_override.tf:3"}},
		{"an override of a call, in part", []string{"p/a.tf", "module \"x\" {\n source = \"./y\"\n}", "p/override.tf", "module \"x\" {\n source = \"./x\"\n}", "p/x/x.tf", requiresNull},
			[]string{hashicorp + "null@~> 3.0 of p/x/x.tf:3"}},

		{"local modules, all constraints together", []string{
			"p/main.tf", requiresNull + "module \"a\" {\n source = \"./a\"\n}\nmodule \"b\" {\n source = \"../b\"\n}",
			"p/a/a.tf", "module \"c\" {\n source = \"./c\"\n}", "p/a/c/c.tf", strings.Replace(requiresNull, "~> 3.0", "< 3.2", 1), "b/b.tf", requiresNull,
		}, []string{hashicorp + "null@~> 3.0, < 3.2 of p/main.tf:3 p/a/c/c.tf:3 b/b.tf:3"}},
		{"a local module twice", []string{"p/main.tf", "module \"a\" {\n source = \"./m\"\n}\nmodule \"b\" {\n source = \"./m\"\n}", "p/m/m.tf", requiresNull},
			[]string{hashicorp + "null@~> 3.0 of p/m/m.tf:3"}},
		{"a local module that does not exist", []string{"p/main.tf", "module \"a\" {\n source = \"./m\"\n}"},
			[]string{`unresolved p/main.tf:1: module "a": its folder p/m: it does not exist`}},
		{"a local module without files", []string{"p/main.tf", "module \"a\" {\n source = \"./m\"\n}", "p/m/README.md", ""},
			[]string{`unresolved p/main.tf:1: module "a": its folder p/m: there is no .tf file in it`}},
		{"a module without a source", []string{"p/main.tf", "module \"a\" {\n}"},
			[]string{`unresolved p/main.tf:1: module "a": it has no source in quotes: name the providers it needs yourself`}},

		{"modules from elsewhere", []string{"p/main.tf", "module \"vpc\" {\n source = \"terraform-aws-modules/vpc/aws\"\n version = \"~> 5.0\"\n}\nmodule \"named\" {\n source = \"./${var.which}\"\n}\nmodule \"git\" {\n source = \"git::https://example.com/a.git\"\n}\nmodule \"v\" {\n source = \"acme/v/any\"\n version = var.v\n}\nmodule \"w\" {\n source = \"acme/w/any\"\n version = \"newest\"\n}"},
			[]string{
				`unresolved p/main.tf:11: module "v": its version is not a string in quotes: name the module yourself`,
				`unresolved p/main.tf:15: module "w": "newest" is not a version constraint: `,
				`unresolved p/main.tf:1: module "vpc": registry.terraform.io/terraform-aws-modules/vpc/aws comes from a registry and was not looked into: mirror it too with --modules, name the providers it needs yourself, or let init write a lock file`,
				`unresolved p/main.tf:5: module "named": it has no source in quotes: name the providers it needs yourself`,
				`unresolved p/main.tf:8: module "git": git::https://example.com/a.git does not come from a registry and was not looked into: name the providers it needs yourself, or let init write a lock file`,
			}},
		{"a module that calls itself", []string{"p/a.tf", "module \"m\" {\n source = \"./m\"\n}", "p/m/m.tf", requiresNull + "module \"n\" {\n source = \"../m\"\n}\nmodule \"p\" {\n source = \"../\"\n}"},
			[]string{hashicorp + "null@~> 3.0 of p/m/m.tf:3"}},
		{"the modules that tests run", []string{
			"p/main.tf", requiresNull, "p/root.tftest.hcl", "provider \"null\" {}\nprovider \"vault\" {}",
			"p/tests/main.tftest.hcl", "mock_provider \"aws\" {}\nrun \"prepare\" {\n module {\n  source = \"./setup\"\n }\n}\nrun \"far\" {\n module {\n  source = \"acme/x/any\"\n }\n}\nrun \"this\" {\n}",
			"p/setup/main.tf", "provider \"tls\" {}",
			"p/setup/x.tftest.hcl", "run \"prepare\" {\n module {\n  source = \"./none\"\n }\n}",
		}, []string{
			hashicorp + "null@~> 3.0 of p/main.tf:3", hashicorp + "tls of p/setup/main.tf:1",
			`unresolved p/tests/main.tftest.hcl:8: the module of run "far": registry.terraform.io/acme/x/any comes from a registry and was not looked into: mirror it too with --modules, name the providers it needs yourself, or let init write a lock file`,
		}},
		{"queries, which init does not read", []string{"p/main.tf", requiresNull, "p/x.tfquery.hcl", "!"},
			[]string{hashicorp + "null@~> 3.0 of p/main.tf:3"}},

		{"invalid entries and expressions", []string{"p/main.tf", `terraform {
  required_providers {
    a = { source = "acme/.." }
    b = { source = "acme/b", version = "latest" }
    c = { source = "acme/c", version = var.c }
    d = { source = "acme/${var.d}" }
  }
}
provider "c" {}
resource "d_x" "x" {}
`}, []string{
			`unresolved p/main.tf:3: provider a: ".." is not a provider type: `,
			`unresolved p/main.tf:4: provider b: "latest" is not a version constraint: `,
			`unresolved p/main.tf:5: provider c: its version is not a string in quotes: name the provider yourself`,
			`unresolved p/main.tf:6: provider d: its source is not a string in quotes: name the provider yourself`,
		}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			got, err := readConfiguration(t, false, test.files...)
			if err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(got, "\n")
			if got == "" {
				lines = nil
			}
			if len(lines) != len(test.want) {
				t.Fatalf("got\n%s", got)
			}
			for i, want := range test.want {
				if lines[i] != want && !(strings.HasSuffix(want, ": ") && strings.HasPrefix(lines[i], want)) {
					t.Errorf("line %d is\n%s\nwant\n%s", i+1, lines[i], want)
				}
			}
		})
	}
}

func TestReadConfigurationOfOpenTofu(t *testing.T) {
	files := []string{
		"p/a.tf", requiresNull, "p/a.tofu", "provider \"tls\" {}",
		"p/b.tf.json", `{"provider": {"http": {}}}`, "p/b.tofu", "provider \"vault\" {}", // JSON is another name
		"p/c_override.tofu.json", `{"provider": {"random": {}}}`,
		"p/x.tftest.hcl", "!", "p/x.tofutest.hcl", "",
	}
	const host = "registry.opentofu.org/hashicorp/"
	want := strings.Join([]string{
		host + "http of p/b.tf.json:1", host + "random of p/c_override.tofu.json:1",
		host + "tls of p/a.tofu:1", host + "vault of p/b.tofu:1",
	}, "\n")
	if got, err := readConfiguration(t, true, files...); got != want || err != nil {
		t.Errorf("OpenTofu reads\n%s\n%v", got, err)
	}
	files[11], files[13] = "", "!"
	if got, err := readConfiguration(t, false, files...); err != nil || strings.Contains(got, ".tofu") || !strings.Contains(got, "null@~> 3.0") {
		t.Errorf("Terraform reads\n%s\n%v", got, err)
	}
}

func TestReadConfigurationFails(t *testing.T) {
	for _, test := range []struct {
		rule, says string
		files      []string
	}{
		{"no folder", "p: it does not exist", nil},
		{"no file", "p: there is no .tf file in it", []string{"p/README.md", ""}},
		{"files of OpenTofu only", "p: there is no .tf file in it, only .tofu files: read it as OpenTofu's", []string{"p/main.tofu", ""}},
		{"invalid HCL", "p/b.tf:2: ", []string{"p/a.tf", "", "p/b.tf", "\n{"}},
		{"invalid HCL in a module", "p/m/m.tf:1: ", []string{"p/a.tf", "module \"m\" {\n source = \"./m\"\n}", "p/m/m.tf", "{"}},
		{"invalid HCL in a test", "p/tests/a.tftest.hcl:1: ", []string{"p/a.tf", "", "p/tests/a.tftest.hcl", "{"}},
		{"one label too many", "p/a.tf:1: ", []string{"p/a.tf", "provider \"a\" \"b\" {\n}"}},
		{"a provider that is not an object", "p/a.tf:3: ", []string{"p/a.tf", "terraform {\n required_providers {\n  a = 1\n }\n}"}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			got, err := readConfiguration(t, false, test.files...)
			if err == nil || !strings.Contains(filepath.ToSlash(err.Error()), test.says) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}
