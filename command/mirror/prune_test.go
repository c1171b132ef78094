package mirror

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
	"github.com/caddy-terraform/caddy-terraform-registry/command/commandtest"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/pull"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/treetest"
)

const mirroredDir = "providers/registry.terraform.io/acme/"

// prunable makes a tree with releases to keep and to remove, and returns the files
// that stay.
func prunable(t *testing.T) (root string, stays []string) {
	t.Helper()
	root = t.TempDir()
	acme := indextest.NewPublisher(t)
	files := indextest.OnDisk(t, root).Keys("registry.terraform.io/acme", acme)
	files.Provider("acme/own", "1.0.0", "linux_amd64")
	files.Provider("registry.example.com/acme/own", "2.0.0", "linux_amd64")
	files.Provider("registry.terraform.io/acme/demo", "1.0.0", "linux_amd64", "darwin_arm64").Signed(acme)
	files.Write(mirroredDir+"demo/.versions.json", "{}").Write(mirroredDir+"demo/.1.0.0.packages.json", "{}")
	files.Write("modules/acme/vpc/aws/1.0.0/main.tf", `output "a" { value = 1 }`)
	stays = commandtest.Files(t, root)

	files.Provider("registry.terraform.io/acme/demo", "1.1.0", "linux_amd64").Signed(acme)
	files.ProviderIn(mirroredDir+"demo/1.2.0", "demo", "1.2.0", "linux_amd64").Manifest("6.0").Signed(acme)
	files.Provider("registry.terraform.io/acme/gone", "0.1.0", "linux_amd64").Signed(acme)
	files.Write(mirroredDir+"demo/.1.1.0.packages.json", "{}")
	files.Write(mirroredDir+"gone/.versions.json", "{}").Write(mirroredDir+"gone/.versions.json.damaged", "")
	files.Write(mirroredDir+"gone/.0.1.0.packages.json", "{}")
	files.Provider("other.example.com/acme/gone", "0.1.0", "linux_amd64")
	return root, stays
}

// infra makes a folder of configurations, where one lock file names a release.
func infra(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	commandtest.Write(t, dir, "a/.terraform.lock.hcl", lock("registry.terraform.io/acme/demo", "1.0.0"))
	commandtest.Write(t, dir, "b/.terraform.lock.hcl", "# nothing is used here\n")
	commandtest.Write(t, dir, "a/.terraform/modules/vpc/.terraform.lock.hcl", lock("registry.terraform.io/acme/gone", "0.1.0"))
	return dir
}

func TestPrune(t *testing.T) {
	root, stays := prunable(t)
	dir := infra(t)
	before := commandtest.Files(t, root)
	const plan = `other.example.com/acme/gone 0.1.0
  terraform-provider-gone_0.1.0_linux_amd64.zip
registry.terraform.io/acme/demo 1.1.0
  terraform-provider-demo_1.1.0_linux_amd64.zip
  terraform-provider-demo_1.1.0_SHA256SUMS.sig
  terraform-provider-demo_1.1.0_SHA256SUMS
  .1.1.0.packages.json
registry.terraform.io/acme/demo 1.2.0
  1.2.0/terraform-provider-demo_1.2.0_linux_amd64.zip
  1.2.0/terraform-provider-demo_1.2.0_SHA256SUMS.sig
  1.2.0/terraform-provider-demo_1.2.0_SHA256SUMS
  1.2.0/terraform-provider-demo_1.2.0_manifest.json
registry.terraform.io/acme/gone 0.1.0
  terraform-provider-gone_0.1.0_linux_amd64.zip
  terraform-provider-gone_0.1.0_SHA256SUMS.sig
  terraform-provider-gone_0.1.0_SHA256SUMS
  .0.1.0.packages.json

`
	out, errs, err := commandtest.Run(t.Context(), PruneCommand(), "--root", root, "--own", "registry.example.com", "--dry-run", dir)
	if err != nil || errs != "" || !strings.HasPrefix(out, "WOULD BE REMOVED\n"+plan+"Would be removed from "+filepath.Join(root, "providers")+": 4 releases, ") ||
		!strings.HasSuffix(out, ". Kept: 3, by 2 lock files.\n") {
		t.Errorf("got error %v and\n%s%s", err, out, errs)
	}
	wantFiles(t, root, before...)

	out, errs, err = commandtest.Run(t.Context(), PruneCommand(), "--root", root, "--own", "registry.example.com", dir)
	if err != nil || errs != "" || !strings.HasPrefix(out, "REMOVED\n"+plan+"Removed from ") {
		t.Errorf("got error %v and\n%s%s", err, out, errs)
	}
	wantFiles(t, root, stays...)
	for _, folder := range []string{"registry.terraform.io/acme/gone", "registry.terraform.io/acme/demo/1.2.0", "other.example.com"} {
		if _, err := os.Stat(filepath.Join(root, "providers", folder)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", folder, err)
		}
	}

	out, _, err = commandtest.Run(t.Context(), PruneCommand(), "--root", root, "--own", "registry.example.com", dir)
	if err != nil || !strings.HasPrefix(out, "Removed from ") || !strings.Contains(out, ": 0 releases, 0 B. Kept: 3") {
		t.Errorf("the second time: got error %v and\n%s", err, out)
	}
}

