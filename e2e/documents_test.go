package e2e_test

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// codeBlocks returns the code blocks of a document of the repository in a
// language.
func codeBlocks(t *testing.T, document, language string) []string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(repository(), filepath.FromSlash(document)))
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	for _, match := range regexp.MustCompile("(?s)\n```"+language+"\n(.*?)```").FindAllSubmatch(content, -1) {
		blocks = append(blocks, string(match[1]))
	}
	if len(blocks) == 0 {
		t.Fatalf("%s has no block of %s", document, language)
	}
	return blocks
}

// documented returns the code block of a document in a language that has a text. The
// document must have exactly one.
func documented(t *testing.T, document, language, text string) string {
	t.Helper()
	var found []string
	for _, block := range codeBlocks(t, document, language) {
		if strings.Contains(block, text) {
			found = append(found, block)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%s has %d blocks of %s with %q, want one", document, len(found), language, text)
	}
	return found[0]
}

// documentedServers are the global options of nearly all Caddyfiles in the documentation.
const documentedServers = "{\n\tservers {\n\t\tprotocols h1\n\t}\n}\n\n"

// documentedSite returns the only site of a Caddyfile in the documentation. It also
// has a certificate of Caddy's own authority and an access log.
func documentedSite(t *testing.T, caddyfile string) Site {
	t.Helper()
	site, isHTTP1 := strings.CutPrefix(caddyfile, documentedServers)
	address, body, isSite := strings.Cut(strings.TrimSuffix(strings.TrimSpace(site), "}"), " {\n")
	if !isSite || address == "" {
		t.Fatalf("it is not a site:\n%s", caddyfile)
	}
	return Site{Address: address, Directives: []string{body}, HTTP1: isHTTP1}
}

// validateCaddyfile verifies with Caddy that a Caddyfile is valid and formatted
// as by `caddy fmt`.
func validateCaddyfile(t *testing.T, caddyfile string) {
	t.Helper()
	binary, err := caddyBinary()
	if err != nil {
		t.Fatal(err)
	}
	validateCaddyfileWith(t, binary, caddyfile)
}

// validateCaddyfileWith is validateCaddyfile with another build of Caddy.
func validateCaddyfileWith(t *testing.T, binary, caddyfile string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "Caddyfile")
	writeFile(t, file, caddyfile)
	for _, args := range [][]string{
		{"validate", "--config", file, "--adapter", "caddyfile"},
		{"fmt", "--diff", file},
	} {
		cmd := exec.Command(binary, args...)
		cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "XDG_DATA_HOME=", "XDG_CONFIG_HOME=",
			"REGISTRY_TOKEN=secret", "GIT_TOKEN=secret", // of docs/mirror.md
			"AWS_ACCESS_KEY_ID=key", "AWS_SECRET_ACCESS_KEY=secret") // of docs/scale.md
		out, err := cmd.CombinedOutput()
		if err != nil || strings.Contains(string(out), "not formatted") {
			t.Errorf("caddy %s: %v\n%s\n%s", args[0], err, caddyfile, out)
		}
	}
}

// Every Caddyfile in the documentation is valid and limits the registry to HTTP/1.1;
// docs/serve.md explains why.
func TestDocumentsCaddyfiles(t *testing.T) {
	t.Parallel()
	tokens, logo := filepath.Join(t.TempDir(), "tokens"), filepath.Join(t.TempDir(), "logo.svg")
	writeFile(t, tokens, "")
	writeFile(t, logo, `<svg xmlns="http://www.w3.org/2000/svg"/>`)
	here := strings.NewReplacer("/etc/caddy-terraform-registry/tokens", tokens, "/etc/caddy-terraform-registry/logo.svg", logo, "/var/www/mirror", t.TempDir(), packagedRoot, t.TempDir(), packagedStorage, t.TempDir())
	for _, document := range []string{"README.md", "docs/serve.md", "docs/mirror.md", "docs/fill.md", "docs/private.md", "docs/publish.md", "docs/start.md", "docs/moving.md", "docs/tools.md", "docs/pages.md"} {
		for _, block := range codeBlocks(t, document, "caddyfile") {
			if document == startDocs {
				block = withPackagedOptions(t, block)
			}
			block = here.Replace(block)
			validateCaddyfile(t, block)
			if !speaksHTTP1Only(t, block) {
				t.Errorf("%s: clients are offered more than HTTP/1.1:\n%s", document, block)
			}
		}
	}
}

