package moduledoc

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// rootOf reads the root module of some files, given as names and contents in turn.
func rootOf(t testing.TB, namesAndContents ...string) Module {
	t.Helper()
	c := collect(t, files(namesAndContents...), Collector{})
	return c.Package("").Root
}

func TestVariables(t *testing.T) {
	for _, test := range []struct {
		rule, native, json string
		want               Variable
	}{
		{"one without anything", `variable "a" {}`, `{"variable":{"a":{}}}`, Variable{Nullable: true}},
		{"on one line", `variable "a" { type = string }`, `{"variable":{"a":{"type":"string"}}}`, Variable{Type: "string", Nullable: true}},
		{"a label without quotes", `variable a { type = any }`, `{"variable":[{"a":[{"type":"any"}]}]}`, Variable{Type: "any", Nullable: true}},
		{"a type in quotes, as of old", `variable "a" { type = "list" }`, `{"variable":{"a":{"type":"list"}}}`, Variable{Type: "list", Nullable: true}},
		{"default null is a default", `variable "a" { default = null }`, `{"variable":{"a":{"default":null}}}`, Variable{Default: "null", Nullable: true}},
		{"a default", `variable "a" { default = { b = [1, "x", true] } }`, `{"variable":{"a":{"default":{ "b": [1, "x", true] }}}}`, Variable{Default: `{"b":[1,"x",true]}`, Nullable: true}},
		{"HTML in a default", `variable "a" { default = "<b>&" }`, `{"variable":{"a":{"default":"<b>&"}}}`, Variable{Default: `"<b>&"`, Nullable: true}},
		{"a number that is not one of a machine", `variable "a" { default = 1e400 }`, `{"variable":{"a":{"default":1e400}}}`, Variable{Default: "1e400", Nullable: true}},
		{"a number of gigabytes", `variable "a" { default = -1e999999999 }`, `{"variable":{"a":{"default":-1e999999999}}}`, Variable{Default: "-1e999999999", Nullable: true}},
		{"flags", "variable \"a\" {\nsensitive = true\nnullable = false\nephemeral = true\n}", `{"variable":{"a":{"sensitive":true,"nullable":false,"ephemeral":true}}}`, Variable{Sensitive: true, Ephemeral: true}},
		{"flags in quotes, as clients take them", `variable "a" { sensitive = "true" }`, `{"variable":{"a":{"sensitive":"true"}}}`, Variable{Sensitive: true, Nullable: true}},
		{"deprecated", `variable "a" { deprecated = "Use b." }`, `{"variable":{"a":{"deprecated":"Use b."}}}`, Variable{Deprecated: "Use b.", Nullable: true}},
		{"rules", "variable \"a\" {\nvalidation {\ncondition = var.a > 0\nerror_message = \"Too small.\"\n}\nvalidation {\nerror_message = \"Too ${var.b}.\"\n}\n}",
			`{"variable":{"a":{"validation":[{"condition":"${var.a > 0}","error_message":"Too small."},{"error_message":"\"Too ${var.b}.\""}]}}}`,
			Variable{Validations: []string{"Too small.", `"Too ${var.b}."`}, Nullable: true}},
		{"line breaks of Windows", "variable \"a\" {\r\ndescription = <<EOT\r\none\r\ntwo\r\nEOT\r\n}\r\n", "{\"variable\":\r\n{\"a\":{\"description\":\"one\\ntwo\\n\"}}}", Variable{Description: "one\ntwo\n", Nullable: true}},
		{"a byte order mark", "\uFEFFvariable \"a\" {}", "\uFEFF{\"variable\":{\"a\":{}}}", Variable{Nullable: true}},
	} {
		test.want.Name = "a"
		for file, content := range map[string]string{"main.tf": test.native, "main.tf.json": test.json} {
			m := rootOf(t, file, content)
			test.want.At = Position{file, m.Variables[0].At.Line}
			if len(m.Variables) != 1 || !reflect.DeepEqual(m.Variables[0], test.want) || m.Problems != nil {
				t.Errorf("%s: of %s got %+v, not %+v; problems %v", test.rule, file, m.Variables, test.want, m.Problems)
			}
		}
	}
}

