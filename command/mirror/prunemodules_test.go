package mirror

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
	"github.com/caddy-terraform/caddy-terraform-registry/command/commandtest"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/lockfile"
)

const (
	mirroredVPC    = "registry.terraform.io/acme/vpc/aws"
	mirroredSubnet = "registry.terraform.io/acme/subnet/aws"
)

// newModuleTree makes a tree with versions of a hosted module and of two mirrored modules. One
// mirrored module calls the other.
func newModuleTree(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	files := indextest.OnDisk(t, root)
	files.Provider("registry.terraform.io/acme/demo", "1.0.0", "linux_amd64")
	packed := func(name, main string) {
		files.Write("modules/"+name+".tar.gz", indextest.TarGz("main.tf", main, "modules/a/main.tf", calls("acme/subnet/aws", "1.0.0")))
	}
	packed(mirroredVPC+"/1.0.0", "")
	packed(mirroredVPC+"/1.1.0", calls("acme/subnet/aws", "~> 2.0"))
	packed(mirroredVPC+"/2.0.0", "")
	files.Write("modules/"+mirroredVPC+"/.2.0.0.source.json", "{}").Write("modules/"+mirroredVPC+"/registry.hcl", `owner = "a"`)
	packed(mirroredSubnet+"/1.0.0", "")
	packed(mirroredSubnet+"/2.0.0", "")
	packed(mirroredSubnet+"/2.1.0", "")
	packed("acme/own/any/1.0.0", calls("acme/vpc/aws", "1.0.0"))
	return root
}

