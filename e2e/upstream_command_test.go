package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// command runs `caddy terraform-registry` with a subcommand, on a machine that
// reaches the outside. It fails the test if the command fails.
func (o *Outside) command(t *testing.T, args ...string) string {
	t.Helper()
	binary, err := caddyBinary()
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	cmd := exec.CommandContext(beforeDeadline(t), binary, append([]string{"terraform-registry"}, args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "HTTPS_PROXY=" + o.Proxy.URL, "SSL_CERT_FILE=" + o.Origin.CA, "SSL_CERT_DIR=" + home}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
	return string(out)
}

// A machine with internet access fills a folder with the releases in a lock
// file. On a machine without, exactly these can be installed from the folder.
// Releases that no lock file names any more can be removed.
func TestMirrorAndPrune(t *testing.T) {
	t.Parallel()
	acme := publisher(t, "acme")
	published := newTree(t).
		Provider("acme/demo", "1.0.0", signedBy(acme)).
		Provider("acme/demo", "1.1.0", signedBy(acme)).
		Keys("acme", acme)
	outside := newOutside(t, published)
	two := threePlatforms()[:2]

	eachClient(t, func(t *testing.T, c Client) {
		project := newWorkspace(t, outside.Origin, greeting(demoOfOrigin, "1.0.0"))
		c.Run(t, project, "init")
		lockFile := filepath.Join(project.Dir, ".terraform.lock.hcl")

		files := newTree(t)
		mirror := func(args ...string) string {
			t.Helper()
			return outside.command(t, append([]string{"mirror", "--root", files.Dir, "--platform", two[0], "--platform", two[1]}, args...)...)
		}
		mirror(lockFile)
		isPlainTree(t, published, files, map[string][]string{"1.0.0": two})
		mirror(lockFile, demoOfOrigin)
		present := map[string][]string{"1.0.0": two, "1.1.0": two}
		isPlainTree(t, published, files, present)

		outside.command(t, "prune", "--root", files.Dir, "--own", "", "--dry-run", project.Dir)
		isPlainTree(t, published, files, present)
		if out := outside.command(t, "prune", "--root", files.Dir, "--own", "", project.Dir); !strings.Contains(out, "1.1.0") || strings.Contains(out, "1.0.0") {
			t.Errorf("its output is: %s", out)
		}
		isPlainTree(t, published, files, map[string][]string{"1.0.0": two})

		offline := startRegistry(t, site("mirror.example.com", files))
		ws := newWorkspace(t, offline, greeting(demoOfOrigin, "1.0.0"))
		ws.CLIConfig(t, viaMirror)
		copyFile(t, lockFile, filepath.Join(ws.Dir, ".terraform.lock.hcl"))
		c.Run(t, ws, "init", "-lockfile=readonly")
		expect(t, c.Run(t, ws, "apply", "-auto-approve"), `text = "hello world from 1.0.0"`)
		if asked := slices.Compact(offline.Proxy.Asked()); len(asked) != 1 {
			t.Errorf("the client connected to %v", asked)
		}
	})
}
