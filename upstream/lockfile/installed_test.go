package lockfile

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// The file that a client writes for calls of two modules, one of them by another
// module.
const modulesJSON = `{"Modules":[{"Key":"","Source":"","Dir":"."},
{"Key":"a","Source":"registry.terraform.io/acme/vpc/aws","Version":"1.0.0","Dir":".terraform/modules/a"},
{"Key":"a.b","Source":"registry.terraform.io/acme/vpc/aws//modules/b","Version":"1.2.0","Dir":".terraform/modules/a.b/modules/b"},
{"Key":"c","Source":"acme/vpc/aws","Version":"1.2.0","Dir":".terraform/modules/c"},
{"Key":"git","Source":"git::https://example.com/a.git","Dir":".terraform/modules/git"},
{"Key":"local","Source":"./x","Dir":"x"}]}`

func TestParseInstalled(t *testing.T) {
	for _, test := range []struct{ rule, content, want string }{
		{"modules of registries, each version once", modulesJSON, "[{registry.terraform.io/acme/vpc/aws 1.0.0} {registry.terraform.io/acme/vpc/aws 1.2.0}] <nil>"},
		{"none", `{"Modules":[]}`, "[] <nil>"},
		{"no JSON", `{"Modules"`, "[] it is not what clients write"},
		{"a version of what no registry has", `{"Modules":[{"Source":"./x","Version":"1.0.0"}]}`, `[] "./x" in version "1.0.0" is not a module of a registry`},
		{"not a version", `{"Modules":[{"Source":"acme/vpc/aws","Version":"new"}]}`, `[] "acme/vpc/aws" in version "new" is not a module of a registry`},
	} {
		t.Run(test.rule, func(t *testing.T) {
			modules, _, err := parseInstalled([]byte(test.content))
			if got := fmt.Sprint(modules, err); got != strings.Replace(test.want, " <nil>", "<nil>", 1) && got != test.want {
				t.Errorf("got %s", got)
			}
		})
	}
}

// The version that init has installed is the version of a call, as long as the
// constraints of the call still allow it.
func TestCallsTakeInstalledVersions(t *testing.T) {
	for _, test := range []struct{ rule, constraints, want string }{
		{"all that are allowed", "", "[1.0.0 1.2.0]"},
		{"constraints that have changed", "> 1.1", "[1.2.0]"},
		{"none is allowed any more", "> 2.0", "[]"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Chdir(t.TempDir())
			files := []string{"p/main.tf", fmt.Sprintf("module \"a\" {\n source = \"acme/vpc/aws\"\n version = %q\n}", test.constraints), "p/" + InstalledName, modulesJSON}
			writeFiles(t, files)
			c, err := ReadConfiguration("p", false)
			if err != nil {
				t.Fatal(err)
			}
			if len(c.Installed()) != 2 {
				t.Errorf("got %v of modules.json", c.Installed())
			}
			calls := c.Calls()
			if len(calls) != 1 || fmt.Sprint(calls[0].Installed) != test.want {
				t.Errorf("got %v", calls)
			}
			if again := c.Calls(); len(again) > 0 {
				t.Errorf("they can be taken again: %v", again)
			}
		})
	}
	t.Chdir(t.TempDir())
	writeFiles(t, []string{"p/main.tf", "", "p/" + InstalledName, "{"})
	if _, err := ReadConfiguration("p", false); err == nil || !strings.Contains(err.Error(), "modules.json: it is not what clients write: let `init` write it again") {
		t.Errorf("a broken modules.json: got %v", err)
	}
}

func FuzzParseInstalled(f *testing.F) {
	f.Add([]byte(modulesJSON))
	f.Fuzz(func(t *testing.T, content []byte) {
		modules, _, err := parseInstalled(content)
		for _, m := range modules {
			if err != nil || m.Address.Hostname == "" || !m.Address.IsModule() || m.Version == "" {
				t.Errorf("got %+v, %v", m, err)
			}
		}
	})
}

// A call's package is in the folder of its key, so the key leads nowhere else.
func TestInstalledCalls(t *testing.T) {
	calls, err := installedCallsIn(modulesJSON)
	if got, want := fmt.Sprint(calls, err), "[{a {registry.terraform.io/acme/vpc/aws 1.0.0}} {a.b {registry.terraform.io/acme/vpc/aws 1.2.0}} {c {registry.terraform.io/acme/vpc/aws 1.2.0}}] <nil>"; got != want {
		t.Errorf("got %s", got)
	}
	for _, key := range []string{"..", ".", "../a", `a\\b`, "/etc", `a\u0000`} {
		content := fmt.Sprintf(`{"Modules":[{"Key":"%s","Source":"acme/vpc/aws","Version":"1.0.0"}]}`, key)
		if calls, err := installedCallsIn(content); err == nil || !strings.Contains(err.Error(), "is not the name of a call") {
			t.Errorf("key %s: got %v, %v", key, calls, err)
		}
	}
}

