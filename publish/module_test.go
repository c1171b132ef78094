package publish_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/publish"
)

// putModule uploads a package of acme/vpc/aws.
func (r *registry) putModule(name, content string) (publish.Result, error) {
	f, err := publish.ParseModuleFile(vpc, name)
	if err != nil {
		return publish.Result{}, err
	}
	return r.Put(r.t.Context(), f, upload(content))
}

func TestModules(t *testing.T) { eachTree(t, testModules) }

func testModules(t *testing.T, on treeKind) {
	content := indextest.TarGz("main.tf", `output "a" { value = 1 }`)
	other := indextest.TarGz("main.tf", `output "a" { value = 2 }`)
	zip := indextest.Zip("main.tf", `output "a" { value = 1 }`)
	r := on.newRegistry(t)
	steps := []struct {
		rule    string
		name    string
		content string
		outcome publish.Outcome
		kind    error
		says    string
	}{
		{rule: "a new version", name: "1.0.0.tar.gz", content: content, outcome: publish.Added},
		{rule: "the same bytes", name: "1.0.0.tar.gz", content: content, outcome: publish.Unchanged},
		{rule: "the same version with a v", name: "v1.0.0.tar.gz", content: content, outcome: publish.Unchanged},
		{rule: "the same version with parts left out", name: "1.tar.gz", content: content, outcome: publish.Unchanged},
		{rule: "other bytes", name: "1.0.0.tar.gz", content: other, kind: publish.ErrConflict, says: "a version never changes"},
		{rule: "another format", name: "1.0.0.zip", content: zip, kind: publish.ErrConflict, says: "a version never changes"},
		{rule: "the same bytes under the name of another format", name: "1.0.0.zip", content: content, kind: publish.ErrRefused, says: "1.0.0.zip is the file that is published as 1.0.0.tar.gz, and no zip: send it under that name"},
		{rule: "the same bytes under the other name of their format", name: "1.0.0.tgz", content: content, outcome: publish.Unchanged},
		{rule: "a version with a v", name: "v1.1.0.tgz", content: content, outcome: publish.Added},
		{rule: "a zip", name: "1.2.0.zip", content: zip, outcome: publish.Added},
		{rule: "a package without a module", name: "1.3.0.tar.gz", content: indextest.TarGz("README.md", ""), kind: publish.ErrRefused, says: "there is no .tf file in it"},
		{rule: "an archive that is none", name: "1.3.0.tar.gz", content: "hello", kind: publish.ErrRefused, says: "cannot be read to its end"},
		{rule: "an archive of another format", name: "1.3.0.zip", content: content, kind: publish.ErrRefused, says: "cannot be read to its end"},
		{rule: "an entry that leaves its folder", name: "1.3.0.tar.gz", content: indextest.TarGz("../main.tf", ""), kind: publish.ErrRefused, says: "leaves its folder"},
		{rule: "a name without a version", name: "latest.tar.gz", content: content, kind: publish.ErrRefused, says: "is not a version"},
		{rule: "a name of no archive", name: "1.3.0.rar", content: content, kind: publish.ErrRefused, says: "send VERSION.tar.gz"},
	}
	for _, step := range steps {
		t.Run(step.rule, func(t *testing.T) {
			result, err := r.putModule(step.name, step.content)
			if step.kind != nil {
				saying(t, err, step.kind, step.says)
			} else if err != nil || result.Outcome != step.outcome {
				t.Errorf("%+v, %v", result, err)
			}
			r.isClean()
		})
	}
	r.holds(filesIn("modules/acme/vpc/aws", "1.0.0.tar.gz", "1.1.0.tgz", "1.2.0.zip")...)
	if n := len(r.index.Snapshot().Module(index.PlaceOf(vpc)).Versions); n != 3 {
		t.Errorf("%d versions are offered", n)
	}
	if read := r.index.Stats().Read; read != 0 {
		t.Errorf("scans have read %d archives, which were read when they arrived", read)
	}
}