// An unpacked package is a folder that may be in use otherwise: it stays, and so do
// the documents of the release.
func TestPruneLeavesUnpackedPackages(t *testing.T) {
	root, stays := prunable(t)
	files := indextest.OnDisk(t, root)
	const unpacked = "registry.terraform.io/acme/gone/0.2.0/linux_amd64"
	files.Write("providers/"+unpacked+"/terraform-provider-gone", "x").Write("providers/"+unpacked+"/docs/a.md", "x")
	files.Write(mirroredDir+"demo/1.2.0/windows_amd64/terraform-provider-demo.exe", "x") // withheld: SHA256SUMS does not list it
	files.Write(mirroredDir+"demo/1.3.0/linux_amd64/terraform-provider-demo", "x")
	files.Provider("registry.terraform.io/acme/demo", "1.3.0", "darwin_arm64")
	dir := infra(t)
	const heading = "KEPT, SINCE IT IS UNPACKED: REMOVE THE FOLDER YOURSELF\n" +
		"registry.terraform.io/acme/demo/1.3.0/linux_amd64\n" + unpacked + "\n\n"
	out, errs, err := commandtest.Run(t.Context(), PruneCommand(), "--root", root, "--own", "registry.example.com", "--dry-run", "--json", dir)
	var said struct{ Unpacked []string }
	if json.Unmarshal([]byte(out), &said) != nil || err != nil || errs != "" ||
		!slices.Equal(said.Unpacked, []string{"registry.terraform.io/acme/demo/1.3.0/linux_amd64", unpacked}) {
		t.Errorf("as JSON, got error %v and\n%s%s", err, out, errs)
	}
	out, errs, err = commandtest.Run(t.Context(), PruneCommand(), "--root", root, "--own", "registry.example.com", dir)
	if err != nil || errs != "" || !strings.Contains(out, heading) ||
		strings.Contains(out, "acme/gone 0.2.0") || !strings.Contains(out, "\n  terraform-provider-demo_1.3.0_darwin_arm64.zip") {
		t.Errorf("got error %v and\n%s%s", err, out, errs)
	}
	wantFiles(t, root, append(stays, "providers/"+unpacked+"/terraform-provider-gone", "providers/"+unpacked+"/docs/a.md",
		mirroredDir+"demo/1.2.0/windows_amd64/terraform-provider-demo.exe", mirroredDir+"demo/1.3.0/linux_amd64/terraform-provider-demo",
		mirroredDir+"gone/.versions.json", mirroredDir+"gone/.versions.json.damaged")...)
}