func installedCallsIn(content string) ([]InstalledCall, error) {
	records, err := parseRecords([]byte(content))
	if err != nil {
		return nil, err
	}
	return installedCalls(records)
}

// A client loads the folder that modules.json names, so this must be the one in which it has
// installed the module.
func TestStrays(t *testing.T) {
	for _, test := range []struct{ rule, records, want string }{
		{"a registry's module, and a module of its package", `{"Key":"a","Source":"acme/vpc/aws","Version":"1.0.0","Dir":".terraform/modules/a"},{"Key":"b","Source":"acme/vpc/aws//x","Version":"1.0.0","Dir":".terraform/modules/b/x"}`, "[]"},
		{"another folder for a registry's module", `{"Key":"a","Source":"acme/vpc/aws","Version":"1.0.0","Dir":"evil"}`, "[{a acme/vpc/aws 1.0.0 evil}]"},
		{"the folder of a call with a longer name", `{"Key":"a","Source":"acme/vpc/aws","Version":"1.0.0","Dir":".terraform/modules/ab"}`, "[{a acme/vpc/aws 1.0.0 .terraform/modules/ab}]"},
		{"out of its package", `{"Key":"a","Source":"acme/vpc/aws","Version":"1.0.0","Dir":".terraform/modules/a/../../../evil"}`, "[{a acme/vpc/aws 1.0.0 .terraform/modules/a/../../../evil}]"},
		{"no folder", `{"Key":"a","Source":"acme/vpc/aws","Version":"1.0.0"}`, "[{a acme/vpc/aws 1.0.0 .}]"},
		{"a registry's module without a version", `{"Key":"a","Source":"registry.example.com/acme/vpc/aws//x","Dir":".terraform/modules/a/x"}`, "[{a registry.example.com/acme/vpc/aws//x  }]"},
		{"a repository's module, which is not checked", `{"Key":"a","Source":"git::https://example.com/a.git","Dir":"x"}`, "[]"},
		{"local modules of the configuration and of a module", `{"Key":"l","Source":"./l","Dir":"l"},{"Key":"l.up","Source":"../m","Dir":"m"},{"Key":"a","Source":"acme/vpc/aws","Version":"1.0.0","Dir":".terraform/modules/a/"},{"Key":"a.s","Source":"./s","Dir":".terraform/modules/a/s"}`, "[]"},
		{"another folder for a local module of a registry's module", `{"Key":"a","Source":"acme/vpc/aws","Version":"1.0.0","Dir":".terraform/modules/a"},{"Key":"a.s","Source":"./s","Dir":"evil"}`, "[{a.s ./s  evil}]"},
		{"a local module by a link, which clients resolve", `{"Key":"l","Source":"./link","Dir":"target"}`, "[]"},
		{"another folder than the link leads to", `{"Key":"l","Source":"./link","Dir":"evil"}`, "[{l ./link  evil}]"},
		{"a module of a test, whose caller has no record", `{"Key":"test.tests.main.setup","Source":"./setup","Dir":"setup"}`, "[]"},
		{"another folder for the configuration, which clients pass over", `{"Key":"","Source":"","Dir":"evil"},{"Key":"l","Source":"./l","Dir":"evil/l"}`, "[{l ./l  evil/l}]"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Chdir(t.TempDir())
			writeFiles(t, []string{"p/target/main.tf", "", "p/evil/main.tf", "", "p/" + InstalledName, `{"Modules":[` + test.records + `]}`})
			if err := os.Symlink("target", "p/link"); err != nil {
				t.Skip(err)
			}
			_, strays, err := ReadInstalled("p", "p/.terraform")
			if got := fmt.Sprint(strays); got != test.want || err != nil {
				t.Errorf("got %s, %v", got, err)
			}
		})
	}
	if _, err := parseRecords([]byte(`{"Modules":[{"Key":"a"},{"Key":"a"}]}`)); err == nil || err.Error() != `it has the call "a" twice` {
		t.Errorf("two records of a call: %v", err)
	}
}