func TestTypesAreAsTheyAreWritten(t *testing.T) {
	for _, test := range []struct{ rule, written, want string }{
		{"several lines lose the first one's indentation", "  type = object({\n    a = string # why\n    b = list(\n      string)\n  })\n", "object({\n  a = string # why\n  b = list(\n    string)\n})"},
		{"tabs", "\ttype = map(object({\n\t\ta = string\n\t}))\n", "map(object({\n\ta = string\n}))"},
		{"lines with less indentation", "    type = list(\n  string\n)\n", "list(\nstring\n)"},
		{"comments around it are not it", "type = /* which */ string // this\n", "string"},
		{"one that nobody understands", "type = nonsense(${\n", ""},
	} {
		m := rootOf(t, "main.tf", "variable \"a\" {\n"+test.written+"}\n")
		if test.want == "" {
			if len(m.Variables) != 1 || m.Problems == nil {
				t.Errorf("%s: got %+v", test.rule, m)
			}
			continue
		}
		if len(m.Variables) != 1 || m.Variables[0].Type != test.want {
			t.Errorf("%s: got %+v", test.rule, m.Variables)
		}
	}
}

func TestLiterals(t *testing.T) {
	for _, test := range []struct{ rule, written, want string }{
		{"an empty list", `[]`, `[]`},
		{"an empty object", `{}`, `{}`},
		{"a list on several lines", "[\n  1, # one\n\n  2,\n]", `[1,2]`},
		{"objects with all their separators", "{\n  a = 1 # one\n  b : 2, \"c d\" = 3\n  // four\n  4 = 4\n\n}", `{"a":1,"b":2,"c d":3,"4":4}`},
		{"parentheses", `((1))`, `1`},
		{"a negative number", `- 1.50`, `-1.50`},
		{"zeros that JSON has not", `[007, 0, 00.5, 0e1]`, `[7,0,0.5,0e1]`},
		{"escapes", `"a\n\t\"\\\u00e9$${b}%%{c}"`, `"a\n\t\"\\é${b}%{c}"`},
		{"control characters", `"\u0000"`, `"\u0000"`},
		{"a heredoc", "<<EOT\n  a\n b $${c}\nEOT", `"  a\n b ${c}\n"`},
		{"an indented heredoc", "<<-EOT\n    a\n\n      b\n    EOT", `"a\n\n  b\n"`},
		{"an empty heredoc", "<<-EOT\nEOT", `""`},
		{"two in a list", "[<<A\nx\nA\n, <<B\ny\nB\n]", `["x\n","y\n"]`},
		{"an interpolation", `"a ${b}"`, ""},
		{"a directive", `"%{if a}b%{endif}"`, ""},
		{"a reference", `[local.a]`, ""},
		{"a call", `upper("a")`, ""},
		{"an operation", `1 + 2`, ""},
		{"a key in parentheses", `{ (a) = 1 }`, ""},
		{"a key twice", `{ a = 1, a = 2 }`, ""},
		{"a name", `maybe`, ""},
		{"two values", `1 2`, ""},
		{"no separator", `[1 2]`, ""},
		{"no number, though it begins like one", `0E+0E0`, ""},
		{"only commas", `[,]`, ""},
		{"for expressions are not evaluated", `[for a in [1, 2, 3] : [for b in [1, 2, 3] : b]]`, ""},
		{"a wrong escape", `"\q"`, ""},
		{"as deep as is read", strings.Repeat("[", maxNesting) + strings.Repeat("]", maxNesting), strings.Repeat("[", maxNesting) + strings.Repeat("]", maxNesting)},
		{"deeper", strings.Repeat("[", maxNesting+1) + strings.Repeat("]", maxNesting+1), ""},
	} {
		m := rootOf(t, "main.tf", "variable \"a\" {\n  default = "+test.written+"\n}\n")
		want := test.want
		if want == "" {
			want = test.written
		}
		if len(m.Variables) != 1 || m.Variables[0].Default != want {
			t.Errorf("%s: got %+v, not %q", test.rule, m.Variables, want)
		}
	}
}