// Without its checksums, a withheld package would be offered.
func TestPruneLeavesWithheldPackages(t *testing.T) {
	root, _ := prunable(t)
	bad := commandtest.Write(t, root, mirroredDir+"demo/terraform-provider-demo_1.1.0_darwin_arm64.zip", indextest.ProviderZip("demo", "1.1.0", "another"))
	out, errs, err := commandtest.Run(t.Context(), PruneCommand(), "--root", root, "--own", "registry.example.com", infra(t))
	if err != nil || !strings.Contains(out, "Left alone: 1 withheld by the registry (`check` says why).") {
		t.Errorf("got error %v and\n%s%s", err, out, errs)
	}
	files := commandtest.Files(t, root)
	for name, want := range map[string]bool{"linux_amd64.zip": false, "darwin_arm64.zip": true, "SHA256SUMS": true, "SHA256SUMS.sig": true} {
		if got := slices.Contains(files, mirroredDir+"demo/terraform-provider-demo_1.1.0_"+name); got != want {
			t.Errorf("%s is there: %v", name, got)
		}
	}
	if slices.ContainsFunc(reportOf(t, root, false).Offered, func(o index.Offer) bool { return o.Version == "1.1.0" }) {
		t.Errorf("%s is offered now", bad)
	}
}

// A file with several names stays if one of them does.
func TestPruneKeepsWhatHasAnotherName(t *testing.T) {
	const zip = "demo/terraform-provider-demo_1.0.0_linux_amd64.zip"
	tests := []struct {
		rule     string
		links    map[string]string // below providers: what leads where
		kept     string
		releases int // that are kept
	}{
		{"a hostname that is a symlink to another", map[string]string{"registry.opentofu.org": "registry.terraform.io"}, "registry.opentofu.org/acme/" + zip, 3},
		{"a namespace that is one of the registry's own", map[string]string{"old.example.com/acme": "../acme"}, "old.example.com/acme/own/terraform-provider-own_1.0.0_linux_amd64.zip", 3},
		{"a package that is a symlink to one that stays", map[string]string{"old.example.com/acme/" + zip: "../../../registry.terraform.io/acme/" + zip}, "old.example.com/acme/" + zip, 3},
		{"the target of a package that stays", map[string]string{"acme/own/terraform-provider-own_2.0.0_linux_amd64.zip": "../../other.example.com/acme/own/terraform-provider-own_2.0.0_linux_amd64.zip"}, "other.example.com/acme/own/terraform-provider-own_2.0.0_linux_amd64.zip", 4},
		{"a package that is withheld under its other name", map[string]string{"acme/another": "../other.example.com/acme/signed"}, "other.example.com/acme/signed/terraform-provider-signed_1.0.0_linux_amd64.zip", 3},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			root := t.TempDir()
			acme := indextest.NewPublisher(t)
			files := indextest.OnDisk(t, root).Keys("registry.terraform.io/acme", acme).Keys("other.example.com/acme", acme)
			files.Provider("acme/own", "1.0.0", "linux_amd64")
			files.Provider("registry.terraform.io/acme/demo", "1.0.0", "linux_amd64").Signed(acme)
			files.Provider("registry.terraform.io/acme/demo", "1.1.0", "linux_amd64").Signed(acme)
			files.Provider("other.example.com/acme/signed", "1.0.0", "linux_amd64").Signed(acme)
			files.Provider("other.example.com/acme/own", "2.0.0", "linux_amd64")
			for name, to := range test.links {
				name = filepath.Join(root, "providers", name)
				if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.Symlink(to, name)); err != nil {
					t.Fatal(err)
				}
			}
			out, errs, err := commandtest.Run(t.Context(), PruneCommand(), "--root", root, "--own", "registry.example.com", infra(t))
			if removed, kept, _ := strings.Cut(out, "KEPT, SINCE IT HAS ANOTHER NAME TOO\n"); err != nil || errs != "" || strings.Contains(removed, test.kept) ||
				!strings.HasPrefix(kept, test.kept+"\n") || !strings.Contains(kept, fmt.Sprintf(". Kept: %d, by ", test.releases)) {
				t.Errorf("got error %v and\n%s%s", err, out, errs)
			}
			for _, name := range []string{test.kept, "acme/own/terraform-provider-own_1.0.0_linux_amd64.zip", "registry.terraform.io/acme/" + zip,
				"registry.terraform.io/acme/demo/terraform-provider-demo_1.0.0_SHA256SUMS", "registry.terraform.io/acme/demo/terraform-provider-demo_1.0.0_SHA256SUMS.sig"} {
				if _, err := os.Stat(filepath.Join(root, "providers", name)); err != nil {
					t.Errorf("what stays is gone: %v", err)
				}
			}
			gone := filepath.Join(root, mirroredDir, "demo/terraform-provider-demo_1.1.0_linux_amd64.zip")
			if _, err := os.Stat(gone); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("what no lock file names is there by all its names: %v", err)
			}
		})
	}
}

