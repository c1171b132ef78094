package mirror

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
	"github.com/caddy-terraform/caddy-terraform-registry/command/commandtest"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
)

// requires is a configuration that requires a provider of the origin.
func requires(name, constraints string) string {
	return fmt.Sprintf("terraform {\n required_providers {\n  %s = {\n   source  = %q\n   version = %q\n  }\n }\n}\n", name, originHost+"/acme/"+name, constraints)
}

// calls is a configuration that calls a module.
func calls(source, constraints string) string {
	text := fmt.Sprintf("module %q {\n source = %q\n", strings.NewReplacer("/", "_", ".", "_", ":", "_").Replace(source), source)
	if constraints != "" {
		text += fmt.Sprintf(" version = %q\n", constraints)
	}
	return text + "}\n"
}

// newModules serves a module that calls a submodule of another module. Each requires a
// provider.
func newModules(t *testing.T) *origin {
	return newOrigin(t, func(files *indextest.Tree, acme *indextest.Publisher) {
		files.Provider("acme/demo", "1.0.0", "linux_amd64").Signed(acme)
		files.Provider("acme/demo", "1.1.0", "linux_amd64").Signed(acme)
		files.Provider("acme/other", "0.1.0", "linux_amd64").Signed(acme)
		files.Write("modules/acme/vpc/aws/1.0.0/main.tf", requires("demo", "1.0.0"))
		files.Write("modules/acme/vpc/aws/1.1.0/main.tf", requires("demo", "<= 1.0.0")+calls(originHost+"/acme/subnet/aws//modules/private", "~> 2.0"))
		files.Write("modules/acme/subnet/aws/2.0.0/main.tf", "")
		files.Write("modules/acme/subnet/aws/2.1.0/main.tf", requires("gone", "1.0.0"))
		files.Write("modules/acme/subnet/aws/2.1.0/modules/private/main.tf", requires("other", "")+calls("../shared", ""))
		files.Write("modules/acme/subnet/aws/2.1.0/modules/shared/main.tf", calls(originHost+"/acme/vpc/aws", "1.1.0"))
		files.Write("modules/acme/subnet/aws/3.0.0/main.tf", "")
	})
}

const (
	vpc    = originHost + "/acme/vpc/aws"
	subnet = originHost + "/acme/subnet/aws"
)

// mirrored are the modules and the providers in a tree, as ADDRESS VERSION.
func mirrored(t *testing.T, root string) (names []string) {
	t.Helper()
	for _, file := range commandtest.Files(t, root) {
		parts := strings.Split(file, "/")
		name := parts[len(parts)-1]
		switch {
		case strings.HasPrefix(name, "."):
		case parts[0] == "modules":
			names = append(names, strings.Join(parts[1:len(parts)-1], "/")+" "+strings.TrimSuffix(name, ".tar.gz"))
		case strings.HasSuffix(name, ".zip"):
			names = append(names, strings.Join(parts[1:len(parts)-1], "/")+" "+strings.Split(name, "_")[1])
		}
	}
	return names
}

