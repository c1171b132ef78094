package module

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
)

// runPruneCommand runs the command as the process would, but for its status.
func runPruneCommand(t *testing.T, args ...string) (out, errs string, err error) {
	t.Helper()
	cmd := pruneCommand()
	var stdout, stderr strings.Builder
	cmd.SetOut(&stdout)
	cmd.SetErr(&stderr)
	cmd.SilenceUsage = true
	cmd.SetArgs(args)
	err = cmd.ExecuteContext(t.Context())
	return stdout.String(), stderr.String(), err
}

const mirroredDir = "providers/registry.terraform.io/acme/"

// prunable is a tree with releases to keep and to remove, and what of it stays.
func prunable(t *testing.T) (root string, stays []string) {
	t.Helper()
	root = t.TempDir()
	acme := indextest.NewPublisher(t)
	tree := indextest.OnDisk(t, root).Keys("registry.terraform.io/acme", acme)
	tree.Provider("acme/own", "1.0.0", "linux_amd64")
	tree.Provider("registry.example.com/acme/own", "2.0.0", "linux_amd64")
	tree.Provider("registry.terraform.io/acme/demo", "1.0.0", "linux_amd64", "darwin_arm64").Signed(acme)
	tree.Write(mirroredDir+"demo/.versions.json", "{}")
	tree.Write("modules/acme/vpc/aws/1.0.0/main.tf", `output "a" { value = 1 }`)
	stays = filesIn(t, root)

	tree.Provider("registry.terraform.io/acme/demo", "1.1.0", "linux_amd64").Signed(acme)
	tree.ProviderIn(mirroredDir+"demo/1.2.0", "demo", "1.2.0", "linux_amd64").Manifest("6.0").Signed(acme)
	tree.Provider("registry.terraform.io/acme/gone", "0.1.0", "linux_amd64").Signed(acme)
	tree.Write(mirroredDir+"gone/.versions.json", "{}")
	tree.Provider("other.example.com/acme/gone", "0.1.0", "linux_amd64")
	return root, stays
}

// infra is a folder of configurations, in which one lock file has a release.
func infra(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "a/.terraform.lock.hcl", lock("registry.terraform.io/acme/demo", "1.0.0"))
	write(t, dir, "b/.terraform.lock.hcl", "# nothing is used here\n")
	write(t, dir, "a/.terraform/modules/vpc/.terraform.lock.hcl", lock("registry.terraform.io/acme/gone", "0.1.0"))
	return dir
}

func TestPrune(t *testing.T) {
	root, stays := prunable(t)
	dir := infra(t)
	before := filesIn(t, root)
	const plan = `other.example.com/acme/gone 0.1.0
  other.example.com/acme/gone/terraform-provider-gone_0.1.0_linux_amd64.zip
registry.terraform.io/acme/demo 1.1.0
  registry.terraform.io/acme/demo/terraform-provider-demo_1.1.0_linux_amd64.zip
  registry.terraform.io/acme/demo/terraform-provider-demo_1.1.0_SHA256SUMS.sig
  registry.terraform.io/acme/demo/terraform-provider-demo_1.1.0_SHA256SUMS
registry.terraform.io/acme/demo 1.2.0
  registry.terraform.io/acme/demo/1.2.0/terraform-provider-demo_1.2.0_linux_amd64.zip
  registry.terraform.io/acme/demo/1.2.0/terraform-provider-demo_1.2.0_SHA256SUMS.sig
  registry.terraform.io/acme/demo/1.2.0/terraform-provider-demo_1.2.0_SHA256SUMS
  registry.terraform.io/acme/demo/1.2.0/terraform-provider-demo_1.2.0_manifest.json
registry.terraform.io/acme/gone 0.1.0
  registry.terraform.io/acme/gone/terraform-provider-gone_0.1.0_linux_amd64.zip
  registry.terraform.io/acme/gone/terraform-provider-gone_0.1.0_SHA256SUMS.sig
  registry.terraform.io/acme/gone/terraform-provider-gone_0.1.0_SHA256SUMS

`
	out, errs, err := runPruneCommand(t, "--root", root, "--own", "registry.example.com", "--dry-run", dir)
	if err != nil || errs != "" || !strings.HasPrefix(out, "WOULD BE REMOVED\n"+plan+"Would be removed from "+filepath.Join(root, "providers")+": 4 releases, ") ||
		!strings.HasSuffix(out, ". Kept: 3, by 2 lock files.\n") {
		t.Errorf("got error %v and\n%s%s", err, out, errs)
	}
	wantFiles(t, root, before...)

	out, errs, err = runPruneCommand(t, "--root", root, "--own", "registry.example.com", dir)
	if err != nil || errs != "" || !strings.HasPrefix(out, "REMOVED\n"+plan+"Removed from ") {
		t.Errorf("got error %v and\n%s%s", err, out, errs)
	}
	wantFiles(t, root, stays...)
	for _, folder := range []string{"registry.terraform.io/acme/gone", "registry.terraform.io/acme/demo/1.2.0", "other.example.com"} {
		if _, err := os.Stat(filepath.Join(root, "providers", folder)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", folder, err)
		}
	}

	out, _, err = runPruneCommand(t, "--root", root, "--own", "registry.example.com", dir)
	if err != nil || !strings.HasPrefix(out, "Removed from ") || !strings.Contains(out, ": 0 releases, 0 B. Kept: 3") {
		t.Errorf("the second time: got error %v and\n%s", err, out)
	}
}

