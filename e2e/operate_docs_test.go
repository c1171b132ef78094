//go:build unix

package e2e_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const operateDocs = "docs/operate.md"

// The Caddyfiles of docs/operate.md are valid.
func TestOperateDocsCaddyfiles(t *testing.T) {
	t.Parallel()
	authority, err := browserAuthority() // any certificate and its key
	if err != nil {
		t.Fatal(err)
	}
	etc := t.TempDir()
	writeFile(t, filepath.Join(etc, "company-ca.pem"), string(authority.files["root.crt"]))
	writeFile(t, filepath.Join(etc, "cert.pem"), string(authority.files["root.crt"]))
	writeFile(t, filepath.Join(etc, "key.pem"), string(authority.files["root.key"]))
	for _, block := range codeBlocks(t, operateDocs, "caddyfile") {
		if strings.Contains(block, "signing_key") {
			continue // TestSigningKeyIsReplaced has the key
		}
		validateCaddyfile(t, strings.ReplaceAll(block, "/etc/caddy-terraform-registry", etc))
	}
}

// A site can have the metrics at a path, and the commands for the admin API work.
func TestOperateDocsMetrics(t *testing.T) {
	t.Parallel()
	_, err := exec.LookPath("curl")
	require(t, err)
	files := newTree(t).Module("acme/vpc/aws", "1.0.0", asTarGz)
	caddyfile := substitute(t, documented(t, operateDocs, "caddyfile", "metrics @prometheus"),
		"/srv", files.Dir, "\t\tremote_ip 10.0.0.5\n", "") // the connection has no IP address here
	registry := startRegistry(t, documentedSite(t, caddyfile))
	registry.Log.Wait(t, "it has scanned its tree", Entry.scan)

	metrics := registry.Get(t, "https://registry.example.com/metrics")
	expect(t, metrics.Body, "caddy_terraform_registry_offered{", "process_resident_memory_bytes ", "process_cpu_seconds_total ", "process_open_fds ", "process_max_fds ")

	commands := documented(t, operateDocs, "sh", "/terraform_registry/rescan")
	commands = substitute(t, commands, "curl ", `curl --unix-socket "`+registry.path("admin.sock")+`" `, "localhost:2019", "http://localhost")
	printed := newWorkspace(t, registry, "").Shell(t, ".", commands)
	if got := strings.Count(printed, `"`+files.Dir+`":`); got != 3 {
		t.Errorf("they print the root %d times:\n%s", got, printed)
	}
}

// A backup as in docs/operate.md makes the same registry on another machine: the report
// is the same, the same key signs, and lock files stay valid.
func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	const host = "registry.example.com"
	files := newTree(t).Provider("acme/demo", "1.0.0").Module("acme/vpc/aws", "1.0.0", asTarGz)
	writeFile(t, files.Path("keys/README.md"), "no keys\n")
	old := startRegistry(t, site(host, files))
	before := signatureOfDemo(t, old)
	locks := make(map[string]string) // by the client's version
	eachClient(t, func(t *testing.T, c Client) { locks[c.Version] = c.install(t, old, "", before.key) })

	backups, machine := t.TempDir(), newTree(t)
	commands := newWorkspace(t, old, "")
	commands.Setenv("XDG_DATA_HOME", old.path("data"))
	commands.operate(t, "--output - > /var/backups", old, files, backups)
	old.Stop(t)

	storage := t.TempDir()
	restored := newRegistry(t, newProxy(t))
	restored.onSocket()
	restored.options = append(restored.options, `storage file_system "`+storage+`"`)
	restored.CA = filepath.Join(storage, "pki", "authorities", "local", "root.crt")
	restored.configure(t, []Site{site(host, machine)})
	commands.operate(t, "storage import", restored, machine, backups)
	restored.start(t, []Site{site(host, machine)})
	if after := signatureOfDemo(t, restored); after != before {
		t.Errorf("the release has the signature %+v, had %+v", after, before)
	}
	eachClient(t, func(t *testing.T, c Client) { c.install(t, restored, locks[c.Version], before.key) })
}

