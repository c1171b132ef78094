package lockfile

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// The records of the configuration in TestRecordedCalls, with the keys that Terraform 1.11 and
// OpenTofu 1.12 give to such calls.
const recordsJSON = `{"Modules":[{"Key":"","Source":"","Dir":"."},
{"Key":"b","Source":"git::https://example.com/a.git","Dir":".terraform/modules/b"},
{"Key":"b.deep","Source":"./sub","Dir":".terraform/modules/b/sub"},
{"Key":"local","Source":"./local","Dir":"local"},
{"Key":"local.b","Source":"git::https://example.com/a.git","Dir":".terraform/modules/local.b"},
{"Key":"vpc","Source":"registry.terraform.io/acme/vpc/aws","Version":"1.0.0","Dir":".terraform/modules/vpc"},
{"Key":"vpc.c","Source":"./c","Dir":".terraform/modules/vpc/c"},
{"Key":"vpc.c.b","Source":"git::https://example.com/a.git","Dir":".terraform/modules/vpc.c.b"},
{"Key":"test.root.prepare","Source":"./setup","Dir":"setup"},
{"Key":"test.root.prepare.b","Source":"git::https://example.com/a.git","Dir":".terraform/modules/test.root.prepare.b"},
{"Key":"test.tests.a.prepare","Source":"registry.terraform.io/acme/x/any","Version":"1.0.0","Dir":".terraform/modules/test.tests.a.prepare"},
{"Key":"test.tests.j.tftest.json.prepare","Source":"registry.terraform.io/acme/x/any","Version":"1.0.0","Dir":".terraform/modules/test.tests.j.tftest.json.prepare"}]}`

// A call is recorded if modules.json has its key, wherever the call is.
func TestRecordedCalls(t *testing.T) {
	module := func(name, source string) string {
		return fmt.Sprintf("module %q {\n source = %q\n}\n", name, source)
	}
	const git, x = "git::https://example.com/a.git", "acme/x/any"
	main := module("b", git) + module("local", "./local") + module("vpc", "acme/vpc/aws")
	prepare := "run \"prepare\" {\n module {\n  source = \"%s\"\n }\n}\n"
	for _, test := range []struct {
		rule  string
		files []string // in place of the others
		want  []string // calls without a record
	}{
		{"all, as init has written them", nil, nil},
		{"no modules.json", []string{"p/" + InstalledName, ""}, []string{"acme/vpc/aws", x, "p/local/main.tf:1", "p/main.tf:1", "p/setup/main.tf:1", "vpc//c/main.tf:1"}},
		{"a new call", []string{"p/main.tf", main + module("new", git)}, []string{"p/main.tf:10"}},
		{"a new call in a local module", []string{"p/local/main.tf", module("b", git) + module("new", git)}, []string{"p/local/main.tf:4"}},
		{"a local module that is called once more", []string{"p/main.tf", main + module("again", "./local")}, []string{"p/local/main.tf:1"}},
		{"a module of a registry that is called once more", []string{"p/main.tf", main + module("again", "acme/vpc/aws")}, []string{"acme/vpc/aws", "vpc//c/main.tf:1"}},
		{"another name", []string{"p/main.tf", strings.Replace(main, `"local"`, `"other"`, 1)}, []string{"p/local/main.tf:1"}},
		{"a registry's module in place of one from elsewhere", []string{"p/main.tf", strings.Replace(main, git, x, 1)}, []string{x}},
		{"one from elsewhere in place of a local module", []string{"p/main.tf", strings.Replace(main, "./local", git, 1)}, []string{"p/main.tf:4"}},
		{"an expression, which may lead to what is recorded", []string{"p/main.tf", strings.Replace(main, `"./local"`, "var.x", 1)}, nil},
		{"another module of the registry", []string{"p/main.tf", strings.Replace(main, "acme/vpc/aws", "acme/other/aws", 1)}, []string{"acme/other/aws"}},
		{"constraints that do not allow what is installed", []string{"p/tests/a.tftest.hcl", strings.Replace(fmt.Sprintf(prepare, x), "\n }", "\n  version = \"2.0.0\"\n }", 1)}, []string{x + "@2.0.0"}},
		{"another run", []string{"p/tests/a.tftest.hcl", strings.Replace(fmt.Sprintf(prepare, x), "prepare", "other", 1)}, []string{x}},
		{"a module that calls itself", []string{"p/local/main.tf", module("b", git) + module("itself", "../local")}, nil},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Chdir(t.TempDir())
			files := []string{
				"p/main.tf", main, "p/local/main.tf", module("b", git), "p/setup/main.tf", module("b", git),
				"p/root.tftest.hcl", fmt.Sprintf(prepare, "./setup"), "p/tests/a.tftest.hcl", fmt.Sprintf(prepare, x),
				"p/tests/j.tftest.json", `{"run":{"prepare":{"module":{"source":"acme/x/any"}}}}`,
				"p/" + InstalledName, recordsJSON,
			}
			for i := 0; i < len(test.files); i += 2 {
				at := slices.Index(files, test.files[i])
				if files[at+1] = test.files[i+1]; files[at+1] == "" {
					files = slices.Delete(files, at, at+2)
				}
			}
			writeFiles(t, files)
			c, err := ReadConfiguration("p", false)
			if err != nil {
				t.Fatal(err)
			}
			var all []ModuleCall
			for calls := c.Calls(); len(calls) > 0; calls = c.Calls() {
				all = append(all, calls...)
				for _, call := range calls {
					if call.Address.Name == "vpc" {
						err = c.Add(call, newPackage(t, "vpc", "", "main.tf", module("c", "./c"), "c/main.tf", module("b", git)))
					}
					if err != nil {
						t.Fatal(err)
					}
				}
			}
			var got []string
			for _, call := range all {
				if !c.IsRecordedCall(call) {
					got = append(got, strings.TrimPrefix(call.String(), "registry.terraform.io/"))
				}
			}
			for _, u := range c.Unresolved() {
				if !c.IsRecorded(u) {
					got = append(got, u.From)
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, test.want) {
				t.Errorf("without a record are %q, want %q", got, test.want)
			}
		})
	}
}