// A package that clients could not use, or that must not become public, is refused, and
// its publisher has to correct it. A package with a lesser fault is published with a
// note.
func TestModulesThatClientsCouldNotUse(t *testing.T) {
	key := indextest.NewPublisher(t).PrivateKey()
	broken := []string{"main.tf", "locals {\n  a = 1 +\n}\n", "modules/a/main.tf", "locals {\n  a = 1\n  a = 2\n}\n"}
	const allow = ", which everyone who downloads the module gets: pack it without, or allow it with X-Allow-Secrets: 1"
	for _, test := range []struct {
		rule    string
		files   []string // names and contents
		allowed bool     // secrets are allowed
		refused []string // nil: it is published
		notes   []string // the beginnings
	}{
		{"a module", []string{"main.tf", "# a module\n"}, false, nil, nil},
		{"files that clients cannot parse", broken, false, []string{
			"correct main.tf:2, which clients cannot parse: Invalid expression: Expected the start of an expression, but found an invalid expression token.",
			`correct modules/a/main.tf:3, which clients cannot parse: Attribute redefined: The argument "a" was already set at modules/a/main.tf:2,3-4. Each argument may be set only once.`,
		}, nil},
		{"files that clients cannot parse, with secrets allowed", broken[:2], true, []string{
			"correct main.tf:2, which clients cannot parse: Invalid expression: Expected the start of an expression, but found an invalid expression token.",
		}, nil},
		{"a file that is a folder", []string{"main.tf", "", "docs", "", "docs/index.md", ""}, false, []string{
			`rename "docs", which is a file and a folder, so that no client can unpack the package`,
		}, nil},
		{"a private key", []string{"main.tf", "", "test/server.txt", key}, false, []string{"contains test/server.txt (a private key)" + allow}, nil},
		{"state", []string{"main.tf", "", "terraform.tfstate", "{}"}, false, []string{"contains terraform.tfstate (state)" + allow}, nil},
		{"both, allowed", []string{"main.tf", "", "test/server.txt", key, "terraform.tfstate", "{}"}, true, nil,
			[]string{"contains test/server.txt (a private key) and terraform.tfstate (state), which everyone"}},
		{"credentials by their name", []string{"main.tf", "", ".envrc", "use flake"}, false, nil, []string{"contains .envrc (credentials), which everyone"}},
		{"values of variables", []string{"main.tf", "", "prod.tfvars", "", "examples/a/a.auto.tfvars.json", "{}"}, false, nil,
			[]string{"contains prod.tfvars and examples/a/a.auto.tfvars.json, which clients do not read in a module"}},
		{"configuration two folders deep", []string{"aws/vpc/main.tf", ""}, false, nil, []string{"has no .tf file at its root or in modules/, only deeper ones such as aws/vpc/main.tf"}},
		{"configuration two folders deep in modules", []string{"modules/vpc/main.tf", ""}, false, nil, nil},
		{"configuration in several folders", []string{"vpc/main.tf", "", "dns/main.tf", ""}, false, nil, nil},
	} {
		t.Run(test.rule, func(t *testing.T) {
			r := newRegistry(t)
			f := moduleFile(t, "1.0.0.tar.gz")
			u := upload(indextest.TarGz(test.files...))
			u.AllowSecrets = test.allowed
			result, err := r.Put(t.Context(), f, u)
			r.isClean()
			if test.refused != nil {
				var refusal *publish.Refusal
				if !errors.As(err, &refusal) || refusal.Kind != publish.ErrRefused || !slices.Equal(refusal.Reasons, test.refused) {
					t.Errorf("it is answered with %+v, %v", result, err)
				}
				r.holds()
				return
			}
			if err != nil || result.Outcome != publish.Added {
				t.Fatalf("it is answered with %+v, %v", result, err)
			}
			again, err := r.Put(t.Context(), f, upload(indextest.TarGz(test.files...)))
			if err != nil || again.Outcome != publish.Unchanged {
				t.Fatalf("it is sent again, and answered with %+v, %v", again, err)
			}
			for _, notes := range [][]string{result.Notes, again.Notes} {
				if !slices.EqualFunc(notes, test.notes, strings.HasPrefix) {
					t.Errorf("the notes are %q", notes)
				}
			}
		})
	}
}

// A folder has the bytes of the package that the registry makes of it.
func TestModulesInTheTree(t *testing.T) {
	r := newRegistry(t)
	r.Write("modules/acme/vpc/aws/v1.0.0/main.tf", `output "a" { value = 1 }`)
	r.Write("modules/ACME/Vpc/aws/2.0.0.tar.gz", indextest.TarGz("main.tf", ""))
	r.Write("shared/main.tf", `output "a" { value = 1 }`)
	r.link("../../../../shared", "modules/acme/vpc/aws/3.0.0")
	for _, name := range []string{"1.0.0.tar.gz", "1.0.0.zip", "3.0.0.tar.gz"} {
		_, err := r.putModule(name, indextest.TarGz("main.tf", `output "a" { value = 2 }`))
		saying(t, err, publish.ErrConflict, "a version never changes")
	}
}