func TestPruneModules(t *testing.T) {
	const (
		vpc, subnet = mirroredVPC + " ", mirroredSubnet + " "
		own         = "acme/own/any 1.0.0"
		demo        = "registry.terraform.io/acme/demo 1.0.0"
	)
	git := calls("git::https://example.com/a.git", "")
	installed := func(source, version string) string {
		return `{"Modules":[{"Key":"a","Source":"` + source + `","Version":"` + version + `"}]}`
	}
	recorded := func(more string) string { // beside a mirrored module
		return strings.Replace(installed(mirroredVPC, "1.0.0"), "]", ","+more+"]", 1)
	}
	const (
		gitKey   = "git__https___example_com_a_git"
		ofGit    = `{"Key":"` + gitKey + `","Source":"git::https://example.com/a.git","Dir":".terraform/modules/` + gitKey + `"}`
		ofLocal  = `{"Key":"__local","Source":"./local","Dir":"local"}`
		inLocal  = `{"Key":"__local.` + gitKey + `","Source":"git::https://example.com/a.git","Dir":".terraform/modules/__local.` + gitKey + `"}`
		notGit   = `{"Key":"` + gitKey + `","Source":"registry.terraform.io/acme/x/aws","Version":"1.0.0","Dir":".terraform/modules/` + gitKey + `"}`
		ofAbsent = `{"Key":"acme_x_aws","Source":"registry.terraform.io/acme/x/aws","Version":"1.0.0","Dir":".terraform/modules/acme_x_aws"}`
	)
	for _, test := range []struct {
		rule  string
		files []string
		want  []string // that stay
		says  string   // and nothing is removed
	}{
		{"the newest that a call allows, and what it calls", []string{"main.tf", calls("acme/vpc/aws", "~> 1.0")}, []string{own, subnet + "2.1.0", vpc + "1.1.0"}, ""},
		{"what a submodule calls", []string{"main.tf", calls("acme/vpc/aws//modules/a", "2.0.0")}, []string{own, subnet + "1.0.0", vpc + "2.0.0"}, ""},
		{"what init has installed, and the newest that is allowed", []string{"main.tf", calls("acme/vpc/aws", ""), lockfile.InstalledName, installed(mirroredVPC, "1.0.0")}, []string{own, vpc + "1.0.0", vpc + "2.0.0"}, ""},
		{"what init has installed though nothing calls it any more", []string{"main.tf", "", lockfile.InstalledName, installed(mirroredSubnet, "2.0.0")}, []string{own, subnet + "2.0.0"}, ""},
		{"what a hosted module calls", []string{"main.tf", calls("registry.example.com/acme/own/any", "")}, []string{own, vpc + "1.0.0"}, ""},
		{"what OpenTofu's files call", []string{"main.tf", calls("registry.terraform.io/acme/vpc/aws", "1.0.0"), "main.tofu", calls("registry.terraform.io/acme/subnet/aws", "2.0.0")}, []string{own, subnet + "2.0.0", vpc + "1.0.0"}, ""},
		{"several configurations", []string{"a/main.tf", calls("acme/vpc/aws", "1.0.0"), "b/c/main.tf", calls("acme/subnet/aws", "1.0.0")}, []string{own, subnet + "1.0.0", vpc + "1.0.0"}, ""},
		{"a module from elsewhere, where init has been run", []string{"main.tf", git, "local/main.tf", git, "more.tf", calls("./local", ""), lockfile.InstalledName, recorded(ofGit + "," + ofLocal + "," + inLocal)}, []string{own, vpc + "1.0.0"}, ""},

		{"a module from elsewhere, which may call anything", []string{"main.tf", git + calls("acme/vpc/aws", "")}, nil, "git::https://example.com/a.git does not come from a registry"},
		{"a module from elsewhere, which is newer than the last init", []string{"main.tf", git + calls("acme/vpc/aws", ""), lockfile.InstalledName, installed(mirroredVPC, "1.0.0")}, nil, "git::https://example.com/a.git does not come from a registry"},
		{"a module from elsewhere in a local module, which is newer than the last init", []string{"main.tf", git + calls("./local", ""), "local/main.tf", git, lockfile.InstalledName, recorded(ofGit + "," + ofLocal)}, nil, "local/main.tf:1: "},
		{"a module from elsewhere in place of a registry's", []string{"main.tf", git, lockfile.InstalledName, recorded(notGit)}, nil, "git::https://example.com/a.git does not come from a registry"},
		{"a module that the tree does not offer, which is newer than the last init", []string{"main.tf", calls("acme/x/aws", ""), lockfile.InstalledName, installed(mirroredVPC, "1.0.0")}, nil, "no version of registry.terraform.io/acme/x/aws is on offer"},
		{"a version that the tree does not offer, which is newer than the last init", []string{"main.tf", calls("acme/x/aws", "~> 2.0"), lockfile.InstalledName, recorded(ofAbsent)}, nil, "no version of registry.terraform.io/acme/x/aws is on offer"},
		{"a module that the tree does not offer, which may call anything", []string{"main.tf", calls("other.example.com/acme/x/aws", "") + calls("acme/vpc/aws", "")}, nil, "no version of other.example.com/acme/x/aws is on offer"},
		{"no version that the call allows", []string{"main.tf", calls("acme/vpc/aws", "~> 3.0") + calls("acme/subnet/aws", "")}, nil, "no version of " + mirroredVPC + " is ~> 3.0"},
		{"a module that the tree does not offer, where init has been run", []string{"main.tf", calls("acme/x/aws", ""), lockfile.InstalledName, recorded(ofAbsent)}, []string{own, vpc + "1.0.0"}, ""},
		{"a source that is an expression", []string{"main.tf", "module \"x\" {\n source = var.x\n}\n" + calls("acme/vpc/aws", "")}, nil, "it has no source in quotes"},
		{"a configuration that cannot be read", []string{"main.tf", "module {"}, nil, "main.tf:1"},
		{"no calls at all", []string{"main.tf", ""}, nil, "the configurations call no module that is in the tree: all would be removed"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			root, dir := newModuleTree(t), t.TempDir()
			commandtest.Write(t, dir, ".terraform.lock.hcl", lock("registry.terraform.io/acme/demo", "1.0.0"))
			for i := 0; i < len(test.files); i += 2 {
				commandtest.Write(t, dir, test.files[i], test.files[i+1])
			}
			before := commandtest.Files(t, root)
			args := []string{"--root", root, "--own", "registry.example.com", "--modules", dir}
			out, errs, err := commandtest.Run(t.Context(), PruneCommand(), append(args, "--dry-run")...)
			if test.says != "" {
				if err == nil || errors.Is(err, cli.ErrProblem) || !strings.Contains(err.Error(), test.says) {
					t.Fatalf("got error %v and\n%s%s", err, out, errs)
				}
			} else if err != nil || !strings.Contains(out, "WOULD BE REMOVED\n") {
				t.Fatalf("got error %v and\n%s%s", err, out, errs)
			}
			wantFiles(t, root, before...)

			if out, errs, err = commandtest.Run(t.Context(), PruneCommand(), args...); (err != nil) != (test.says != "") {
				t.Errorf("got error %v and\n%s%s", err, out, errs)
			}
			if test.says != "" {
				wantFiles(t, root, before...)
				return
			}
			got := slices.DeleteFunc(mirrored(t, root), func(name string) bool { return strings.HasSuffix(name, "registry.hcl") || name == demo })
			if !slices.Equal(got, test.want) {
				t.Errorf("it has kept %q\nwant %q\n%s", got, test.want, out)
			}
			for _, stays := range []string{"registry.hcl", ".2.0.0.source.json"} {
				if !slices.Contains(commandtest.Files(t, root), "modules/"+mirroredVPC+"/"+stays) {
					t.Errorf("%s is gone", stays)
				}
			}
		})
	}
}

