package e2e_test

import (
	"crypto/tls"
	"encoding/json"
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

// validateCaddyfile verifies with Caddy that a Caddyfile is valid and formatted
// as by `caddy fmt`.
func validateCaddyfile(t *testing.T, caddyfile string) {
	t.Helper()
	binary, err := caddyBinary()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "Caddyfile")
	writeFile(t, file, caddyfile)
	for _, args := range [][]string{
		{"validate", "--config", file, "--adapter", "caddyfile"},
		{"fmt", "--diff", file},
	} {
		cmd := exec.Command(binary, args...)
		cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "XDG_DATA_HOME=", "XDG_CONFIG_HOME=")
		out, err := cmd.CombinedOutput()
		if err != nil || strings.Contains(string(out), "not formatted") {
			t.Errorf("caddy %s: %v\n%s\n%s", args[0], err, caddyfile, out)
		}
	}
}

// Every Caddyfile in the documentation is valid and offers only HTTP/1.1; the
// README explains why.
func TestDocumentsCaddyfiles(t *testing.T) {
	t.Parallel()
	tokens := filepath.Join(t.TempDir(), "tokens")
	writeFile(t, tokens, "")
	for _, document := range []string{"README.md", "docs/mirror.md", "docs/private.md"} {
		for _, block := range codeBlocks(t, document, "caddyfile") {
			block = strings.ReplaceAll(block, "/etc/caddy/tokens", tokens)
			validateCaddyfile(t, block)
			if got := offered(t, block); !slices.Equal(got, []string{"http/1.1"}) {
				t.Errorf("%s: clients are offered %q, want http/1.1 alone:\n%s", document, got, block)
			}
		}
	}
}

// offered returns the ALPN protocols that a Caddyfile configures for its only
// site: nil if it leaves them to Caddy.
func offered(t *testing.T, caddyfile string) []string {
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
					// The first is that of the site, the second is for other
					// names.
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
	if policies := config.Apps.HTTP.Servers["srv0"].Policies; len(policies) > 0 {
		return policies[0].ALPN
	}
	return nil
}

// The first Caddyfile of the README works. The test adds a certificate of
// Caddy's own authority and an access log.
func TestReadmeCaddyfileSpeaksHTTP1(t *testing.T) {
	t.Parallel()
	const host = "registry.example.com"
	acme := publisher(t, "acme")
	tree := newTree(t).Provider("acme/demo", "1.0.0", signedBy(acme)).Keys("acme", acme)
	block := substitute(t, codeBlocks(t, "README.md", "caddyfile")[0], "/srv", tree.Dir)
	body, isSite := strings.CutPrefix(strings.TrimSuffix(strings.TrimSpace(block), "}"), host+" {\n")
	if !isSite {
		t.Fatalf("it is not for the site %s:\n%s", host, block)
	}
	registry := startRegistry(t, Site{Address: host, Directives: []string{body}})
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