// Without what says that it is not the package that was signed, it would be
// offered.
func TestPruneLeavesWithheldPackages(t *testing.T) {
	root, _ := prunable(t)
	bad := write(t, root, mirroredDir+"demo/terraform-provider-demo_1.1.0_darwin_arm64.zip", indextest.ProviderZip("demo", "1.1.0", "another"))
	out, errs, err := runPruneCommand(t, "--root", root, infra(t))
	if err != nil || !strings.Contains(out, "since the registry withholds it: 1 thing (`check` says why).") {
		t.Errorf("got error %v and\n%s%s", err, out, errs)
	}
	files := filesIn(t, root)
	for name, want := range map[string]bool{"linux_amd64.zip": false, "darwin_arm64.zip": true, "SHA256SUMS": true, "SHA256SUMS.sig": true} {
		if got := slices.Contains(files, mirroredDir+"demo/terraform-provider-demo_1.1.0_"+name); got != want {
			t.Errorf("%s is there: %v", name, got)
		}
	}
	snapshot, err := check(t.Context(), index.Directories{Root: root}, false, nil)
	if err != nil || slices.ContainsFunc(snapshot.Offered, func(o index.Offer) bool { return o.Version == "1.1.0" }) {
		t.Errorf("%s is offered now, error %v", bad, err)
	}
}

func TestPruneRefuses(t *testing.T) {
	root, _ := prunable(t)
	dir := t.TempDir()
	empty := write(t, dir, "empty.hcl", "")
	broken := t.TempDir()
	write(t, broken, "a/.terraform.lock.hcl", lock("registry.terraform.io/acme/demo", "1.0.0"))
	write(t, broken, "b/.terraform.lock.hcl", "provider {")
	before := filesIn(t, root)
	tests := []struct {
		rule string
		args []string
		want string
	}{
		{"no lock file", nil, "give the lock files"},
		{"a missing one", []string{filepath.Join(dir, "missing")}, "no such file"},
		{"a folder without one", []string{dir}, "there is no .terraform.lock.hcl in it or below"},
		{"one that names nothing", []string{empty}, "everything would be removed"},
		{"one of several that is broken", []string{broken}, "b/.terraform.lock.hcl:1: "},
		{"own of no hostname", []string{infra(t), "--own", "a..b"}, "--own: "},
		{"no root", []string{infra(t), "--root", ""}, "--root is required"},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			out, errs, err := runPruneCommand(t, append([]string{"--root", root}, test.args...)...)
			if err == nil || errors.Is(err, errLeft) || !strings.Contains(err.Error(), test.want) || out+errs != "" {
				t.Errorf("got error %v, want one with %q, and\n%s%s", err, test.want, out, errs)
			}
		})
	}
	wantFiles(t, root, before...)
}

// What cannot be removed does not stop the rest, and keeps what vouches for it.
func TestPruneReportsWhatItLeaves(t *testing.T) {
	tree := indextest.New(t)
	tree.Provider("registry.terraform.io/acme/demo", "1.0.0", "linux_amd64").Checksums()
	tree.Provider("registry.terraform.io/acme/demo", "1.1.0", "linux_amd64").Checksums()
	parts, _ := tree.Open()
	snapshot, err := index.Scan(t.Context(), index.Options{Open: tree.Open})
	if err != nil {
		t.Fatal(err)
	}
	parts.Providers.Fs = afero.NewReadOnlyFs(parts.Providers.Fs)
	h := newHoldings(parts.Providers, snapshot)
	p := &pruning{holdings: h, plan: upstream.Pruning{Remove: h.releases}}
	p.remove()
	var out, errs strings.Builder
	if err := p.write(&out, &errs); err != nil {
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