func TestLockFilesBehindSymlinks(t *testing.T) {
	tests := []struct {
		rule  string
		links map[string]string // what leads where
		want  string            // files, or what the error says
	}{
		{"a folder elsewhere", map[string]string{"infra/b": "../elsewhere"}, "infra/a infra/b infra/b/deep"},
		{"one by two names", map[string]string{"infra/b": "../elsewhere", "infra/c": "../elsewhere"}, "infra/a infra/b infra/b/deep"},
		{"one that is there as itself too", map[string]string{"infra/c": "a"}, "infra/a"},
		{"one to a folder that it is in", map[string]string{"infra/a/up": "..", "elsewhere/up": "../infra", "infra/b": "../elsewhere"}, "infra/a infra/b infra/b/deep"},
		{"a file", map[string]string{"infra/b/.terraform.lock.hcl": "../../elsewhere/.terraform.lock.hcl"}, "infra/a infra/b"},
		{"an installed module", map[string]string{"infra/.terraform": "../elsewhere"}, "infra/a"},
		{"the folder itself", map[string]string{"link": "infra"}, "link/a"},
		{"a dangling one is an error", map[string]string{"infra/b": "../missing"}, "infra/b: it is a dangling symlink"},
		{"itself, too", map[string]string{"infra/b": "b"}, "infra/b: "},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			dir := t.TempDir()
			for _, name := range []string{"infra/a", "elsewhere", "elsewhere/deep"} {
				commandtest.Write(t, dir, name+"/.terraform.lock.hcl", lock("registry.terraform.io/acme/demo", "1.0.0"))
			}
			arg := filepath.Join(dir, "infra")
			for name, to := range test.links {
				name = filepath.Join(dir, name)
				if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.Symlink(to, name)); err != nil {
					t.Fatal(err)
				}
				if to == "infra" {
					arg = name
				}
			}
			found, err := searchProjects(arg)
			var got []string
			for _, file := range found.files {
				file, _ = filepath.Rel(dir, filepath.Dir(file))
				got = append(got, filepath.ToSlash(file))
			}
			slices.Sort(got)
			if err != nil && !strings.Contains(filepath.ToSlash(err.Error()), test.want) || err == nil && strings.Join(got, " ") != test.want {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

func TestPruneRefuses(t *testing.T) {
	root, _ := prunable(t)
	dir := t.TempDir()
	empty := commandtest.Write(t, dir, "empty.hcl", "")
	broken := t.TempDir()
	commandtest.Write(t, broken, "a/.terraform.lock.hcl", lock("registry.terraform.io/acme/demo", "1.0.0"))
	commandtest.Write(t, broken, "b/.terraform.lock.hcl", "provider {")
	before := commandtest.Files(t, root)
	tests := []struct {
		rule string
		args []string
		want string
	}{
		{"no lock file", nil, "give the lock files"},
		{"a missing one", []string{filepath.Join(dir, "missing")}, "there is no file or folder " + filepath.Join(dir, "missing")},
		{"a folder without one", []string{dir}, "there is no .terraform.lock.hcl in it or below"},
		{"a folder of modules without an equals sign", []string{"--modules", dir, infra(t)}, "let the client's `init` write it; if it is the folder with the modules, write --modules=" + dir},
		{"one that names nothing", []string{empty}, "everything would be removed"},
		{"one of several that is broken", []string{broken}, "b/.terraform.lock.hcl:1: "},
		{"hostnames that may be its own", []string{infra(t)}, "other.example.com, registry.example.com may be hostnames of the registry itself"},
		{"the same in a dry run", []string{infra(t), "--dry-run"}, "--own"},
		{"a malformed --own", []string{infra(t), "--own", "a..b"}, "--own: "},
		{"a server that is not asked", []string{infra(t), "--address", "localhost:2019"}, "--address: it belongs to --unused"},
		{"no root", []string{infra(t), "--root", ""}, "--root is required"},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			out, errs, err := commandtest.Run(t.Context(), PruneCommand(), append([]string{"--root", root}, test.args...)...)
			if err == nil || errors.Is(err, cli.ErrProblem) || !strings.Contains(err.Error(), test.want) || out != "" || errs != "Error: "+err.Error()+"\n" {
				t.Errorf("got error %v, want one with %q, and\n%s%s", err, test.want, out, errs)
			}
		})
	}
	wantFiles(t, root, before...)
}