func TestOutputsAndCalls(t *testing.T) {
	native := `
output "o" {
  value       = { a = [for x in y : x] }
  description = "Its \"name\""
  sensitive   = true
  ephemeral   = true
  deprecated  = "Soon"
}
module "m" {
  source  = "acme/vpc/aws"
  version = "~> 1.0, != 1.2.3"
  nested  = { source = "no" }
}
module "local" { source = "./${var.where}" }
`
	json := `{
"output": {"o": {"value": "${1}", "description": "Its \"name\"", "sensitive": true, "ephemeral": true, "deprecated": "Soon"}},
"module": [{"m": {"source": "acme/vpc/aws", "version": "~> 1.0, != 1.2.3"}}, {"local": {"source": "\"./${var.where}\""}}]}`
	for file, content := range map[string]string{"main.tf": native, "main.tf.json": json} {
		m := rootOf(t, file, content)
		if want := []Output{{Name: "o", Description: `Its "name"`, Deprecated: "Soon", Sensitive: true, Ephemeral: true, At: Position{file, 2}}}; !reflect.DeepEqual(m.Outputs, want) {
			t.Errorf("%s: outputs %+v", file, m.Outputs)
		}
		if want := []Call{{"m", "acme/vpc/aws", "~> 1.0, != 1.2.3"}, {"local", `"./${var.where}"`, ""}}; !reflect.DeepEqual(m.Calls, want) || m.Problems != nil {
			t.Errorf("%s: calls %+v, problems %v", file, m.Calls, m.Problems)
		}
	}
}

func TestProviders(t *testing.T) {
	provider := func(name, source, version string) Provider { return Provider{name, source, version, ""} }
	for _, test := range []struct {
		rule, file, content string
		want                []Provider
	}{
		{"as they are required, by name", "main.tf", "terraform {\n required_providers {\n  b = { source = \"x/b\", version = \"1\" }\n  a = {\n   source : \"x/a\"\n   configuration_aliases = [a.two, a.one, # c\n a.one]\n  }\n }\n}",
			[]Provider{{"a", "x/a", "", "a.one, a.two"}, provider("b", "x/b", "1")}},
		{"without configurations that only a comment names", "main.tf", "terraform {\n required_providers {\n  a = {\n   configuration_aliases = [\n    a.one, # records of example.com, see docs/dns.md\n    # a.two,\n    /* a.three */ a.four,\n   ]\n  }\n }\n}",
			[]Provider{{"a", "hashicorp/a", "", "a.four, a.one"}}},
		{"with the configurations of both, if it is required twice", "main.tf", "terraform {\n required_providers {\n  a = { configuration_aliases = [a.two] }\n }\n}\nterraform {\n required_providers {\n  a = { configuration_aliases = [a.one] }\n }\n}",
			[]Provider{{"a", "hashicorp/a", "", "a.one, a.two"}}},
		{"in JSON", "main.tf.json", `{"terraform":[{"required_providers":[{"b":{"source":"x/b","version":"1"},"//":"no"}]},{"required_providers":{"a":{"source":"x/a","configuration_aliases":["a.one"]}}}]}`,
			[]Provider{{"a", "x/a", "", "a.one"}, provider("b", "x/b", "1")}},
		{"without a source, as clients derive it", "main.tf", `terraform { required_providers { aws = "~> 2.0" } }`, []Provider{provider("aws", "hashicorp/aws", "~> 2.0")}},
		{"with nothing", "main.tf", "terraform {\n required_providers {\n  aws = {}\n }\n}", []Provider{provider("aws", "hashicorp/aws", "")}},
		{"of a provider block", "main.tf", "provider \"aws\" {\n  version = \">= 2.7\"\n}\nprovider \"tls\" {}", []Provider{provider("aws", "hashicorp/aws", ">= 2.7"), provider("tls", "hashicorp/tls", "")}},
		{"of resources", "main.tf", "resource \"aws_vpc\" \"a\" {}\ndata \"http\" \"b\" {}\nephemeral \"vault_kv\" \"c\" {}", []Provider{provider("aws", "hashicorp/aws", ""), provider("http", "hashicorp/http", ""), provider("vault", "hashicorp/vault", "")}},
		{"that a resource names", "main.tf", `resource "aws_vpc" "a" { provider = other.alias }`, []Provider{provider("other", "hashicorp/other", "")}},
		{"that a resource names in quotes, as of old", "main.tf", `resource "aws_vpc" "a" { provider = "other.alias" }`, []Provider{provider("other", "hashicorp/other", "")}},
		{"that a resource names in JSON", "main.tf.json", `{"resource":{"aws_vpc":{"a":{"provider":"${other.alias}"}}}}`, []Provider{provider("other", "hashicorp/other", "")}},
		{"none that is built in", "main.tf", "resource \"terraform_data\" \"a\" {}\nterraform {\nrequired_providers {\nterraform = { source = \"terraform.io/builtin/terraform\" }\n}\n}", nil},
		{"required and used", "main.tf", "resource \"aws_vpc\" \"a\" {}\nterraform {\nrequired_providers {\naws = { source = \"acme/aws\" }\n}\n}", []Provider{provider("aws", "acme/aws", "")}},
		{"with all constraints", "main.tf", "provider \"aws\" {\n  version = \"< 6\"\n}\nterraform {\nrequired_providers {\naws = { version = \">= 5\" }\n}\n}", []Provider{provider("aws", "hashicorp/aws", ">= 5, < 6")}},
	} {
		m := rootOf(t, test.file, test.content)
		if !slices.Equal(m.Providers, test.want) || m.Problems != nil {
			t.Errorf("%s: got %+v, not %+v; problems %v", test.rule, m.Providers, test.want, m.Problems)
		}
	}
}