func TestMirrorModules(t *testing.T) {
	const demo, other = originHost + "/acme/demo ", originHost + "/acme/other "
	own := calls("own.example.com/acme/x/any", "")
	for _, test := range []struct {
		rule  string
		files []string // of the configuration; none: only the argument
		args  []string
		want  []string
		says  string // of what is missing
	}{
		{"the newest that a call allows, what it calls in a submodule, and the providers of all",
			[]string{"main.tf", calls(vpc, ">= 1.0")}, nil, []string{subnet + " 2.1.0", vpc + " 1.1.0", demo + "1.0.0", other + "0.1.0"}, ""},
		{"the versions that init has installed",
			[]string{"main.tf", calls(vpc, ">= 1.0"), ".terraform/modules/modules.json", `{"Modules":[{"Key":"vpc","Source":"` + vpc + `","Version":"1.0.0"}]}`}, nil,
			[]string{vpc + " 1.0.0", demo + "1.0.0"}, ""},
		{"with a lock file its providers, and what it lacks",
			[]string{"main.tf", calls(vpc, "1.0.0") + requires("other", ""), ".terraform.lock.hcl", lock(originHost+"/acme/demo", "1.1.0")}, nil,
			[]string{vpc + " 1.0.0", demo + "1.1.0"}, "NOT LOCKED\n" + originHost + "/acme/demo@1.0.0: 1.1.0 is locked at "},
		{"a lock file without a configuration", []string{".terraform.lock.hcl", lock(originHost+"/acme/demo", "1.1.0")}, nil, []string{demo + "1.1.0"}, ""},
		{"a local module between", []string{"main.tf", calls("./a", ""), "a/main.tf", calls(vpc, "1.0.0")}, nil, []string{vpc + " 1.0.0", demo + "1.0.0"}, ""},
		{"an address", nil, []string{vpc + "@~> 1.0.0"}, []string{vpc + " 1.0.0", demo + "1.0.0"}, ""},
		{"a folder of an address", nil, []string{subnet + "//modules/private@2.1.0"}, []string{subnet + " 2.1.0", vpc + " 1.1.0", demo + "1.0.0", other + "0.1.0"}, ""},
		{"no modules of the registry's own", []string{"main.tf", own + calls(vpc, "1.0.0")}, []string{"--own", "own.example.com"}, []string{vpc + " 1.0.0", demo + "1.0.0"}, ""},
		{"a module from elsewhere is listed", []string{"main.tf", calls("git::https://example.com/a.git", "") + calls(vpc, "1.0.0")}, nil, []string{vpc + " 1.0.0", demo + "1.0.0"},
			"MAY NEED MORE\n"},
		{"a version that does not exist", []string{"main.tf", calls(vpc, "> 9") + calls(subnet, "2.0.0")}, nil, []string{subnet + " 2.0.0"},
			"FAILED\n" + vpc + "@> 9: no version of " + vpc + " is > 9, as "},
		{"a module that does not exist", []string{"main.tf", calls(originHost+"/acme/none/aws", "") + calls(subnet, "2.0.0")}, nil, []string{subnet + " 2.0.0"},
			"FAILED\n" + originHost + "/acme/none/aws: "},
		{"a folder that a module does not have", []string{"main.tf", calls(subnet+"//modules/none", "2.0.0")}, nil, []string{subnet + " 2.0.0"},
			"FAILED\n" + subnet + "//modules/none@2.0.0: what it needs cannot be read: " + subnet + "@2.0.0//modules/none: it does not exist"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			o, root, dir := newModules(t), t.TempDir(), t.TempDir()
			for i := 0; i < len(test.files); i += 2 {
				commandtest.Write(t, dir, test.files[i], test.files[i+1])
			}
			args := append([]string{"--modules"}, test.args...)
			if len(test.files) > 0 {
				args = append(args, dir)
			}
			out, errs, err := o.mirror(t, root, args...)
			if (test.says != "") != errors.Is(err, cli.ErrProblem) || (test.says == "") != (errs == "") || !strings.Contains(errs, test.says) {
				t.Errorf("got error %v and\n%s%s", err, out, errs)
			}
			if got := mirrored(t, root); !slices.Equal(got, test.want) {
				t.Errorf("it has mirrored\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}

			// Once more, nothing is fetched.
			before := commandtest.Files(t, root)
			o.requests()
			out, _, _ = o.mirror(t, root, args...)
			if asked := o.requests(); slices.ContainsFunc(asked, func(path string) bool { return strings.Contains(path, "archive") || strings.HasSuffix(path, ".zip") }) {
				t.Errorf("the second time it fetched %q:\n%s", asked, out)
			}
			wantFiles(t, root, before...)
		})
	}
}

// requests returns the paths that were asked for since the last call.
func (o *origin) requests() (paths []string) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	for _, r := range o.asked {
		paths = append(paths, r.URL.Path)
	}
	o.asked = nil
	return paths
}

