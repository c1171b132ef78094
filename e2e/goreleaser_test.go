package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// goReleaser is built from its Go module, at the version that goreleaser/go.mod
// pins.
var goReleaser = sync.OnceValues(func() (string, error) { return goTool("goreleaser") })

// Project is the git repository of a provider: the sample provider with the files
// that docs/publish.md has for GoReleaser.
type Project struct {
	Dir string

	ws      *Workspace
	gpgHome string
}

// newProject returns a project on a machine that trusts the registry, with the key
// that docs/publish.md says to create. The provider is built for this platform only.
func newProject(t *testing.T, r *Registry) *Project {
	t.Helper()
	ws := newWorkspace(t, r, "")
	p := &Project{Dir: filepath.Join(ws.home, "terraform-provider-demo"), ws: ws}
	if err := os.CopyFS(p.Dir, os.DirFS(filepath.Join(repository(), "testdata", "provider"))); err != nil {
		t.Fatal(err)
	}
	p.Write(t, ".goreleaser.yml", substitute(t, documented(t, publishDocs, "yaml", "project_name:"),
		"goos: [linux, darwin, windows]", "goos: ["+runtime.GOOS+"]",
		"goarch: [amd64, arm64]", "goarch: ["+runtime.GOARCH+"]"))
	p.Write(t, "terraform-registry-manifest.json", documented(t, publishDocs, "json", "protocol_versions"))
	p.Write(t, ".gitignore", "/dist/\n")
	p.createKey(t)
	// This downloads everything that the build needs.
	buildProvider(t, "demo", "1.0.0")
	ws.Setenv("GOPROXY", "off")
	for _, name := range []string{"GOCACHE", "GOFLAGS", "GOMODCACHE", "GOPATH"} { // as for buildProvider
		ws.Setenv(name, goEnv(t, name))
	}
	ws.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	ws.Setenv("GIT_CONFIG_SYSTEM", os.DevNull)
	for _, role := range []string{"AUTHOR", "COMMITTER"} {
		ws.Setenv("GIT_"+role+"_NAME", "Acme")
		ws.Setenv("GIT_"+role+"_EMAIL", "releases@acme.example")
		ws.Setenv("GIT_"+role+"_DATE", "2026-01-01T00:00:00Z")
	}
	p.Run(t, "git", "init", "--quiet", "--initial-branch=main")
	p.Run(t, "git", "remote", "add", "origin", "https://git.example.com/acme/terraform-provider-demo.git")
	return p
}

// createKey runs the first command of docs/publish.md about signing.
func (p *Project) createKey(t *testing.T) {
	t.Helper()
	_, err := exec.LookPath("gpg")
	require(t, err)
	// The agent's sockets are in it: see runDir.
	if p.gpgHome, err = os.MkdirTemp(runDir, "gpg"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = exec.Command("gpgconf", "--homedir", p.gpgHome, "--kill", "gpg-agent").Run() })
	p.ws.Setenv("GNUPGHOME", p.gpgHome)
	p.Shell(t, documented(t, publishDocs, "sh", "--quick-generate-key"))
}

// Tag commits everything and tags it.
func (p *Project) Tag(t *testing.T, tag string) {
	t.Helper()
	p.Run(t, "git", "add", "--all")
	p.Run(t, "git", "commit", "--quiet", "--allow-empty", "--message", tag)
	p.Run(t, "git", "tag", "--force", tag)
}

// Release runs GoReleaser as docs/publish.md says to, with additional flags, and returns
// its output.
func (p *Project) Release(t *testing.T, token string, flags ...string) (string, error) {
	t.Helper()
	binary, err := goReleaser()
	require(t, err)
	commands := documented(t, publishDocs, "sh", "goreleaser release")
	commands = substitute(t, commands, "tfr_…", token, "goreleaser release", `"`+binary+`" release `+strings.Join(flags, " "))
	return p.shell(t, commands)
}