// A shell can read every block of a document that is to be pasted into one.
func TestDocumentsScripts(t *testing.T) {
	t.Parallel()
	var documents []string
	for _, pattern := range []string{"*.md", "docs/*.md"} {
		found, err := filepath.Glob(filepath.Join(repository(), filepath.FromSlash(pattern)))
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, found...)
	}
	scripts := 0
	for _, document := range documents {
		for _, match := range regexp.MustCompile("(?s)\n```sh\n(.*?)\n```").FindAllStringSubmatch(readFile(t, document), -1) {
			script := match[1]
			if strings.HasPrefix(script, "$ ") { // followed by the answer
				script, _, _ = strings.Cut(script[2:], "\n")
			}
			scripts++
			check := exec.Command("bash", "-n")
			check.Stdin = strings.NewReader(script)
			if out, err := check.CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s\n%s", document, err, out, script)
			}
		}
	}
	if scripts < 50 {
		t.Errorf("the documents have only %d scripts", scripts)
	}
}

// speaksHTTP1Only reports whether a Caddyfile limits its server to HTTP/1.1, or, if
// the server has other sites too, the registry's site.
func speaksHTTP1Only(t *testing.T, caddyfile string) bool {
	t.Helper()
	binary, err := caddyBinary()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "Caddyfile")
	writeFile(t, file, caddyfile)
	out, err := exec.Command(binary, "adapt", "--config", file).Output()
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Apps struct {
			HTTP struct {
				Servers map[string]struct {
					Routes    []any    `json:"routes"` // one for each site
					Protocols []string `json:"protocols"`
					// The first is for the registry's site.
					Policies []struct {
						ALPN []string `json:"alpn"`
					} `json:"tls_connection_policies"`
				} `json:"servers"`
			} `json:"http"`
		} `json:"apps"`
	}
	if err := json.Unmarshal(out, &config); err != nil {
		t.Fatal(err)
	}
	server := config.Apps.HTTP.Servers["srv0"]
	if len(server.Routes) > 1 && server.Protocols == nil {
		return len(server.Policies) > 0 && slices.Equal(server.Policies[0].ALPN, []string{"http/1.1"})
	}
	return slices.Equal(server.Protocols, []string{"h1"})
}

// The first Caddyfile of the README works.
func TestReadmeCaddyfileSpeaksHTTP1(t *testing.T) {
	t.Parallel()
	const host = "registry.example.com"
	acme := publisher(t, "acme")
	files := newTree(t).Provider("acme/demo", "1.0.0", signedBy(acme)).Keys("acme", acme)
	block := substitute(t, codeBlocks(t, "README.md", "caddyfile")[0], "/srv", files.Dir)
	registry := startRegistry(t, documentedSite(t, block))
	registry.Log.Wait(t, "it has scanned its tree", Entry.scan)

	if got := negotiated(t, registry.https, host, "h2", "http/1.1").NegotiatedProtocol; got != "http/1.1" {
		t.Errorf("a client that prefers HTTP/2 gets %q, want http/1.1", got)
	}
	eachClient(t, func(t *testing.T, c Client) {
		ws := newWorkspace(t, registry, greeting(host+"/acme/demo", "1.0.0"))
		c.Run(t, ws, "init")
	})
}

// negotiated returns the result of a handshake with a client that offers
// protocols by ALPN.
func negotiated(t *testing.T, server endpoint, host string, offered ...string) tls.ConnectionState {
	t.Helper()
	dialer := tls.Dialer{Config: &tls.Config{ServerName: host, NextProtos: offered, InsecureSkipVerify: true}}
	conn, err := dialer.DialContext(beforeDeadline(t), server.network, server.address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	return conn.(*tls.Conn).ConnectionState()
}

// readUntil reads lines until each of the wanted prefixes has occurred, in
// order. The last matching line is included.
func readUntil(r io.Reader, wanted ...string) string {
	var read strings.Builder
	for lines := bufio.NewScanner(r); len(wanted) > 0 && lines.Scan(); {
		read.WriteString(lines.Text() + "\n")
		if strings.HasPrefix(lines.Text(), wanted[0]) {
			wanted = wanted[1:]
		}
	}
	return read.String()
}