// While the newest version is withheld, its calls are unknown.
func TestPruneModulesKeepsTheNeedsOfWithheldVersions(t *testing.T) {
	root, dir := newModuleTree(t), t.TempDir()
	commandtest.Write(t, root, "modules/"+mirroredVPC+"/1.2.0.tar.gz", "damaged")
	commandtest.Write(t, dir, ".terraform.lock.hcl", lock("registry.terraform.io/acme/demo", "1.0.0"))
	before := commandtest.Files(t, root)
	commandtest.Write(t, dir, "main.tf", calls("acme/vpc/aws", "~> 1.0"))
	out, errs, err := commandtest.Run(t.Context(), PruneCommand(), "--root", root, "--modules", dir)
	if err == nil || !strings.Contains(err.Error(), mirroredVPC+" 1.2.0 is not offered: ") {
		t.Errorf("got error %v and\n%s%s", err, out, errs)
	}
	wantFiles(t, root, before...)
	commandtest.Write(t, dir, "main.tf", calls("acme/vpc/aws", "1.1.0")) // which the damaged version does not meet
	if out, errs, err := commandtest.Run(t.Context(), PruneCommand(), "--root", root, "--modules", dir); err != nil {
		t.Errorf("got error %v and\n%s%s", err, out, errs)
	}
}

// The calls of a version are unknown if its package cannot be read, although init has been run.
func TestPruneModulesReadsPackages(t *testing.T) {
	root, dir := newModuleTree(t), t.TempDir()
	commandtest.Write(t, dir, "main.tf", calls("acme/vpc/aws", "~> 1.0"))
	commandtest.Write(t, dir, lockfile.InstalledName, `{"Modules":[{"Key":"acme_vpc_aws","Source":"`+mirroredVPC+`","Version":"1.0.0","Dir":".terraform/modules/acme_vpc_aws"}]}`)
	snapshot, err := index.Scan(t.Context(), index.Options{Open: indextest.OnDisk(t, root).Open})
	if err != nil {
		t.Fatal(err)
	}
	needed, err := neededModules(t.Context(), []string{dir}, snapshot, nil)
	if len(needed) == 0 || err != nil {
		t.Fatalf("got %v, %v", needed, err)
	}
	if err := os.Remove(filepath.Join(root, "modules", filepath.FromSlash(mirroredVPC), "1.1.0.tar.gz")); err != nil {
		t.Fatal(err)
	}
	_, err = neededModules(t.Context(), []string{dir}, snapshot, nil)
	if err == nil || !strings.HasPrefix(err.Error(), "nothing is removed: which modules "+mirroredVPC+"@1.1.0 calls cannot be read: ") || strings.Contains(err.Error(), root) {
		t.Errorf("got %v", err)
	}
}

func TestPruneModulesReport(t *testing.T) {
	root, dir := newModuleTree(t), t.TempDir()
	file := commandtest.Write(t, dir, ".terraform.lock.hcl", lock("registry.terraform.io/acme/demo", "1.0.0"))
	commandtest.Write(t, dir, "main.tf", calls("acme/vpc/aws", ">= 1.1"))
	args := []string{"--root", root, "--modules", "--dry-run"}
	out, _, err := commandtest.Run(t.Context(), PruneCommand(), append(args, "--json", dir)...)
	var d pruneDocument
	if bad := json.Unmarshal([]byte(out), &d); bad != nil || err != nil {
		t.Fatalf("got error %v, %v and\n%s", err, bad, out)
	}
	if len(d.Removed) != 5 || d.Removed[0].Kind != "module" || d.Removed[0].Module != mirroredSubnet || d.Removed[0].Version != "1.0.0" || d.Configurations != 1 || d.Size == 0 || d.Kept != 3 {
		t.Errorf("got %s", out)
	}
	if _, _, err := commandtest.Run(t.Context(), PruneCommand(), append(args, file)...); err == nil || !strings.Contains(err.Error(), "a lock file does not name modules: with --modules, give the folder of its configuration") {
		t.Errorf("a lock file: got error %v", err)
	}
	// Without --modules they stay.
	out, _, err = commandtest.Run(t.Context(), PruneCommand(), "--root", root, dir)
	if err != nil || !strings.HasPrefix(out, "Removed from ") || len(mirrored(t, root)) < 8 {
		t.Errorf("got error %v and\n%s", err, out)
	}
}
