package moduledoc

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// refusedOf lists the files of a package that clients refuse, as FILE:LINE.
func refusedOf(t *testing.T, fsys fstest.MapFS, folder string) []string {
	t.Helper()
	c := collect(t, fsys, Collector{Short: true})
	var places []string
	for _, p := range c.Package(folder).Refused {
		places = append(places, fmt.Sprintf("%s:%d", p.File, p.Line))
	}
	return places
}

func TestWhatClientsRefuse(t *testing.T) {
	for _, test := range []struct {
		rule  string
		files fstest.MapFS
		want  []string
	}{
		{"a module", files("main.tf", "variable \"a\" {\n  type = string\n}\n"), nil},
		{"an empty file", files("main.tf", ""), nil},
		{"an argument without a value", files("main.tf", "variable \"a\" {\n  type =\n}\n"), []string{"main.tf:2"}},
		{"an unfinished sum", files("main.tf", "locals {\n  a = 1 +\n}\n"), []string{"main.tf:2"}},
		{"an argument that is there twice", files("main.tf", "locals {\n  a = 1\n  a = 2\n}\n"), []string{"main.tf:3"}},
		{"a block that does not end", files("main.tf", "locals {\n  a = 1\n"), []string{"main.tf:1"}},
		{"a heredoc that does not end", files("main.tf", "locals {\n  a = <<E\nx\n}\n"), []string{"main.tf:5"}},
		{"what is no configuration", files("main.tf", "<html>"), []string{"main.tf:1"}},
		{"a submodule", files("main.tf", "", "modules/a/main.tf", "a ="), []string{"modules/a/main.tf:1"}},
		{"an example", files("main.tf", "", "examples/a/main.tf", "\na ="), []string{"examples/a/main.tf:2"}},
		{"no folder that no client is sent to", files("main.tf", "", "test/fixtures/main.tf", "a =", "modules/a/templates/main.tf", "a =", "modules/main.tf", "a ="), nil},
		{"no file that clients skip", files("main.tf", "", ".main.tf", "a =", "main.tf~", "a =", "main.tf.tmpl", "a =", "a.tfvars", "a =", "a.tftest.hcl", "a ="), nil},
		{"JSON", files("main.tf.json", "{\n  \"variable\": {\"a\": {}\n"), []string{"main.tf.json:2"}},
		{"JSON that is no object", files("main.tf.json", `"a"`), []string{"main.tf.json:1"}},
		{"JSON with a comment and a block twice", files("main.tf.json", `{"//": "x", "variable": {"a": {}}, "variable": {"b": {}}}`), nil},
		{"a file that OpenTofu alone reads", files("main.tf", "", "a.tofu", "a =", "b.tofu.json", "{"), []string{"a.tofu:1", "b.tofu.json:1"}},
		{"a file that Terraform alone reads", files("a.tf", "a =", "a.tofu", "locals {}"), []string{"a.tf:1"}},
		{"what OpenTofu alone has", files("main.tofu", "terraform {\n  encryption {\n    key_provider \"pbkdf2\" \"a\" {}\n  }\n}\nprovider \"aws\" {\n  for_each = var.regions\n  alias = \"by_region\"\n}\nresource \"a\" \"b\" {\n  provider = aws.by_region[each.key]\n  lifecycle {\n    enabled = var.on\n  }\n}\n"), nil},
		{"what newer clients have", files("main.tf", "action \"a\" \"b\" {}\nlist \"a\" \"b\" {}\nephemeral \"a\" \"b\" {}\nnew \"thing\" {\n  on = { a = provider::x::y(1) }\n}\n"), nil},
		{"a version of Terraform that nobody has", files("main.tf", "terraform {\n  required_version = \">= 99\"\n}\n"), nil},
		{"the first error of each file", files("a.tf", "a =\n\nb =\n", "b.tf", "c ="), []string{"a.tf:1", "b.tf:1"}},
		{"a BOM and the ends of lines that Windows writes", files("main.tf", "\uFEFFlocals {\r\n  a = 1\r\n}\r\n"), nil},
	} {
		if got := refusedOf(t, test.files, ""); !slices.Equal(got, test.want) {
			t.Errorf("%s: refused are %q, not %q", test.rule, got, test.want)
		}
	}
	if got := refusedOf(t, files("vpc-1/main.tf", "a ="), "vpc-1"); !slices.Equal(got, []string{"main.tf:1"}) {
		t.Errorf("in the one folder: refused are %q", got)
	}
}