func TestMirrorModulesReport(t *testing.T) {
	o, root := newModules(t), t.TempDir()
	want := `WOULD BE ADDED                     VERSION  PLATFORM
registry.example.com/acme/vpc/aws  1.0.0    -
registry.example.com/acme/demo     1.0.0    linux_amd64

Would be added to ` + filepath.Join(root, "providers") + ": 1 package; to " + filepath.Join(root, "modules") + ": 1 module. There already: 0. Failed: 0.\n"
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	out, errs, err := o.mirror(t, root, "--modules", "--dry-run", vpc+"@1.0.0")
	if err != nil || errs != "" || out != want {
		t.Errorf("got error %v and\n%s%s\nwant\n%s", err, out, errs, want)
	}
	wantFiles(t, root)
	wantFiles(t, temporary)

	out, errs, err = o.mirror(t, root, "--modules", vpc+"@1.0.0")
	if err != nil || errs != "" || !strings.Contains(out, "\n"+vpc+"  1.0.0    -            ") || !strings.Contains(out, ": 1 package, ") || !strings.Contains(out, ": 1 module, ") {
		t.Errorf("got error %v and\n%s%s", err, out, errs)
	}
	out, _, err = o.mirror(t, root, "--modules", "--json", vpc+"@1.0.0", vpc+"@> 9")
	var d mirrorDocument
	if bad := json.Unmarshal([]byte(out), &d); bad != nil || !errors.Is(err, cli.ErrProblem) {
		t.Fatalf("got error %v, %v and\n%s", err, bad, out)
	}
	if d.ModulesInto != filepath.Join(root, "modules") || len(d.Present) != 2 || d.Present[0].Kind != "module" || d.Present[0].Module != vpc || d.Present[0].Version != "1.0.0" ||
		d.Present[1].Kind != "provider" || len(d.Failed) != 1 || d.Failed[0].Module != vpc+"@> 9" {
		t.Errorf("got %s", out)
	}

	if _, _, err = o.mirror(t, root, vpc); err == nil || !strings.Contains(err.Error(), vpc+" is a module: add --modules") {
		t.Errorf("without --modules: got error %v", err)
	}
}

// A folder for modules is named behind an equals sign.
func TestMirrorModulesIntoAnotherFolder(t *testing.T) {
	o, root, elsewhere := newModules(t), t.TempDir(), filepath.Join(t.TempDir(), "m")
	if _, errs, err := o.mirror(t, root, "--modules="+elsewhere, vpc+"@1.0.0"); err != nil {
		t.Fatal(err, errs)
	}
	if _, err := os.Stat(filepath.Join(elsewhere, vpc, "1.0.0.tar.gz")); err != nil {
		t.Error(err)
	}
}

// A module whose origin names another commit now is reported, and stays.
func TestMirrorKeepsModulesThatHaveMoved(t *testing.T) {
	o, root := newModules(t), t.TempDir()
	if _, errs, err := o.mirror(t, root, "--modules", vpc+"@1.0.0"); err != nil {
		t.Fatal(err, errs)
	}
	name := "modules/" + vpc + "/.1.0.0.source.json"
	record, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(record, &fields); err != nil {
		t.Fatal(err)
	}
	fields["commit"] = strings.Repeat("a", 40)
	record, _ = json.Marshal(fields)
	commandtest.Write(t, root, name, string(record))
	before := commandtest.Files(t, root)
	for _, test := range []struct {
		rule, ref, says string
	}{
		{"the same commit", strings.Repeat("a", 40), ""},
		{"another commit", strings.Repeat("b", 40), "FAILED\n" + vpc + " 1.0.0: "},
		{"a tag, which may be any commit", "v1.0.0", ""},
	} {
		t.Run(test.rule, func(t *testing.T) {
			o.fault("/v1/modules/acme/vpc/aws/1.0.0/download", func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("X-Terraform-Get", "git::https://example.com/vpc.git?ref="+test.ref)
				w.WriteHeader(http.StatusNoContent)
			})
			out, errs, err := o.mirror(t, root, "--modules", vpc+"@1.0.0")
			if (test.says != "") != errors.Is(err, cli.ErrProblem) || !strings.Contains(errs, test.says) {
				t.Errorf("got error %v and\n%s%s", err, out, errs)
			}
			wantFiles(t, root, before...)
		})
	}
}

// What registry.hcl withdraws is passed over, for modules too.
func TestMirrorPassesOverWithdrawnModules(t *testing.T) {
	o, root := newModules(t), t.TempDir()
	commandtest.Write(t, root, "modules/"+vpc+"/registry.hcl", "withdrawn \"1.1.0\" {\n reason = \"broken\"\n}\n")
	commandtest.Write(t, root, "modules/"+vpc+"/0.1.0/main.tf", "")
	_, errs, err := o.mirror(t, root, "--modules", vpc)
	if err != nil || !strings.Contains(errs, vpc+" 1.1.0: it is withdrawn in this tree: broken") {
		t.Errorf("got error %v and\n%s", err, errs)
	}
	if got := mirrored(t, root); !slices.Contains(got, vpc+" 1.0.0") || slices.Contains(got, vpc+" 1.1.0") {
		t.Errorf("it has mirrored %q", got)
	}
}