func TestRequiredVersions(t *testing.T) {
	m := rootOf(t, "a.tf", `terraform { required_version = ">= 1.5" }`, "b.tf.json", `{"terraform":{"required_version":"< 2"}}`)
	if m.RequiredVersion != ">= 1.5, < 2" {
		t.Errorf("got %q", m.RequiredVersion)
	}
	m = rootOf(t, "a.tf", `terraform { required_version = ">= 1.5" }`, "override.tf", `terraform { required_version = "< 1" }`)
	if m.RequiredVersion != "< 1" {
		t.Errorf("overridden: got %q", m.RequiredVersion)
	}
}

func TestOverrides(t *testing.T) {
	m := rootOf(t, "main.tf", `
terraform {
  required_providers {
    aws = { source = "acme/aws", version = "1" }
    tls = { version = "2" }
  }
}
variable "v" {
  type        = string
  description = "first"
  default     = "a"
  sensitive   = true
  validation { error_message = "rule" }
}
output "o" {
  value       = 1
  description = "first"
}
module "m" {
  source  = "a/b/c"
  version = "1"
}
resource "aws_vpc" "r" {}
`, "x_override.tf.json", `{
"terraform": {"required_providers": {"aws": {"source": "other/aws"}}},
"variable": {"v": {"default": "b", "validation": {"error_message": "none"}}},
"output": {"o": {"sensitive": true}},
"module": {"m": {"version": "2"}},
"resource": {"aws_vpc": {"r": {"provider": "google"}}}
}`)
	want := Module{
		Variables: []Variable{{Name: "v", Type: "string", Description: "first", Default: `"b"`, Sensitive: true, Nullable: true, Validations: []string{"rule"}, At: Position{"main.tf", 8}}},
		Outputs:   []Output{{Name: "o", Description: "first", Sensitive: true, At: Position{"main.tf", 15}}},
		Calls:     []Call{{"m", "a/b/c", "2"}},
		Resources: []Resource{{Managed, "aws_vpc", "r", "google", Position{"main.tf", 23}}},
		Providers: []Provider{{"aws", "other/aws", "", ""}, {"google", "hashicorp/google", "", ""}, {"tls", "hashicorp/tls", "2", ""}},
	}
	if !reflect.DeepEqual(m, want) {
		t.Errorf("got\n%+v\nnot\n%+v", m, want)
	}
}

