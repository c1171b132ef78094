package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Workspace is a user's machine and working directory: a configuration, a
// separate home folder, and a network that has only the registries of the test.
type Workspace struct {
	Dir string

	home string
	env  []string
}

// newWorkspace returns a workspace that trusts the registry's authority. Its
// main.tf is the given configuration.
func newWorkspace(t *testing.T, r *Registry, configuration string) *Workspace {
	t.Helper()
	home := t.TempDir()
	ws := &Workspace{Dir: filepath.Join(home, "work"), home: home}
	ws.env = []string{
		"PATH=" + os.Getenv("PATH"),
		"HOME=" + home,
		"TMPDIR=" + filepath.Join(home, "tmp"),
		"TF_CLI_CONFIG_FILE=" + filepath.Join(home, "cli.tfrc"),
		"TF_IN_AUTOMATION=1",
		"TF_INPUT=0",
		"CHECKPOINT_DISABLE=1",
		// The tests must also pass on a busy machine.
		"TF_REGISTRY_CLIENT_TIMEOUT=60",
		"HTTP_PROXY=" + r.Proxy.URL,
		"HTTPS_PROXY=" + r.Proxy.URL,
		"SSL_CERT_FILE=" + r.CA,
		// An empty folder, or the system's authorities would be trusted as
		// well.
		"SSL_CERT_DIR=" + filepath.Join(home, "tmp"),
		// curl prefers SSL_CERT_DIR to SSL_CERT_FILE.
		"CURL_CA_BUNDLE=" + r.CA,
		"GOGC=" + os.Getenv("GOGC"), // which .ci/run sets
	}
	if err := os.MkdirAll(filepath.Join(home, "tmp"), 0o755); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(home, "cli.tfrc"), "")
	ws.Write(t, "main.tf", configuration)
	return ws
}

// machineWithCaddy returns a workspace that reaches nothing, with `caddy-terraform-registry` on its
// PATH.
func machineWithCaddy(t *testing.T) *Workspace {
	t.Helper()
	ws := newWorkspace(t, &Registry{Proxy: newProxy(t)}, "")
	ws.InstallCaddy(t)
	return ws
}

// InstallCaddy puts `caddy-terraform-registry` on the PATH of the machine.
func (ws *Workspace) InstallCaddy(t *testing.T) {
	t.Helper()
	caddy, err := caddyBinary()
	if err != nil {
		t.Fatal(err)
	}
	ws.Install(t, "caddy-terraform-registry", caddy)
}

// Install puts a program on the PATH of the machine.
func (ws *Workspace) Install(t *testing.T, name, binary string) {
	t.Helper()
	bin := filepath.Join(ws.home, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(binary, filepath.Join(bin, name)); err != nil {
		t.Fatal(err)
	}
	ws.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
}

// Path returns the path of a file in the working directory.
func (ws *Workspace) Path(name string) string {
	return filepath.Join(ws.Dir, filepath.FromSlash(name))
}

// Write puts a file into the working directory.
func (ws *Workspace) Write(t *testing.T, name, text string) {
	t.Helper()
	writeFile(t, ws.Path(name), text)
}

// Shell runs commands of a document in a folder of the working directory, and returns
// what they print to the standard output. They must succeed.
func (ws *Workspace) Shell(t *testing.T, folder, commands string) string {
	t.Helper()
	cmd := exec.CommandContext(beforeDeadline(t), "bash", "-euo", "pipefail", "-c", commands)
	cmd.Dir, cmd.Env = filepath.Join(ws.Dir, filepath.FromSlash(folder)), ws.env
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", commands, err, out, stderr.String())
	}
	return string(out)
}

// CLIConfig writes the user's client configuration, ~/.terraformrc or
// ~/.tofurc.
func (ws *Workspace) CLIConfig(t *testing.T, text string) {
	t.Helper()
	writeFile(t, filepath.Join(ws.home, "cli.tfrc"), text)
}

// Setenv sets an environment variable of the client.
func (ws *Workspace) Setenv(name, value string) { ws.env = append(ws.env, name+"="+value) }

// Netrc writes the user's ~/.netrc, whose passwords HTTP clients may send.
func (ws *Workspace) Netrc(t *testing.T, text string) {
	t.Helper()
	writeFile(t, filepath.Join(ws.home, ".netrc"), text)
}

// Lock is an entry of the dependency lock file.
type Lock struct {
	Version string
	H1, ZH  []string // without the scheme, sorted
}

// Lock reads .terraform.lock.hcl. The address is HOSTNAME/NAMESPACE/TYPE.
func (ws *Workspace) Lock(t *testing.T, address string) Lock {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(ws.Dir, ".terraform.lock.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	_, block, found := strings.Cut(string(content), `provider "`+address+`" {`)
	if !found {
		t.Fatalf("%s is not in the lock file:\n%s", address, content)
	}
	block, _, _ = strings.Cut(block, "\n}")
	var l Lock
	if m := regexp.MustCompile(`version\s*=\s*"([^"]*)"`).FindStringSubmatch(block); m != nil {
		l.Version = m[1]
	}
	for _, m := range regexp.MustCompile(`"(h1|zh):([^"]*)"`).FindAllStringSubmatch(block, -1) {
		switch m[1] {
		case "h1":
			l.H1 = append(l.H1, m[2])
		case "zh":
			l.ZH = append(l.ZH, m[2])
		}
	}
	slices.Sort(l.H1)
	slices.Sort(l.ZH)
	return l
}