// Both ways in docs/operate.md to replace the registry's key work. Clients are told the
// new key, and lock files stay valid.
func TestSigningKeyIsReplaced(t *testing.T) {
	t.Parallel()
	const host = "registry.example.com"
	files := newTree(t).Provider("acme/demo", "1.0.0")
	registry := startRegistry(t, site(host, files))
	first := signatureOfDemo(t, registry)
	locks := make(map[string]string) // by the client's version
	eachClient(t, func(t *testing.T, c Client) { locks[c.Version] = c.install(t, registry, "", first.key) })
	commands := newWorkspace(t, registry, "")
	commands.Setenv("XDG_DATA_HOME", registry.path("data"))
	replaced := func(by string, before releaseSignature) releaseSignature {
		t.Helper()
		var now releaseSignature
		eventually(t, "releases are signed with the key that is "+by, func() bool {
			now = signatureOfDemo(t, registry)
			return now.key != before.key
		})
		if now.checksums != before.checksums {
			t.Errorf("SHA256SUMS is %s, was %s", now.checksums, before.checksums)
		}
		eachClient(t, func(t *testing.T, c Client) { c.install(t, registry, locks[c.Version], now.key) })
		return now
	}

	registry.ReloadBy(t, func() {
		commands.Shell(t, ".", substitute(t, documented(t, operateDocs, "sh", "rm /var/lib/caddy"),
			"sudo -u caddy-terraform-registry -H ", "", "caddy-terraform-registry storage", quotedCaddy(t)+" storage",
			"caddy-terraform-registry reload", quotedCaddy(t)+" reload", "/etc/caddy-terraform-registry/Caddyfile", registry.path("Caddyfile"),
			"/var/lib/caddy-terraform-registry/caddy", registry.path("data", "caddy")))
	}, site(host, files))
	second := replaced("generated", first)

	file := filepath.Join(t.TempDir(), "signing_key.asc")
	writeFile(t, file, privateKey(t))
	validateCaddyfile(t, substitute(t, documented(t, operateDocs, "caddyfile", "signing_key"), "/etc/caddy-terraform-registry/signing_key.asc", file))
	registry.Reload(t, site(host, files, `signing_key "`+file+`"`))
	replaced("configured", second)
}

// The command in docs/operate.md adds a publisher's new key to the keys of its
// namespace.
func TestPublishersKeyIsAdded(t *testing.T) {
	t.Parallel()
	acme, other := publisher(t, "acme"), publisher(t, "other")
	files := newTree(t).Provider("acme/demo", "1.0.0", signedBy(acme)).Keys("acme", other)
	if report, _ := check(t, files); len(report.Offered) != 0 {
		t.Fatalf("without the key %v is offered", report.Offered)
	}
	command := substitute(t, documented(t, operateDocs, "sh", "NEW_KEY_ID"), "NEW_KEY_ID", acme.KeyID(t), "/srv", files.Dir)
	gpgLock.Lock()
	defer gpgLock.Unlock()
	cmd := exec.CommandContext(beforeDeadline(t), "bash", "-euo", "pipefail", "-c", command)
	cmd.Env = append(os.Environ(), "GNUPGHOME="+gpgHome())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
	if report, _ := check(t, files); len(report.Offered) != 1 || len(report.Withheld) != 0 {
		t.Errorf("with the key %v is offered, and withheld: %v", report.Offered, report.Withheld)
	}
}

