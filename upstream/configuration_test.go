package upstream

import (
	"path/filepath"
	"strings"
	"testing"

	svchost "github.com/hashicorp/terraform-svchost"
	"github.com/spf13/afero"
)

// requirements reads a configuration given as names and contents of its files,
// and returns it as text: a line for each requirement, then for what is not
// resolved.
func requirements(t *testing.T, c Configuration, files ...string) (string, error) {
	t.Helper()
	c.Fs = afero.NewMemMapFs()
	for i := 0; i < len(files); i += 2 {
		if err := afero.WriteFile(c.Fs, filepath.FromSlash(files[i]), []byte(files[i+1]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	found, unresolved, err := c.Requirements("p")
	var lines []string
	for _, r := range found {
		lines = append(lines, r.String()+" of "+strings.Join(r.From, " "))
	}
	for _, u := range unresolved {
		lines = append(lines, "unresolved "+u.String())
	}
	return strings.Join(lines, "\n"), err
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

func TestWhatAConfigurationRequires(t *testing.T) {
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
		{"other arguments", []string{"p/main.tf", "terraform {\n required_providers {\n  demo = {\n   \"source\" = \"acme/demo\"\n   configuration_aliases = [demo.a, demo.b]\n   later = upper(\"x\")\n }\n }\n}"},
			[]string{"registry.terraform.io/acme/demo of p/main.tf:3"}},
		{"no source", []string{"p/main.tf", "terraform {\n required_providers {\n  aws = { version = \">= 5\" }\n }\n}"},
			[]string{hashicorp + "aws@>= 5 of p/main.tf:3"}},
		{"the way of Terraform 0.12", []string{"p/main.tf", "terraform {\n required_providers {\n  aws = \">= 2\"\n }\n}"},
			[]string{hashicorp + "aws@>= 2 of p/main.tf:3"}},
		{"JSON", []string{"p/main.tf.json", "{\n\"terraform\": {\"required_providers\": {\n\"demo\": {\"source\": \"acme/demo\", \"version\": \"1.0.0\"}}},\n\"resource\": {\"aws_x\": {\"y\": {}}}}"},
			[]string{"registry.terraform.io/acme/demo@1.0.0 of p/main.tf.json:3", hashicorp + "aws of p/main.tf.json:4"}},
		{"in several files", []string{"p/a.tf", requiresNull, "p/b.tf", "terraform {\n required_providers {\n  aws = {}\n }\n}"},
			[]string{hashicorp + "aws of p/b.tf:3", hashicorp + "null@~> 3.0 of p/a.tf:3"}},
		{"what editors leave behind is none", []string{"p/a.tf", requiresNull, "p/.b.tf", "!", "p/c.tf~", "!", "p/#d.tf#", "!", "p/e.tf.bak", "!"},
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
import {
  to = tls_private_key.x["a"]
}
`}, []string{
			hashicorp + "aws of p/main.tf:1", hashicorp + "azurerm of p/main.tf:5", hashicorp + "google of p/main.tf:3",
			hashicorp + "http of p/main.tf:8", hashicorp + "random of p/main.tf:4", hashicorp + "tls of p/main.tf:10", hashicorp + "vault of p/main.tf:6",
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
		{"what clients bring along", []string{"p/main.tf", "terraform {\n required_providers {\n  a = { source = \"terraform.io/builtin/terraform\" }\n }\n}\nresource \"terraform_data\" \"x\" {}\ndata \"terraform_remote_state\" \"x\" {}"},
			nil},
		{"what other tools stumble over", []string{"p/main.tf", "variable \"x\" {\n default = 1e400\n sensitive = var.y\n}\n"},
			nil},

		{"an override, as a whole", []string{"p/a.tf", requiresNull, "p/b_override.tf", "terraform {\n required_providers {\n  null = { source = \"acme/null\" }\n }\n}"},
			[]string{"registry.terraform.io/acme/null of p/b_override.tf:3"}},
		{"an override of a resource, in part", []string{"p/a.tf", "resource \"a_x\" \"x\" {\n provider = b\n}\nresource \"a_x\" \"y\" {\n}", "p/override.tf", "resource \"a_x\" \"x\" {\n}\nresource \"a_x\" \"y\" {\n provider = c\n}"},
			[]string{hashicorp + "b of p/a.tf:1", hashicorp + "c of p/override.tf:3"}},
		{"an override of a call, in part", []string{"p/a.tf", "module \"x\" {\n source = \"./y\"\n}", "p/override.tf", "module \"x\" {\n source = \"./x\"\n}", "p/x/x.tf", requiresNull},
			[]string{hashicorp + "null@~> 3.0 of p/x/x.tf:3"}},

		{"local modules, all constraints together", []string{
			"p/main.tf", requiresNull + "module \"a\" {\n source = \"./a\"\n}\nmodule \"b\" {\n source = \"../b\"\n}",
			"p/a/a.tf", "module \"c\" {\n source = \"./c\"\n}", "p/a/c/c.tf", strings.Replace(requiresNull, "~> 3.0", "< 3.2", 1), "b/b.tf", requiresNull,
		}, []string{hashicorp + "null@~> 3.0, < 3.2 of p/main.tf:3 p/a/c/c.tf:3 b/b.tf:3"}},
		{"a local module twice", []string{"p/main.tf", "module \"a\" {\n source = \"./m\"\n}\nmodule \"b\" {\n source = \"./m\"\n}", "p/m/m.tf", requiresNull},
			[]string{hashicorp + "null@~> 3.0 of p/m/m.tf:3"}},
		{"a local module that is not there", []string{"p/main.tf", "module \"a\" {\n source = \"./m\"\n}"},
			[]string{`unresolved p/main.tf:1: module "a": its folder p/m does not exist`}},
		{"a local module without files", []string{"p/main.tf", "module \"a\" {\n source = \"./m\"\n}", "p/m/README.md", ""},
			[]string{`unresolved p/main.tf:1: module "a": its folder p/m: there is no .tf file in it`}},
		{"a module without a source", []string{"p/main.tf", "module \"a\" {\n}"},
			[]string{`unresolved p/main.tf:1: module "a": it has no source`}},

		{"modules that are not installed", []string{"p/main.tf", "module \"vpc\" {\n source = \"terraform-aws-modules/vpc/aws\"\n version = \"~> 5.0\"\n}\nmodule \"git\" {\n source = \"git::https://example.com/x.git\"\n}"},
			[]string{
				"unresolved p/main.tf:1: module \"vpc\": terraform-aws-modules/vpc/aws is not installed: run `terraform get` first",
				"unresolved p/main.tf:5: module \"git\": git::https://example.com/x.git is not installed: run `terraform get` first",
			}},
		{"modules that are installed, and local ones in them", []string{
			"p/main.tf", "module \"vpc\" {\n source = \"terraform-aws-modules/vpc/aws\"\n version = \"~> 5.0\"\n}\nmodule \"git\" {\n source = \"example.com/x.git//sub\"\n}\nmodule \"named\" {\n source = \"./${var.which}\"\n version = var.x\n}",
			"p/.terraform/modules/modules.json", `{"Modules":[{"Key":"","Source":"","Dir":"."},
{"Key":"vpc","Source":"registry.terraform.io/terraform-aws-modules/vpc/aws","Version":"5.1.0","Dir":".terraform/modules/vpc"},
{"Key":"vpc.in","Source":"./in","Dir":".terraform/modules/vpc/in"},
{"Key":"vpc.in.deep","Source":"registry.terraform.io/acme/deep/any","Version":"1.0.0","Dir":".terraform/modules/vpc.in.deep"},
{"Key":"git","Source":"git::https://example.com/x.git//sub","Dir":".terraform/modules/git/sub"},
{"Key":"named","Source":"./m","Dir":"m"}]}`,
			"p/.terraform/modules/vpc/main.tf", "module \"in\" {\n source = \"./in\"\n}",
			"p/.terraform/modules/vpc/in/main.tf", "module \"deep\" {\n source = \"acme/deep/any\"\n}",
			"p/.terraform/modules/vpc.in.deep/main.tf", requiresNull,
			"p/.terraform/modules/git/sub/main.tf", "provider \"tls\" {}",
			"p/m/main.tf", "provider \"http\" {}",
		}, []string{
			hashicorp + "http of p/m/main.tf:1", hashicorp + "null@~> 3.0 of p/.terraform/modules/vpc.in.deep/main.tf:3",
			hashicorp + "tls of p/.terraform/modules/git/sub/main.tf:1",
		}},
		{"modules that were installed for another call", []string{
			"p/main.tf", "module \"a\" {\n source = \"acme/a/any\"\n version = \"~> 2.0\"\n}\nmodule \"b\" {\n source = \"acme/b/any\"\n}",
			"p/.terraform/modules/modules.json", `{"Modules":[
{"Key":"a","Source":"registry.terraform.io/acme/a/any","Version":"1.0.0","Dir":".terraform/modules/a"},
{"Key":"b","Source":"registry.terraform.io/acme/c/any","Version":"1.0.0","Dir":".terraform/modules/b"}]}`,
			"p/.terraform/modules/a/main.tf", requiresNull, "p/.terraform/modules/b/main.tf", requiresNull,
		}, []string{
			"unresolved p/main.tf:1: module \"a\": what is installed is another module than acme/a/any, or another version: run `terraform get` first",
			"unresolved p/main.tf:5: module \"b\": what is installed is another module than acme/b/any, or another version: run `terraform get` first",
		}},

		{"the modules that tests run", []string{
			"p/main.tf", requiresNull, "p/root.tftest.hcl", "provider \"null\" {}\nprovider \"vault\" {}",
			"p/tests/main.tftest.hcl", "mock_provider \"aws\" {}\nrun \"prepare\" {\n module {\n  source = \"./setup\"\n }\n}\nrun \"far\" {\n module {\n  source = \"acme/x/any\"\n }\n}\nrun \"this\" {\n}",
			"p/setup/main.tf", "provider \"tls\" {}", "p/.terraform/modules/modules.json",
			`{"Modules":[{"Key":"test.tests.main.far","Source":"registry.terraform.io/acme/x/any","Version":"1.0.0","Dir":".terraform/modules/x"}]}`,
			"p/.terraform/modules/x/main.tf", "provider \"http\" {}",
			"p/setup/x.tftest.hcl", "provider \"nobody\" {}",
		}, []string{
			hashicorp + "http of p/.terraform/modules/x/main.tf:1",
			hashicorp + "null@~> 3.0 of p/main.tf:3", hashicorp + "tls of p/setup/main.tf:1",
		}},
		{"queries are not for init", []string{"p/main.tf", requiresNull, "p/x.tfquery.hcl", "!"},
			[]string{hashicorp + "null@~> 3.0 of p/main.tf:3"}},
		{"an import of what is there", []string{"p/a.tf", "import {\n to = a_x.x[\"y\"]\n}\nimport {\n to = module.m.a_x.x\n}\nimport {\n for_each = var.b\n to = b_x.x[each.key]\n}", "p/b.tf", "resource \"a_x\" \"x\" {\n provider = c\n}\nresource \"b_x\" \"x\" {\n provider = c\n}"},
			[]string{hashicorp + "c of p/b.tf:1"}},
		{"an import in JSON", []string{"p/a.tf.json", `{"import": [{"to": "a_x.x[0]"}, {"to": "b_x.x"}], "resource": {"a_x": {"x": {"provider": "c"}}}}`},
			[]string{hashicorp + "b of p/a.tf.json:1", hashicorp + "c of p/a.tf.json:1"}},

		{"what is no provider, and expressions", []string{"p/main.tf", `terraform {
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
			got, err := requirements(t, Configuration{}, test.files...)
			if err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(got, "\n")
			if got == "" {
				lines = nil
			}
			if len(lines) != len(test.want) {
				t.Fatalf("it is\n%s", got)
			}
			for i, want := range test.want {
				if lines[i] != want && !(strings.HasSuffix(want, ": ") && strings.HasPrefix(lines[i], want)) {
					t.Errorf("line %d is\n%s\nand not\n%s", i+1, lines[i], want)
				}
			}
		})
	}
}

func TestConfigurationsOfOpenTofu(t *testing.T) {
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
	if got, err := requirements(t, Configuration{Tofu: true}, files...); got != want || err != nil {
		t.Errorf("OpenTofu reads\n%s\n%v", got, err)
	}
	files[11], files[13] = "", "!"
	if got, err := requirements(t, Configuration{}, files...); err != nil || strings.Contains(got, ".tofu") || !strings.Contains(got, "null@~> 3.0") {
		t.Errorf("Terraform reads\n%s\n%v", got, err)
	}
	got, err := requirements(t, Configuration{Tofu: true, DefaultHost: svchost.Hostname("registry.example.com")}, "p/a.tofu", "provider \"tls\" {}\nmodule \"a\" {\n source = \"acme/a/any\"\n}")
	if want := "registry.example.com/hashicorp/tls of p/a.tofu:1\nunresolved p/a.tofu:2: module \"a\": acme/a/any is not installed: run `tofu get` first"; got != want || err != nil {
		t.Errorf("with another default it is\n%s\n%v", got, err)
	}
}

func TestConfigurationsThatNoClientReads(t *testing.T) {
	for _, test := range []struct {
		rule, says string
		files      []string
	}{
		{"no folder", "not exist", nil},
		{"no file", "p: there is no .tf file in it", []string{"p/README.md", ""}},
		{"files of OpenTofu only", "p: it has .tofu files only: read it as OpenTofu's", []string{"p/main.tofu", ""}},
		{"no HCL", "p/b.tf:2: ", []string{"p/a.tf", "", "p/b.tf", "\n{"}},
		{"no HCL in a module", "p/m/m.tf:1: ", []string{"p/a.tf", "module \"m\" {\n source = \"./m\"\n}", "p/m/m.tf", "{"}},
		{"no HCL in a test", "p/tests/a.tftest.hcl:1: ", []string{"p/a.tf", "", "p/tests/a.tftest.hcl", "{"}},
		{"a label too many", "p/a.tf:1: ", []string{"p/a.tf", "provider \"a\" \"b\" {\n}"}},
		{"a provider that is no object", "p/a.tf:3: ", []string{"p/a.tf", "terraform {\n required_providers {\n  a = 1\n }\n}"}},
		{"a provider twice", "p/b.tf:3: provider null is declared at p/a.tf:3 already", []string{"p/a.tf", requiresNull, "p/b.tf", requiresNull}},
		{"a call twice", "p/a.tf:2: module \"m\" is called at p/a.tf:1 already", []string{"p/a.tf", "module \"m\" {}\nmodule \"m\" {}"}},
		{"a module that calls itself", "p/m/m.tf:1: module \"n\" calls itself", []string{"p/a.tf", "module \"m\" {\n source = \"./m\"\n}", "p/m/m.tf", "module \"n\" {\n source = \"../m\"\n}"}},
		{"a broken note of what is installed", "modules.json: ", []string{"p/a.tf", "", "p/.terraform/modules/modules.json", "{"}},
		{"modules without end", "p: more than 10000 modules are called", doubling(16)},
	} {
		t.Run(test.rule, func(t *testing.T) {
			got, err := requirements(t, Configuration{}, test.files...)
			if err == nil || !strings.Contains(filepath.ToSlash(err.Error()), test.says) {
				t.Errorf("it is %q, %v", got, err)
			}
		})
	}
}

// doubling is a configuration whose modules all call the next one twice.
func doubling(depth int) []string {
	var files []string
	for dir := "p"; depth > 0; depth-- {
		files = append(files, dir+"/a.tf", "module \"a\" {\n source = \"./m\"\n}\nmodule \"b\" {\n source = \"./m\"\n}")
		dir += "/m"
	}
	return files
}

// Nothing in a file makes it take long, or fail without saying where.
func FuzzParseModuleFile(f *testing.F) {
	f.Add(requiresNull, false)
	f.Add("resource \"a_x\" \"x\" {\n provider = d.by_region[each.key]\n}\nimport {\n to = a_x.x\n}\nmodule \"m\" {\n source = \"./m\"\n}", false)
	f.Add("run \"x\" {\n module {\n source = \"./m\"\n}\n}\ncheck \"x\" {\n data \"http\" \"x\" {\n}\n}", false)
	f.Add(`{"terraform": {"required_providers": {"demo": {"source": "acme/demo", "version": "${var.x}"}}}, "provider": {"x": [{}]}, "module": {"m": {"source": "./m"}}}`, true)
	f.Fuzz(func(t *testing.T, content string, json bool) {
		name, schema := "main.tf", moduleFileSchema
		if strings.Contains(content, "run") {
			schema = testSchema
		}
		if json {
			name += ".json"
		}
		m, err := parseModuleFile(name, []byte(content), schema)
		if err != nil {
			if !strings.HasPrefix(err.Error(), name+":") {
				t.Fatal(err)
			}
			return
		}
		for _, d := range m.declared {
			if !strings.HasPrefix(d.from, name+":") {
				t.Fatalf("it is from %q", d.from)
			}
		}
		for _, call := range m.calls {
			if !strings.HasPrefix(call.from, name+":") {
				t.Fatalf("it is from %q", call.from)
			}
		}
	})
}
