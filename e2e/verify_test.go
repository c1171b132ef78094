package e2e_test

import (
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// verify runs `caddy-terraform-registry verify` in the working directory, and returns its exit
// status and its output, in which it is one space between words.
func (ws *Workspace) verify(t *testing.T, args ...string) (status int, out string) {
	t.Helper()
	binary, err := caddyBinary()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(beforeDeadline(t), binary, append([]string{"terraform-registry", "verify"}, args...)...)
	cmd.Dir, cmd.Env = ws.Dir, ws.env
	text, err := cmd.CombinedOutput()
	if failed := new(exec.ExitError); err != nil && !errors.As(err, &failed) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), strings.Join(strings.Fields(string(text)), " ")
}

// verified fails the test unless verify ends with a status and says something.
func (ws *Workspace) verified(t *testing.T, rule string, status int, says ...string) {
	t.Helper()
	got, out := ws.verify(t)
	if got != status {
		t.Errorf("%s: the status is %d, want %d:\n%s", rule, got, status, out)
	}
	expect(t, out, says...)
}

// tampered adds a byte to a file, and returns a function that takes it away again.
func (ws *Workspace) tampered(t *testing.T, pattern string) (restore func()) {
	t.Helper()
	found, err := filepath.Glob(ws.Path(pattern))
	if err != nil || len(found) != 1 {
		t.Fatalf("%s is %v, %v", pattern, found, err)
	}
	before, err := os.ReadFile(found[0])
	if err == nil {
		err = os.WriteFile(found[0], append(before[:len(before):len(before)], '\n'), 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.WriteFile(found[0], before, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// onRecord waits until the log has a version.
func (r *Registry) onRecord(t *testing.T, path string) {
	t.Helper()
	eventually(t, path+" is on record", func() bool { return r.Get(t, tlogURL+"lookup/"+path).Status == http.StatusOK })
}

const verifiedModules = `
module "vpc" {
  source  = "registry.example.com/acme/vpc/aws"
  version = "1.0.0"
}

module "again" {
  source  = "registry.example.com/acme/vpc/aws"
  version = "1.0.0"
}

module "subnet" {
  source  = "registry.example.com/acme/vpc/aws//modules/subnet"
  version = "1.0.0"
}

module "public" {
  source  = "registry.terraform.io/acme/vpc/aws"
  version = "1.0.0"
}
`

// Packages that clients have installed are as on record, wherever they are, and a byte that
// differs is found.
func TestVerify(t *testing.T) {
	t.Parallel()
	acme := publisher(t, "acme")
	files := publicTree(t, acme, publicRegistry).OnlyThisPlatform("registry.terraform.io/acme/demo", "1.0.0").
		Provider("acme/demo-beta", "1.0.0", signedBy(acme)).Keys("acme", acme).
		Module("acme/vpc/aws", "1.0.0", asTarGz)
	registry := startRegistry(t, site("registry.example.com", files, "hostname registry.example.com", "tlog "+t.TempDir()))
	for _, path := range []string{"providers/acme/demo-beta/1.0.0", "providers/registry.terraform.io/acme/demo/1.0.0", "modules/acme/vpc/aws/1.0.0", "modules/registry.terraform.io/acme/vpc/aws/1.0.0"} {
		registry.onRecord(t, path)
	}
	standIn := strings.ReplaceAll(standingIn(publicRegistry), "mirror.example.com", "registry.example.com")
	mirror := "provider_installation {\n  network_mirror {\n    url = \"https://registry.example.com/v1/mirror/\"\n  }\n}\n"
	configuration := greeting("registry.terraform.io/acme/demo", "1.0.0")
	hosted := strings.Replace(configuration, "required_providers {", "required_providers {\n    beta = { source = \"registry.example.com/acme/demo-beta\" }", 1)

	eachClientSince013(t, func(t *testing.T, c Client) {
		packages := "/providers/registry.terraform.io/acme/demo/1.0.0/"
		if !c.hasLockFile() {
			packages = "/plugins/registry.terraform.io/acme/demo/1.0.0/"
		}
		t.Run("stand-in", func(t *testing.T) {
			ws := newWorkspace(t, registry, hosted)
			ws.Write(t, "modules.tf", verifiedModules)
			ws.CLIConfig(t, standIn)
			c.Run(t, ws, "init")
			ws.verified(t, "as init leaves it", 0, "is used for the first time here", "As on record: 4 of 4 versions.")
			ws.verified(t, "by what has been kept", 0, "As on record: 4 of 4 versions.")

			restore := ws.tampered(t, ".terraform/modules/vpc/main.tf")
			ws.verified(t, "a byte of a module", 1, "registry.example.com/acme/vpc/aws 1.0.0 other bytes: .terraform/modules/vpc:", "changed main.tf", "As on record: 3 of 4 versions. With findings: 1.")
			restore()
			restore = ws.tampered(t, ".terraform"+packages+"*/terraform-provider-demo*")
			ws.verified(t, "a byte of a provider's binary", 1, "registry.terraform.io/acme/demo 1.0.0 other bytes: .terraform"+packages)
			restore()
			if !c.hasLockFile() {
				return
			}
			lock := ws.lockFile(t)
			ws.Write(t, ".terraform.lock.hcl", strings.Replace(lock, `"zh:`, `"zh:`+strings.Repeat("0", 64)+"\",\n    \"zh:", 1))
			ws.verified(t, "a hash in the lock file", 1, "other bytes: .terraform.lock.hcl:", "hashes in the lock file are in no entry, and they are not in SHA256SUMS either: zh:0000")
			ws.Write(t, ".terraform.lock.hcl", lock)
			ws.verified(t, "all is restored", 0, "As on record: 4 of 4 versions.")
		})
		t.Run("mirror", func(t *testing.T) {
			ws := newWorkspace(t, registry, configuration)
			ws.CLIConfig(t, mirror)
			ws.Setenv("TF_DATA_DIR", "data")
			cache := filepath.Join(ws.home, "plugins")
			if err := os.Mkdir(cache, 0o755); err != nil {
				t.Fatal(err)
			}
			ws.Setenv("TF_PLUGIN_CACHE_DIR", cache)
			c.Run(t, ws, "init")
			ws.verified(t, "a mirror, a plugin cache and another folder", 0, "As on record: 1 of 1 version.")
			c.Run(t, ws, "init")
			restore := ws.tampered(t, "../plugins/registry.terraform.io/acme/demo/1.0.0/*/terraform-provider-demo*")
			ws.verified(t, "a byte in the plugin cache", 1, "other bytes: data"+packages)
			restore()
		})
	})
}

// firstClient runs a test with one client.
func firstClient(t *testing.T, test func(t *testing.T, c Client)) {
	t.Helper()
	for _, c := range clients() {
		if c.missing == nil {
			test(t, c)
			return
		}
	}
	require(t, clients()[0].missing)
}

// A change in the registry is found.
func TestVerifyFindsWhatTheRegistryHasChanged(t *testing.T) {
	t.Parallel()
	acme := publisher(t, "acme")
	files := newTree(t).Provider("acme/demo", "1.0.0", signedBy(acme)).Keys("acme", acme).Module("acme/vpc/aws", "1.0.0", asTarGz)
	log := t.TempDir()
	s := site("registry.example.com", files, "hostname registry.example.com", "rescan 1s", "tlog "+log)
	registry := startRegistry(t, s)
	registry.onRecord(t, "providers/acme/demo/1.0.0")
	registry.onRecord(t, "modules/acme/vpc/aws/1.0.0")
	configuration := greeting("registry.example.com/acme/demo", "1.0.0")
	call := calling("registry.example.com/acme/vpc/aws", "1.0.0")
	call = call[:strings.Index(call, "output")]

	firstClient(t, func(t *testing.T, c Client) {
		ws := newWorkspace(t, registry, configuration+call)
		c.Run(t, ws, "init")
		ws.verified(t, "as init leaves it", 0, "As on record: 2 of 2 versions.")

		files.notice("deprecate", "acme/vpc/aws", "< 2", "--reason", "use version 2")
		files.notice("withdraw", "acme/demo", "1.0.0", "--reason", "it deletes everything")
		eventually(t, "the withdrawal is on record", func() bool {
			return strings.Contains(registry.Get(t, tlogURL+"lookup/providers/acme/demo/1.0.0").Body, "withdrawn ")
		})
		ws.verified(t, "a version withdrawn since", 1, "registry.example.com/acme/demo 1.0.0 withdrawn: acme/demo 1.0.0 is withdrawn: it deletes everything", "DEPRECATED registry.example.com/acme/vpc/aws 1.0.0 use version 2")
		files.notice("restore", "acme/demo", "1.0.0")
		eventually(t, "it is restored", func() bool {
			return strings.Contains(registry.Get(t, tlogURL+"lookup/providers/acme/demo/1.0.0").Body, "restored ")
		})
		ws.verified(t, "a version restored", 0, "As on record: 2 of 2 versions.")

		// Another copy of the log, an older one, and another log.
		backup := t.TempDir()
		if err := os.CopyFS(backup, os.DirFS(log)); err != nil {
			t.Fatal(err)
		}
		files.Module("acme/vpc/aws", "1.1.0", asTarGz)
		registry.onRecord(t, "modules/acme/vpc/aws/1.1.0")
		if status, out := ws.verify(t, "--update"); status != 0 {
			t.Errorf("an update has the status %d:\n%s", status, out)
		}
		pinned := func() string {
			t.Helper()
			content, err := os.ReadFile(ws.Path(".terraform-registry.checkpoint"))
			if err != nil {
				t.Fatal(err)
			}
			return string(content)
		}
		before := pinned()
		storage := registry.path("data", "caddy", "terraform_registry", "tlog")
		changed := func(rule string, change func(), says ...string) {
			t.Helper()
			registry.Stop(t)
			change()
			registry.start(t, []Site{s})
			eventually(t, "the log can be read", func() bool { return registry.Get(t, tlogURL+"checkpoint").Status == http.StatusOK })
			registry.onRecord(t, "modules/acme/vpc/aws/1.0.0")
			ws.verified(t, rule, 1, append(says, "THE LOG IS NOT WHAT IT WAS", "It was seen before:", "It is shown now:", "unproven")...)
			if pinned() != before {
				t.Errorf("%s: the file is rewritten", rule)
			}
		}
		remove := func(paths ...string) {
			t.Helper()
			for _, path := range paths {
				if err := os.RemoveAll(path); err != nil {
					t.Fatal(err)
				}
			}
		}
		restore := func(dir string) {
			t.Helper()
			remove(log)
			if err := os.CopyFS(log, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
		}
		anchors, err := filepath.Glob(filepath.Join(storage, "*", "checkpoint"))
		if err != nil || len(anchors) != 1 {
			t.Fatalf("the newest checkpoint is in %v, %v", anchors, err)
		}
		changed("an older backup of everything", func() {
			restore(backup)
			remove(anchors[0], files.Path("modules/acme/vpc/aws/1.1.0.tar.gz"))
		}, ": shrank")
		changed("a fork with the same key", func() {
			restore(backup)
			remove(anchors[0])
			files.Module("acme/vpc/aws", "1.2.0", asTarGz)
			files.Module("acme/vpc/aws", "1.3.0", asTarGz)
		}, ": forked")
		changed("another key", func() {
			remove(log, storage)
			if err := os.Mkdir(log, 0o755); err != nil {
				t.Fatal(err)
			}
		}, ": other key")
	})
}

// A file that is replaced in the tree is not served, until the first one is back.
func TestAFileThatWasReplacedIsNotServed(t *testing.T) {
	t.Parallel()
	files := newTree(t).Module("acme/vpc/aws", "1.0.0", asTarGz)
	registry := startRegistry(t, site("registry.example.com", files, "hostname registry.example.com", "rescan 1s", "tlog "+t.TempDir()))
	registry.onRecord(t, "modules/acme/vpc/aws/1.0.0")
	const location = "https://registry.example.com/v1/modules/acme/vpc/aws/1.0.0/download"
	name := files.Path("modules/acme/vpc/aws/1.0.0.tar.gz")
	first, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	asTarGz(t, files.Path("modules/acme/vpc/aws/1.0.0"), map[string]string{"main.tf": `output "text" { value = "evil" }`})
	eventually(t, "the module is withheld", func() bool { return registry.Get(t, location).Status == http.StatusNotFound })
	if err := os.WriteFile(name, first, 0o644); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the module is offered", func() bool { return registry.Get(t, location).Status == http.StatusNoContent })
	firstClient(t, func(t *testing.T, c Client) {
		ws := newWorkspace(t, registry, calling("registry.example.com/acme/vpc/aws", "1.0.0"))
		c.Run(t, ws, "init")
		ws.verified(t, "the first files", 0, "registry.example.com/acme/vpc/aws 1.0.0 from the start ok")
	})
}

// A monitor prints each new entry once.
func TestWatch(t *testing.T) {
	t.Parallel()
	files := newTree(t).Module("acme/vpc/aws", "1.0.0", asTarGz)
	registry := startRegistry(t, site("registry.example.com", files, "hostname registry.example.com", "tlog "+t.TempDir()))
	registry.onRecord(t, "modules/acme/vpc/aws/1.0.0")
	ws := newWorkspace(t, registry, "")
	ws.InstallCaddy(t)
	command := documented(t, "docs/verify.md", "sh", "--watch")
	watch := func(says string) {
		t.Helper()
		out := ws.Shell(t, ".", "{ "+strings.TrimSpace(command)+"; } 2>&1")
		out = strings.Join(strings.Fields(out), " ")
		if !strings.Contains(out, says) || says == "" && out != "" {
			t.Errorf("it prints\n%s", out)
		}
	}
	watch("is used for the first time here. It has 1 entry")
	watch("")
	files.Module("acme/vpc/aws", "1.1.0", asTarGz)
	files.Module("other/vpc/aws", "1.0.0", asTarGz)
	registry.onRecord(t, "modules/acme/vpc/aws/1.1.0")
	registry.onRecord(t, "modules/other/vpc/aws/1.0.0")
	watch(" offered module acme/vpc/aws 1.1.0")
	watch("")
}

// Users who may read a part of a registry verify that part, with the token that clients send.
func TestVerifyPrivate(t *testing.T) {
	t.Parallel()
	tokens := newTokens(t)
	reader := tokens.New("reader")
	files := newTree(t).Provider("acme/demo", "1.0.0").Module("acme/vpc/aws", "1.0.0", asTarGz).Module("secret/vpc/aws", "1.0.0", asTarGz)
	registry := startRegistry(t, site("registry.example.com", files, "hostname registry.example.com",
		"auth terraform_tokens "+tokens.File, "access {\n\tallow reader read acme\n}", "tlog "+t.TempDir()))
	call := calling("registry.example.com/acme/vpc/aws", "1.0.0")
	firstClient(t, func(t *testing.T, c Client) {
		ws := newWorkspace(t, registry, greeting("registry.example.com/acme/demo", "1.0.0")+call[:strings.Index(call, "output")])
		ws.CLIConfig(t, "credentials \"registry.example.com\" {\n  token = \""+reader+"\"\n}\n")
		c.Run(t, ws, "init")
		eventually(t, "it is on record", func() bool {
			status, _ := ws.verify(t)
			return status == 0
		})
		ws.verified(t, "with the token of clients", 0, "As on record: 2 of 2 versions.")
		ws.InstallCaddy(t)
		ws.Shell(t, ".", documented(t, "docs/verify.md", "sh", "verify\n"))
		if status, out := ws.verify(t, "--watch", "registry.example.com", "--once"); status != 2 || !strings.Contains(out, "who watches a log must be allowed to read everything") {
			t.Errorf("watching has the status %d:\n%s", status, out)
		}
		ws.CLIConfig(t, "")
		ws.Setenv("XDG_CACHE_HOME", ws.Path("other"))
		ws.verified(t, "without a token", 2, "it answered 401 Unauthorized", "Not known: 2.")
	})
}