// Write puts a file into the repository.
func (p *Project) Write(t *testing.T, name, text string) {
	t.Helper()
	writeFile(t, filepath.Join(p.Dir, filepath.FromSlash(name)), text)
}

// Run runs a command in the repository and returns its output.
func (p *Project) Run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := p.command(t, name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// Shell runs commands of a document in the repository and returns what they printed.
func (p *Project) Shell(t *testing.T, commands string) string {
	t.Helper()
	out, err := p.shell(t, commands)
	if err != nil {
		t.Fatalf("%s: %v\n%s", commands, err, out)
	}
	return out
}

func (p *Project) shell(t *testing.T, commands string) (string, error) {
	t.Helper()
	out, err := p.command(t, "bash", "-euo", "pipefail", "-c", commands).CombinedOutput()
	return string(out), err
}

func (p *Project) command(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(beforeDeadline(t), name, args...)
	cmd.Dir, cmd.Env = p.Dir, p.ws.env
	return cmd
}

// GoReleaser publishes with the configuration of docs/publish.md and no plugin, signed
// with the key whose creation is described there.
func TestGoReleaser(t *testing.T) {
	t.Parallel()
	_, err := goReleaser()
	require(t, err)
	files := newTree(t)
	registry, token := startPublishing(t, files)
	project := newProject(t, registry)
	project.Shell(t, substitute(t, documented(t, publishDocs, "sh", "gpg --armor --export releases@"),
		"scp acme.asc registry.example.com:/srv/keys/acme.asc", `mkdir "`+files.Dir+`/keys" && mv acme.asc "`+files.Dir+`/keys/"`))
	project.Write(t, "LICENSE", "Do with it what you like.\n")
	project.Tag(t, "v1.2.0")
	if out, err := project.Release(t, token); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	fingerprint := project.Run(t, "gpg", "--batch", "--with-colons", "--list-keys")
	eachClient(t, func(t *testing.T, c Client) {
		ws := newWorkspace(t, registry, greeting("registry.example.com/acme/demo", "1.2.0"))
		expect(t, c.Run(t, ws, "init"), keyID(t, fingerprint))
		expect(t, c.Run(t, ws, "apply", "-auto-approve"), `text = "hello world from 1.2.0"`)
	})

	// The same commit on another machine, where files have other times, gives the same
	// bytes, so that an interrupted job can be run again.
	project.Run(t, "touch", "LICENSE", "main.go")
	if out, err := project.Release(t, token); err != nil {
		t.Errorf("once more: %v\n%s", err, out)
	}

	// The command takes dist, and the manifest that GoReleaser leaves outside of it.
	caddy, err := caddyBinary()
	if err != nil {
		t.Fatal(err)
	}
	project.Tag(t, "v1.3.0")
	if out, err := project.Release(t, token, "--skip=publish"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	project.ws.Setenv("TF_TOKEN_registry_example_com", token)
	project.Run(t, caddy, "terraform-registry", "publish", "--to", "registry.example.com/acme/demo", "dist")
	eachClient(t, func(t *testing.T, c Client) {
		ws := newWorkspace(t, registry, greeting("registry.example.com/acme/demo", "1.3.0"))
		c.Run(t, ws, "init")
	})

	// A tag that was moved is refused, with a reason if GoReleaser shows it.
	project.Write(t, "LICENSE", "Do nothing.\n")
	project.Tag(t, "v1.3.0")
	out, err := project.Release(t, token)
	if err == nil {
		t.Errorf("another build is published:\n%s", out)
	}
	expect(t, out, "409 Conflict")
	project.Write(t, ".goreleaser.yml", substitute(t, readFile(t, filepath.Join(project.Dir, ".goreleaser.yml")), "uploads:", "artifactories:"))
	project.Tag(t, "v1.3.0")
	out, err = project.Release(t, token)
	if err == nil {
		t.Errorf("another build is published:\n%s", out)
	}
	expect(t, out, "a version never changes")
}
