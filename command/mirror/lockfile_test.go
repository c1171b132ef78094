package mirror

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
	"github.com/caddy-terraform/caddy-terraform-registry/command/commandtest"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/lockfile"
)

// Where a lock file lacks providers that the configuration beside it requires, init
// would fail although everything in the lock file is mirrored.
func TestMirrorFromALockFileThatLacks(t *testing.T) {
	o := newAcme(t)
	const demo, null = `demo = { source = "registry.example.com/acme/demo", version = "~> 1.0" }`, `null = { source = "hashicorp/null" }`
	require := func(providers ...string) string {
		return "terraform {\n required_providers {\n  " + strings.Join(providers, "\n  ") + "\n }\n}\n"
	}
	other := `other = { source = "registry.example.com/acme/other" }`
	locked := lock(originHost+"/acme/demo", "1.0.0")
	for _, test := range []struct {
		rule, config, lock string
		args               []string
		says               string // empty: it covers it
	}{
		{"everything is locked", require(demo), locked, nil, ""},
		{"a provider is missing", require(demo, other), locked, nil, "registry.example.com/acme/other: it is not in "},
		{"another version is locked", require(strings.Replace(demo, "~> 1.0", "> 1.0.0", 1)), locked, nil, "registry.example.com/acme/demo@> 1.0.0: 1.0.0 is locked at "},
		{"a provider of a module is missing", require(demo) + "module \"m\" { source = \"./m\" }\n", locked, nil, "registry.example.com/acme/other: it is not in "},
		{"modules that are not local are ignored", require(demo) + "module \"m\" { source = \"acme/vpc/aws\" }\n", locked, nil, ""},
		{"a provider that is left out is missing", require(demo, `mine = { source = "own.example.com/acme/mine" }`), locked, []string{"--own", "own.example.com"}, ""},
		{"a configuration that cannot be read", "terraform {", locked, nil, ""},
		{"no configuration", "", locked, nil, ""},
	} {
		t.Run(test.rule, func(t *testing.T) {
			dir := t.TempDir()
			if test.config != "" {
				commandtest.Write(t, dir, "main.tf", test.config)
			}
			commandtest.Write(t, dir, "m/main.tf", require(other))
			commandtest.Write(t, dir, ".terraform.lock.hcl", test.lock)
			out, errs, err := o.mirror(t, t.TempDir(), append(test.args, dir)...)
			if !strings.Contains(out, "1 package, ") {
				t.Errorf("what is locked was not mirrored:\n%s", out)
			}
			if (test.says != "") != errors.Is(err, cli.ErrProblem) || !strings.Contains(errs, test.says) || (test.says == "") != (errs == "") {
				t.Errorf("got error %v and\n%s", err, errs)
			}
			if test.says != "" && !strings.Contains(errs, "terraform providers lock") {
				t.Errorf("it does not say what to do:\n%s", errs)
			}
		})
	}
	// The same source is of another registry for each client, and the lock file may be
	// of either client.
	dir := t.TempDir()
	commandtest.Write(t, dir, "main.tf", require(null))
	commandtest.Write(t, dir, ".terraform.lock.hcl", lock("registry.opentofu.org/hashicorp/null", "3.2.2"))
	for _, tofu := range []bool{false, true} {
		q := mirrorRequest{tofu: tofu}
		if err := q.readArguments([]string{dir}, false); err != nil || len(q.unlocked) > 0 {
			t.Errorf("tofu %v: got %v, %v", tofu, q.unlocked, err)
		}
	}
}

// Terraform 0.13 leaves providers of a legacy namespace in lock files.
func TestMirrorSkipsLegacyProviders(t *testing.T) {
	o := newAcme(t)
	file := commandtest.Write(t, t.TempDir(), "copy.hcl", lock("registry.terraform.io/-/null", "3.2.2")+lock(originHost+"/acme/demo", "1.0.0"))
	out, errs, err := o.mirror(t, t.TempDir(), file)
	if err != nil || !strings.Contains(out, "Skipped, since no registry has legacy providers: registry.terraform.io/-/null (") || !strings.Contains(out, "1 package, ") {
		t.Errorf("got error %v and\n%s%s", err, out, errs)
	}
}

// A missing folder is created, but not by a dry run, nor by a command that fails
// before it begins, nor by prune.
func TestMirrorMakesItsFolder(t *testing.T) {
	o := newAcme(t)
	root := filepath.Join(t.TempDir(), "not", "yet")
	missing := func() {
		t.Helper()
		if _, err := os.Stat(filepath.Dir(root)); err == nil {
			t.Error("it is made")
		}
	}
	out, errs, err := o.mirror(t, root, originHost+"/acme/demo", "--dry-run")
	if err != nil || !strings.Contains(out, "Would be added to "+filepath.Join(root, "providers")+": 1 package.") {
		t.Errorf("a dry run: got error %v and\n%s%s", err, out, errs)
	}
	missing()
	if _, _, err := o.mirror(t, root, originHost+"/acme/demo", "--platform", "nothing"); err == nil {
		t.Error("no error")
	}
	missing()
	if out, _, err := commandtest.Run(t.Context(), PruneCommand(), "--root", root, commandtest.Write(t, t.TempDir(), "copy.hcl", lock(originHost+"/acme/demo", "1.0.0"))); err == nil || !strings.Contains(err.Error(), "there is no folder "+root) {
		t.Errorf("prune: got error %v and %s", err, out)
	}
	missing()
	if out, errs, err := o.mirror(t, root, originHost+"/acme/demo", "--keys", filepath.Join(root, "other", "keys")); err != nil {
		t.Errorf("got error %v and\n%s%s", err, out, errs)
	}
	wantFiles(t, root, append(release("1.1.0", "linux_amd64"), "other/"+demoKeys, demoLists, announced("1.1.0"))...)
}

// A dry run reports a folder that cannot be read as a failure.
func TestMirrorDryRunOfWhatCannotBeRead(t *testing.T) {
	o := newAcme(t)
	root := t.TempDir()
	indextest.OnDisk(t, root).Provider(originHost+"/acme/demo", "1.1.0", "linux_amd64")
	// A symlink to itself: root can read whatever permissions say.
	name := filepath.Join(root, demoDir, "terraform-provider-demo_1.1.0_linux_amd64.zip")
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Base(name), name); err != nil {
		t.Fatal(err)
	}
	out, errs, err := o.mirror(t, root, originHost+"/acme/demo", "--dry-run")
	if !errors.Is(err, cli.ErrProblem) || strings.Contains(out, "WOULD BE ADDED") || !strings.Contains(errs, "cannot be read and written") {
		t.Errorf("got error %v and\n%s%s", err, out, errs)
	}
}

// A lock file that is there and cannot be read is not a missing one, without which the newest
// versions would be fetched.
func TestMirrorFromALockFileThatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	commandtest.Write(t, dir, "main.tf", "")
	if err := os.Symlink("nothing", filepath.Join(dir, lockfile.Name)); err != nil {
		t.Fatal(err)
	}
	if err := new(mirrorRequest).readArguments([]string{dir}, false); err == nil || !strings.Contains(err.Error(), lockfile.Name) {
		t.Errorf("got %v", err)
	}
}