// The public registries are not the registry's own: for them --own is not required.
func TestPruneWithoutOwn(t *testing.T) {
	tests := []struct {
		rule     string
		hostname string
		args     []string
		refused  bool
	}{
		{"the public registry of Terraform", "registry.terraform.io", nil, false},
		{"that of OpenTofu", "registry.opentofu.org", nil, false},
		{"another, without --own", "other.example.com", nil, true},
		{"another, with an empty --own", "other.example.com", []string{"--own", ""}, false},
		{"another than --own", "other.example.com", []string{"--own", "registry.example.com"}, false},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			root := t.TempDir()
			files := indextest.OnDisk(t, root)
			files.Provider("kept.example.com/acme/demo", "1.0.0", "linux_amd64")
			files.Provider(test.hostname+"/acme/demo", "1.1.0", "linux_amd64")
			lockFile := commandtest.Write(t, t.TempDir(), "lock.hcl", lock("kept.example.com/acme/demo", "1.0.0"))
			out, errs, err := commandtest.Run(t.Context(), PruneCommand(), append([]string{"--root", root, lockFile}, test.args...)...)
			if (err != nil) != test.refused {
				t.Errorf("got error %v and\n%s%s", err, out, errs)
			}
			_, err = os.Stat(filepath.Join(root, "providers", test.hostname, "acme/demo"))
			if there := err == nil; there != test.refused {
				t.Errorf("it is there: %v", there)
			}
		})
	}
}

// After a failure the other releases are removed. A package that could not be removed
// keeps its documents.
func TestPruneReportsWhatItLeaves(t *testing.T) {
	files := indextest.New(t)
	files.Provider("registry.terraform.io/acme/demo", "1.0.0", "linux_amd64").Checksums()
	files.Provider("registry.terraform.io/acme/demo", "1.1.0", "linux_amd64").Checksums()
	parts, _ := files.Open()
	snapshot, err := index.Scan(t.Context(), index.Options{Open: files.Open})
	if err != nil {
		t.Fatal(err)
	}
	treetest.Wrap(&parts.Providers, afero.NewReadOnlyFs)
	h, err := releasesOf(parts.Providers, snapshot)
	if err != nil {
		t.Fatal(err)
	}
	p := &pruning{treeReleases: h, noun: "release", plan: pull.Pruning{Remove: h.all}}
	p.remove()
	var out, errs strings.Builder
	if err := (&pruneResult{parts: []*pruning{p}}).WriteText(&out, &errs); err != nil {
		t.Fatal(err)
	}
	const want = `
COULD NOT BE REMOVED
registry.terraform.io/acme/demo/terraform-provider-demo_1.1.0_linux_amd64.zip: operation not permitted
registry.terraform.io/acme/demo/terraform-provider-demo_1.0.0_linux_amd64.zip: operation not permitted
`
	if errs.String() != want || !strings.Contains(out.String(), ": 0 releases, ") {
		t.Errorf("got\n%s%s\nwant\n%s", out.String(), errs.String(), want)
	}
}