// The valid parts of a broken module are read, and the other parts are problems.
func TestBrokenConfiguration(t *testing.T) {
	for _, test := range []struct {
		rule    string
		files   []string
		names   string // of the variables
		problem string // file:line: the beginning of its text
	}{
		{"a block that does not end", []string{"main.tf", "variable \"a\" {}\nvariable \"b\" {\n  type = string\n\nvariable \"c\" {}\n"}, "a b c", "main.tf:2: What begins here does not end"},
		{"a bracket that does not end", []string{"main.tf", "variable \"a\" {\n  default = [1,\n}\n\n# next\nvariable \"b\" {}\n"}, "a b", "main.tf:1: What begins here does not end"},
		{"a quote that does not end", []string{"main.tf", "variable \"a\" {\n  default = \"x\n}\nvariable \"b\" {}\n"}, "a b", "main.tf:1: What begins here does not end"},
		{"a heredoc that does not end", []string{"main.tf", "variable \"a\" {\n  default = <<EOT\n}\nvariable \"b\" {}\n"}, "a b", "main.tf:1: What begins here does not end"},
		{"what is no configuration", []string{"main.tf", "variable \"a\" {}\n<<<<<<< HEAD\nvariable \"b\" {}\n"}, "a b", "main.tf:2: An argument or a block is expected here."},
		{"an item without a value", []string{"main.tf", "variable \"a\" {}\nvariable\nvariable \"b\" {}\n"}, "a b", "main.tf:2: An argument or a block is expected here."},
		{"a bracket too many", []string{"main.tf", "variable \"a\" {}\n}\nvariable \"b\" {}\n"}, "a b", "main.tf:2: An argument or a block is expected here."},
		{"NUL bytes", []string{"main.tf", "\x00\x00\nvariable \"a\" {}\n"}, "a", "main.tf:1: An argument or a block is expected here."},
		{"text in another encoding", []string{"main.tf", "variable \"a\" {\n description = \"caf\xe9\"\n}\nvariable \"b\" {}"}, "a b", ""},
		{"no label", []string{"main.tf", "variable {}\nvariable \"a\" {}\n"}, "a", "main.tf:1: The number of labels of this variable block is 0 instead of 1."},
		{"a label with an interpolation", []string{"main.tf", "variable \"${b}\" {}\nvariable \"a\" {}\n"}, "a", "main.tf:1: An argument or a block is expected here."},
		{"something twice", []string{"a.tf", `variable "a" {}`, "b.tf", "\n\nvariable \"a\" {}"}, "a", "b.tf:3: The variable \"a\" is declared twice: clients reject the module."},
		{"an override of nothing", []string{"override.tf", `variable "a" {}`}, "a", "override.tf:1: There is no variable \"a\" to override: clients reject the module."},
		{"broken JSON", []string{"a.tf", `variable "a" {}`, "b.tf.json", "{\n\"variable\":\n{]\n}"}, "a", "b.tf.json:3: The file is not valid JSON:"},
		{"no JSON object", []string{"b.tf.json", "42"}, "", "b.tf.json:1: The file does not contain a JSON object."},
		{"JSON of another shape", []string{"b.tf.json", `{"variable":{"a":7,"b":[],"c":[[]],"d":{}},"output":"x","terraform":[1]}`}, "d", ""},
		{"nothing", []string{"main.tf", "", "b.tf", "\n# only this"}, "", ""},
		{"nothing in JSON", []string{"main.tf.json", ""}, "", "main.tf.json:1: The file is not valid JSON:"},
	} {
		m := rootOf(t, test.files...)
		var names []string
		for _, v := range m.Variables {
			names = append(names, v.Name)
		}
		got := ""
		if len(m.Problems) > 0 {
			got = fmt.Sprintf("%s:%d: %s", m.Problems[0].File, m.Problems[0].Line, m.Problems[0].Text)
		}
		if strings.Join(names, " ") != test.names || !strings.HasPrefix(got, test.problem) || test.problem == "" && got != "" {
			t.Errorf("%s: the variables are %q, and the problems %+v", test.rule, names, m.Problems)
		}
	}
}

// Long texts are cut, and the result is valid.
func TestLongTexts(t *testing.T) {
	long := strings.Repeat("é", maxText/2+100)
	m := rootOf(t, "main.tf", "variable \"a\" {\n  description = \""+long+"\"\n  default = [\""+long+"\"]\n}\n")
	v := m.Variables[0]
	if len(v.Description) > maxText+len("…") || len(v.Description) < maxText || strings.ContainsRune(v.Description, '\uFFFD') || !strings.HasSuffix(v.Description, "é…") {
		t.Errorf("the description has %d bytes and ends with %q", len(v.Description), v.Description[len(v.Description)-8:])
	}
	if len(v.Default) > maxText+len("…") || len(m.Problems) != 1 || !strings.Contains(m.Problems[0].Text, "is cut") {
		t.Errorf("the default has %d bytes, and the problems are %+v", len(v.Default), m.Problems)
	}
}

func TestConstraints(t *testing.T) {
	for written, want := range map[string]string{
		"":                                    "dynamic",
		"string":                              "string",
		"map(object({ a = optional(bool) }))": "map of object",
		"object({ a = optional(list(object({ b = optional(number, 1) })), []) })": "object",
		"object({ a = optional(string, 1, 2) })":                                  "",
		"object({ a = optional(string, 1e999999999) })":                           "object", // as text, the number has a gigabyte
		"object({ a = optional(any, " + strings.Repeat("[for a in [0,1,2,3,4,5,6,7,8,9] : ", 20) + "a" + strings.Repeat("]", 20) + ") })": "object",
		"list":                        "list of dynamic",
		"map":                         "map of dynamic",
		"set":                         "", // clients refuse it
		"nonsense":                    "",
		"[":                           "",
		strings.Repeat("list(", 5000): "",
	} {
		v := Variable{Type: written}
		constraint, err := v.Constraint()
		if (err != nil) != (want == "") || err == nil && constraint.FriendlyName() != want {
			t.Errorf("of %.50q got %v, %v", written, constraint, err)
		}
	}
}
