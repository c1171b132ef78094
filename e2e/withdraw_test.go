package e2e_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// notice runs `caddy terraform-registry` with a subcommand that writes registry.hcl.
func (files *Tree) notice(command string, args ...string) {
	files.t.Helper()
	binary, err := caddyBinary()
	if err != nil {
		files.t.Fatal(err)
	}
	cmd := exec.CommandContext(beforeDeadline(files.t), binary, append([]string{"terraform-registry", command, "--root", files.Dir}, args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + files.t.TempDir()}
	if out, err := cmd.CombinedOutput(); err != nil {
		files.t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
}

// Clients print why versions of a provider are deprecated, even if another version is
// installed (#20, #21), and install them as before.
func TestDeprecatedProvider(t *testing.T) {
	t.Parallel()
	files := newTree(t).Provider("acme/demo", "1.0.0").Provider("acme/demo", "1.1.0")
	files.notice("deprecate", "acme/demo", "< 1.1", "--reason", "it greets nobody: use 1.1", "--link", "https://example.com/greetings")
	registry := startRegistry(t, site("registry.example.com", files))

	const warning = "version 1.0.0 is deprecated: it greets nobody: use 1.1 (https://example.com/greetings)"
	eachClient(t, func(t *testing.T, c Client) {
		for _, version := range []string{"1.0.0", "1.1.0"} {
			ws := newWorkspace(t, registry, greeting("registry.example.com/acme/demo", version))
			expect(t, c.Run(t, ws, "init"), "Additional provider information from registry", warning)
			expect(t, c.Run(t, ws, "apply", "-auto-approve"), `text = "hello world from `+version+`"`)
		}
	})
}

// No client chooses a withdrawn version. A client that has pinned or locked it fails
// until it is restored. While the registry runs, each change is served without a
// request for it.
func TestWithdrawnVersions(t *testing.T) {
	t.Parallel()
	files := newTree(t).
		Provider("acme/demo", "1.0.0").Provider("acme/demo", "1.1.0").
		Module("acme/vpc/aws", "1.0.0", asTarGz).Module("acme/vpc/aws", "1.1.0", asTarGz)
	registry := startRegistry(t, site("registry.example.com", files, "rescan off"))
	const versionsOfVPC = "https://registry.example.com/v1/modules/acme/vpc/aws/versions"
	listed := func(t *testing.T, want bool) {
		t.Helper()
		for _, url := range []string{versionsOfDemo, versionsOfVPC} {
			eventually(t, url+" has changed", func() bool { return registry.lists(t, url, "1.1.0") == want })
		}
	}
	module := func(constraint string) string { return calling("registry.example.com/acme/vpc/aws", constraint) }
	both := []string{"acme/demo", "acme/vpc/aws"}

	eachClient(t, func(t *testing.T, c Client) {
		locked := newWorkspace(t, registry, greeting("registry.example.com/acme/demo", ">= 1.0.0"))
		c.Run(t, locked, "init")
		if got := locked.Lock(t, "registry.example.com/acme/demo").Version; got != "1.1.0" {
			t.Fatalf("%s is chosen at first", got)
		}
		for _, address := range both {
			files.notice("withdraw", address, "1.1.0", "--reason", "CVE-2026-1")
		}
		listed(t, false)

		// A client continues with an installed version. Elsewhere the lock file fails.
		elsewhere := newWorkspace(t, registry, greeting("registry.example.com/acme/demo", ">= 1.0.0"))
		copyFile(t, locked.Dir+"/.terraform.lock.hcl", elsewhere.Dir+"/.terraform.lock.hcl")
		expect(t, c.Refused(t, elsewhere, "init"), "the previously-selected version 1.1.0 is no longer available")
		c.Run(t, elsewhere, "init", "-upgrade")
		if got := elsewhere.Lock(t, "registry.example.com/acme/demo").Version; got != "1.0.0" {
			t.Errorf("instead of what is withdrawn, %s is chosen", got)
		}
		expect(t, c.Refused(t, newWorkspace(t, registry, greeting("registry.example.com/acme/demo", "1.1.0")), "init"), "no available releases match the given constraints 1.1.0")

		expect(t, c.Refused(t, newWorkspace(t, registry, module("1.1.0")), "init"), "Unresolvable module version constraint")
		ws := newWorkspace(t, registry, module(">= 1.0.0"))
		c.Run(t, ws, "init")
		expect(t, c.Run(t, ws, "apply", "-auto-approve"), "acme/vpc/aws 1.0.0")

		// A request for the address of the package gets the reason.
		gone := registry.Get(t, strings.TrimSuffix(versionsOfVPC, "versions")+"1.1.0/download")
		if gone.Status != 410 || !strings.Contains(gone.Body, "acme/vpc/aws 1.1.0 is withdrawn: CVE-2026-1") {
			t.Errorf("the download gets %d %s", gone.Status, gone.Body)
		}

		for _, address := range both {
			files.notice("restore", address, "1.1.0")
		}
		listed(t, true)
		again := newWorkspace(t, registry, greeting("registry.example.com/acme/demo", ">= 1.0.0"))
		copyFile(t, locked.Dir+"/.terraform.lock.hcl", again.Dir+"/.terraform.lock.hcl")
		c.Run(t, again, "init", "-lockfile=readonly")
	})
}

// A bad release of another registry is withdrawn before any client has asked for it.
func TestWithdrawnInAMirror(t *testing.T) {
	t.Parallel()
	acme := publisher(t, "acme")
	published := newTree(t).
		Provider("acme/demo", "1.0.0", signedBy(acme)).
		Provider("acme/demo", "1.1.0", signedBy(acme)).
		Keys("acme", acme)
	outside := newOutside(t, published)
	files := newTree(t)
	files.notice("withdraw", demoOfOrigin, "1.1.0", "--reason", "it deletes everything")
	mirror := outside.StartMirror(t, mirrorOf("origin.example.com", files))

	eachClient(t, func(t *testing.T, c Client) {
		ws := newWorkspace(t, mirror, greeting(demoOfOrigin, ">= 1.0.0"))
		ws.CLIConfig(t, viaMirror)
		c.Run(t, ws, "init")
		if got := ws.Lock(t, demoOfOrigin).Version; got != "1.0.0" {
			t.Errorf("%s is chosen", got)
		}
		ws = newWorkspace(t, mirror, greeting(demoOfOrigin, "1.1.0"))
		ws.CLIConfig(t, viaMirror)
		c.Refused(t, ws, "init")
	})
	gone := mirror.Get(t, mirrored("origin.example.com", zipOfDemo("1.1.0", thisPlatform)))
	if gone.Status != 410 || !strings.Contains(gone.Body, "it deletes everything") {
		t.Errorf("the package gets %d %s", gone.Status, gone.Body)
	}
	for _, name := range files.files() {
		if strings.Contains(name, "1.1.0") {
			t.Errorf("%s was fetched", name)
		}
	}
}