// Of several files of the same name, clients use the last.
func TestClientsRefuseTheLastOfSeveralFiles(t *testing.T) {
	for _, contents := range [][]string{{"a =", "locals {}"}, {"locals {}", "a ="}} {
		c := Collector{Short: true}
		for _, content := range contents {
			if err := c.Add("main.tf", strings.NewReader(content)); err != nil {
				t.Fatal(err)
			}
		}
		if refused := c.Package("").Refused; (len(refused) > 0) != (contents[1] == "a =") {
			t.Errorf("of %q it refuses %v", contents, refused)
		}
	}
}

// The sentences are the clients' own.
func TestWhyClientsRefuse(t *testing.T) {
	c := collect(t, files("main.tf", "locals {\n  a = 1\n  a = 2\n}\n"), Collector{Short: true})
	s := c.Summary("")
	want := []Problem{{"main.tf", 3, `Attribute redefined: The argument "a" was already set at main.tf:2,3-4. Each argument may be set only once.`}}
	if !slices.Equal(s.Refused, want) || s.RefusedTotal != 1 {
		t.Errorf("it is %+v of %d", s.Refused, s.RefusedTotal)
	}
}

// Files that would cost the clients' parser too much are not judged, and cost little.
func TestFilesThatAreNotJudged(t *testing.T) {
	const size = maxJudged - 100
	fill := func(s string) string { return strings.Repeat(s, size/len(s)) }
	for name, content := range map[string]string{
		"brackets": "a = " + fill("("), "lists": "a = " + fill("["), "objects": "a = " + fill("{a="), "blocks": fill("a {\n"),
		"calls": "a = " + fill("f("), "loops": "a = " + fill("[for a in "), "strings": "a = " + fill(`"${`),
		"not": "a = " + fill("!"), "not, on lines": "a = (" + fill("!\n"), "minus": "a = " + fill("- "), "conditions": "a = " + fill("b?c:"),
		"splats": "a = b" + fill("[*]") + "\nb =\n", "splats, on lines": "a = (b" + fill("[\n*]"), "conditions in a string": `a = "` + fill("%{if b}"),
		"loops in a heredoc": "a = <<E\n" + fill("%{for b in c}"),
		"lines of a heredoc": "a = <<E\n" + fill("x\n") + "E\n", "a heredoc that does not end": fill("a = <<E\n"),
		"expressions in a heredoc": "a = <<E\n" + fill(" ${b}\n") + "E\nb =\n", "expressions after a text": "a = <<E\n" + strings.Repeat("x\n", 10_000) + fill("${b}")[20_000:] + "\nE\nb =\n",
		"names of functions": "a = b" + fill("::c") + "()",
		"a larger file":      fill("#\n") + fill("#\n") + "a =\n",
	} {
		t.Run(name, func(t *testing.T) {
			if got := refusedOf(t, files("main.tf", content), ""); got != nil {
				t.Errorf("it is judged: %q", got)
			}
		})
	}
	for name, content := range map[string]string{"arrays": fill("["), "objects": fill(`{"a":`), "a larger file": `{"a":"` + fill("a") + fill("a")} {
		t.Run("JSON of "+name, func(t *testing.T) {
			if got := refusedOf(t, files("main.tf.json", content), ""); got != nil {
				t.Errorf("it is judged: %q", got)
			}
		})
	}
	t.Run("all files together", func(t *testing.T) {
		heredoc := "a = <<E\n" + strings.Repeat("x\n", 5000) + "E\nb =\n" // less than a third of the effort that is left
		fsys := make(fstest.MapFS)
		for i := range 9 {
			fsys[fmt.Sprintf("%d.tf", i)] = &fstest.MapFile{Data: []byte(heredoc)}
		}
		if got := refusedOf(t, fsys, ""); len(got) < 2 || len(got) == len(fsys) {
			t.Errorf("%d of %d are judged", len(got), len(fsys))
		}
	})
}