// The command for a registry on one machine serves it over HTTPS, and prints the
// certificate that clients have to trust.
func TestOperateDocsOneMachine(t *testing.T) {
	t.Parallel()
	files := newTree(t).Module("acme/vpc/aws", "1.0.0", asTarGz)
	_, port := freePorts(t)
	home := t.TempDir()
	command := substitute(t, documented(t, operateDocs, "sh", "--internal-certs"),
		"caddy-terraform-registry ", "exec "+quotedCaddy(t)+" terraform-registry ", "./tree", files.Dir, "8443", port)
	shareSigningKey(t, filepath.Join(home, ".local", "share", "caddy"))
	cmd := exec.CommandContext(beforeDeadline(t), "bash", "-c", command)
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_DATA_HOME=", "XDG_CONFIG_HOME=")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cmd.Process.Kill()
		cmd.Wait()
		if t.Failed() {
			t.Logf("the server says:\n%s", &stderr)
		}
	}()
	expect(t, readUntil(stdout, "export SSL_CERT_FILE="), filepath.Join("pki", "authorities", "local", "root.crt"))
	negotiated(t, endpoint{"tcp", "127.0.0.1:" + port}, "127.0.0.1", "http/1.1")
}

// operate runs the commands of docs/operate.md that have a text, for a registry with a
// tree.
func (ws *Workspace) operate(t *testing.T, text string, r *Registry, files *Tree, backups string) {
	t.Helper()
	commands := documented(t, operateDocs, "sh", text)
	commands = strings.ReplaceAll(commands, "sudo -u caddy-terraform-registry -H caddy-terraform-registry", quotedCaddy(t))
	commands = strings.ReplaceAll(commands, "/tmp/report.json", filepath.Join(ws.home, "report.json"))
	ws.Shell(t, ".", substitute(t, commands, "caddy-terraform-registry check", quotedCaddy(t)+" terraform-registry check",
		"/etc/caddy-terraform-registry/Caddyfile", r.path("Caddyfile"), "/var/backups", backups, "/srv", files.Dir))
}

func quotedCaddy(t *testing.T) string {
	t.Helper()
	binary, err := caddyBinary()
	if err != nil {
		t.Fatal(err)
	}
	return `"` + binary + `"`
}

// install runs init for acme/demo in a new workspace with a lock file, and returns the
// lock file. Unless it was empty, it must stay unchanged. The client prints the ID of
// the key.
func (c Client) install(t *testing.T, r *Registry, lock, key string) string {
	t.Helper()
	const name = ".terraform.lock.hcl"
	ws := newWorkspace(t, r, greeting("registry.example.com/acme/demo", "1.0.0"))
	args := []string{"init"}
	if lock != "" {
		ws.Write(t, name, lock)
		args = append(args, "-lockfile=readonly")
	}
	expect(t, c.Run(t, ws, args...), "key ID "+key)
	content, err := os.ReadFile(filepath.Join(ws.Dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// A releaseSignature describes the signature of a release.
type releaseSignature struct{ key, checksums, signature string }

// signatureOfDemo returns the signature of acme/demo 1.0.0 by the registry.
func signatureOfDemo(t *testing.T, r *Registry) releaseSignature {
	t.Helper()
	os, arch, _ := strings.Cut(thisPlatform, "_")
	const release = "/terraform-provider-demo_1.0.0_SHA256SUMS"
	const mirror = "https://registry.example.com/v1/mirror/registry.example.com/acme/demo"
	download := r.Get(t, "https://registry.example.com/v1/providers/acme/demo/1.0.0/download/"+os+"/"+arch)
	s := releaseSignature{checksums: r.Get(t, mirror+release).Body, signature: r.Get(t, mirror+release+".sig").Body}
	s.key = keyIDs(t, download)[0]
	return s
}

// privateKey makes a key by the commands of docs/operate.md, and returns it.
func privateKey(t *testing.T) string {
	t.Helper()
	_, err := exec.LookPath("gpg")
	require(t, err)
	home, err := os.MkdirTemp(runDir, "gpg") // the agent's sockets are in it: see runDir
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = exec.Command("gpgconf", "--homedir", home, "--kill", "gpg-agent").Run() })
	file := filepath.Join(home, "signing_key.asc")
	commands := substitute(t, documented(t, operateDocs, "sh", "--export-secret-keys"), "/etc/caddy-terraform-registry/signing_key.asc", file)
	cmd := exec.CommandContext(beforeDeadline(t), "bash", "-euo", "pipefail", "-c", commands)
	cmd.Env = append(os.Environ(), "GNUPGHOME="+home)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", commands, err, out)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