// A file that stays may have a name in a folder that cannot be read for a moment, and a
// document that cannot be looked at would stay behind for ever.
func TestPruneRemovesNothingWithoutAWholeView(t *testing.T) {
	files := indextest.New(t)
	files.Provider("registry.terraform.io/acme/demo", "1.0.0", "linux_amd64").Checksums()
	files.Write("providers/other.example.com/acme/demo/README.md", "# Demo")
	snapshot, err := index.Scan(t.Context(), index.Options{Open: files.Open})
	if err != nil {
		t.Fatal(err)
	}
	view := func(faults *treetest.Faults) error {
		parts, _ := faults.Open(files.Open)()
		releases, err := releasesOf(parts.Providers, snapshot)
		if err != nil {
			return err
		}
		p := &pruning{treeReleases: releases, plan: pull.Pruning{Remove: releases.all}}
		return p.keepShared()
	}
	var faults treetest.Faults
	faults.When(func(int, treetest.Operation) error { return nil })
	if err := view(&faults); err != nil {
		t.Fatal(err)
	}
	operations, _ := faults.End()
	for n := 1; n <= operations; n++ {
		faults.Once(n, syscall.EIO)
		err := view(&faults)
		_, failed := faults.End()
		if n := len(failed); n == 1 && failed[0].String() == "stat providers" {
			continue // the list of the folder tells the same
		}
		if err == nil || !strings.Contains(err.Error(), "nothing is removed: ") {
			t.Errorf("%v fails, and the error is %v", failed, err)
		}
	}
	files.Write("providers/lost+found/x", "x")
	for _, row := range []struct {
		rule, path string
		err        error
		says       string // empty: it goes on
	}{
		{"a folder that others may read", "other.example.com", fs.ErrPermission, "nothing is removed: other.example.com: it cannot be read: give the server the right to"},
		{"a folder that no scan enters", "lost+found", fs.ErrPermission, ""},
		{"a file of a version's name", "demo/1.0.0/", syscall.ENOTDIR, ""},
		{"a symlink to itself", "demo/1.0.0/", syscall.ELOOP, ""},
		{"a document that others may read", "demo/1.0.0/", fs.ErrPermission, "nothing is removed: "},
	} {
		faults.When(func(_ int, o treetest.Operation) error {
			if strings.Contains(o.Path, row.path) {
				return row.err
			}
			return nil
		})
		err := view(&faults)
		if _, failed := faults.End(); len(failed) == 0 || (err != nil) != (row.says != "") || err != nil && !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: %v (%v)", row.rule, err, failed)
		}
	}
}

func TestPruneJSON(t *testing.T) {
	root, stays := prunable(t)
	for _, dry := range []bool{true, false} {
		args := []string{"--root", root, "--own", "registry.example.com", "--json", infra(t)}
		if dry {
			args = append(args, "--dry-run")
		}
		out, errs, err := commandtest.Run(t.Context(), PruneCommand(), args...)
		var d pruneDocument
		if failed := json.Unmarshal([]byte(out), &d); failed != nil || err != nil || errs != "" {
			t.Fatalf("got error %v, %v and\n%s%s", err, failed, out, errs)
		}
		if d.DryRun != dry || d.From != filepath.Join(root, "providers") || d.Kept != 3 || d.LockFiles != 2 || d.Size == 0 || len(d.Removed) != 4 || len(d.Failed) != 0 || strings.Contains(out, "null") {
			t.Errorf("got %s", out)
		}
		if r := d.Removed[1]; r.Provider != "registry.terraform.io/acme/demo" || r.Version != "1.1.0" || len(r.Files) != 4 {
			t.Errorf("removed %+v", r)
		}
	}
	wantFiles(t, root, stays...)
}
