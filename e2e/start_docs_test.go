package e2e_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The instructions in docs/start.md work as they are written.

const startDocs = "docs/start.md"

// startModule writes the module of docs/start.md into its working directory.
func startModule(t *testing.T, ws *Workspace) {
	t.Helper()
	ws.Shell(t, ".", documented(t, startDocs, "sh", "mkdir -p registry"))
}

// documentedCall is one of the calls of the module, with its output.
func documentedCall(t *testing.T, text string) string {
	t.Helper()
	block := documented(t, startDocs, "hcl", text)
	if !strings.Contains(block, "output ") {
		block += "output \"greeting\" {\n  value = module.hello.greeting\n}\n"
	}
	return block
}

func TestStartDocsOnYourMachine(t *testing.T) {
	t.Parallel()
	machine := machineWithCaddy(t)
	startModule(t, machine)
	_, port := freePorts(t)
	address := "127.0.0.1:" + port
	log, printed := machine.serve(t, substitute(t, documented(t, startDocs, "sh", "--internal-certs"), documentedAddress, address))

	// The line that it prints is the documented one.
	trust := strings.TrimSpace(documented(t, startDocs, "sh", "SSL_CERT_FILE"))
	authority := strings.TrimSpace(machine.Shell(t, ".", trust+`; echo "$SSL_CERT_FILE"`))
	expect(t, printed, "export SSL_CERT_FILE="+authority, "1 module in 1 version", address+"/acme/hello/any")

	client := &Registry{CA: authority, Proxy: newProxy(t)}
	call := substitute(t, documentedCall(t, documentedAddress), documentedAddress, address)
	eachClient(t, func(t *testing.T, c Client) {
		ws := newWorkspace(t, client, call)
		c.Run(t, ws, "init")
		expect(t, c.Run(t, ws, "apply", "-auto-approve"), strings.TrimSpace(documented(t, startDocs, "text", "greeting =")))
	})

	machine.Shell(t, ".", documented(t, startDocs, "sh", "mv .1.1.0"))
	log.Wait(t, "it offers the version", func(e Entry) bool { return e.Message == "now offered acme/hello/any 1.1.0" })
	eachClient(t, func(t *testing.T, c Client) {
		ws := newWorkspace(t, client, call)
		c.Run(t, ws, "init")
		expect(t, c.Run(t, ws, "apply", "-auto-approve"), `greeting = "Welcome, world!"`)
	})
}

// documentedAddress is the address of the server on the reader's own machine.
const documentedAddress = "127.0.0.1:8443"

// serve runs a command until the test ends. It returns what the command prints up to its
// example of a module, and its log.
func (ws *Workspace) serve(t *testing.T, command string) (log *Log, printed string) {
	t.Helper()
	shareSigningKey(t, filepath.Join(ws.home, ".local", "share", "caddy"))
	cmd := exec.CommandContext(beforeDeadline(t), "sh", "-c", "exec "+command) // exec lets the signal end the server itself
	cmd.Dir, cmd.Env = ws.Dir, ws.env
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if log, err = readLog(stderr, filepath.Join(ws.home, "log")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		<-log.End()
		cmd.Wait()
		if t.Failed() {
			t.Logf("end of the log of %s:\n%s", command, log.tail())
		}
	})
	return log, readUntil(stdout, "module ", "}")
}

// The packages create packagedRoot for the tree and packagedStorage for Caddy's storage.
const (
	packagedRoot    = "/var/lib/caddy-terraform-registry/registry"
	packagedStorage = "/var/lib/caddy-terraform-registry/caddy"
)

// withPackagedOptions returns the Caddyfile of the packages with another site.
func withPackagedOptions(t *testing.T, site string) string {
	t.Helper()
	options, _, found := strings.Cut(readFile(t, filepath.Join(repository(), "packaging", "Caddyfile")), "\nlocalhost {\n")
	if !found {
		t.Fatal("the Caddyfile of the packages has no site localhost")
	}
	return options + "\n" + site
}

func TestStartDocsOnAServer(t *testing.T) {
	t.Parallel()
	files := newTree(t)
	server := machineWithCaddy(t)
	tokens := server.Path("tokens")
	// The commands run without a package, which would create a user.
	here := []string{"sudo caddy-terraform-registry ", "caddy-terraform-registry "}
	create, _, found := strings.Cut(substitute(t, documented(t, startDocs, "sh", "token new"), append(here, "/etc/caddy-terraform-registry/tokens", tokens)...), "sudo chown")
	if !found {
		t.Fatal("the tokens file is not given to the user of Caddy")
	}
	token := strings.TrimSpace(server.Shell(t, ".", create))
	block := substitute(t, documented(t, startDocs, "caddyfile", "registry.example.com"), packagedRoot, files.Dir, "/etc/caddy-terraform-registry/tokens", tokens)
	site := documentedSite(t, block)
	site.HTTP1 = true // as in the options of the packages
	registry := startRegistry(t, site)
	registry.Log.Wait(t, "it has scanned its tree", Entry.scan)

	publisher := newWorkspace(t, registry, "")
	publisher.InstallCaddy(t)
	startModule(t, publisher)
	publisher.Shell(t, ".", substitute(t, documented(t, startDocs, "sh", "publish --to"), "tfr_…", token))
	eachClient(t, func(t *testing.T, c Client) {
		ws := newWorkspace(t, registry, documentedCall(t, `"registry.example.com/acme`))
		c.Run(t, ws, "init")
		expect(t, c.Run(t, ws, "apply", "-auto-approve"), `greeting = "Hello, world!"`)
	})
	check := substitute(t, documented(t, startDocs, "sh", "check --root"), append(here, packagedRoot, files.Dir)...)
	expect(t, server.Shell(t, ".", check), "acme/hello/any", "Withheld: 0.")
}
