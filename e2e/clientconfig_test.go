package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// clientConfig returns the output of `caddy-terraform-registry client-config` on a
// machine that reaches the registry.
func (r *Registry) clientConfig(t *testing.T, args ...string) string {
	t.Helper()
	binary, err := caddyBinary()
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	cmd := exec.CommandContext(beforeDeadline(t), binary, append([]string{"terraform-registry", "client-config"}, args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "HTTPS_PROXY=" + r.Proxy.URL, "SSL_CERT_FILE=" + r.CA, "SSL_CERT_DIR=" + home}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, &stderr)
	}
	return string(out)
}

// The output of client-config has everything that clients need, for every use of the
// registry. It is the same from the registry's configuration and from its server, if
// both show the mirrored registries. No other server is reached: see Proxy.
func TestClientConfig(t *testing.T) {
	t.Parallel()
	acme := publisher(t, "acme")
	files := newTree(t).
		Provider("acme/demo", "1.0.0", signedBy(acme)).
		Keys("acme", acme).
		Module("acme/vpc/aws", "1.0.0", asTarGz).
		Provider("registry.terraform.io/acme/demo-beta", "1.1.0", signedBy(acme)).
		Keys("registry.terraform.io/acme", acme).
		Module("registry.terraform.io/acme/vpc/aws", "1.1.0", asTarGz)
	tokens := newTokens(t)
	token := tokens.New("reader")
	registry := startRegistry(t, site("registry.example.com", files, `auth terraform_tokens "`+tokens.File+`"`))

	const hosted, mirrored = "registry.example.com/acme/", "registry.terraform.io/acme/"
	for purpose, needs := range map[string]struct{ providers, modules []string }{
		"registry": {[]string{hosted + "demo"}, []string{hosted + "vpc/aws"}},
		"mirror":   {[]string{hosted + "demo", mirrored + "demo-beta"}, []string{hosted + "vpc/aws"}},
		"stand-in": {[]string{hosted + "demo", mirrored + "demo-beta"}, []string{hosted + "vpc/aws", mirrored + "vpc/aws"}},
	} {
		t.Run(purpose, func(t *testing.T) {
			file := registry.clientConfig(t, "--config", registry.path("Caddyfile"), "--for", purpose, "--token")
			if got := registry.clientConfig(t, "--url", "registry.example.com", "--for", purpose, "--token"); got != file {
				t.Errorf("of the server it is\n%s\nof the configuration\n%s", got, file)
			}
			file = strings.ReplaceAll(file, "…", token)
			// The public registries cannot be reached, so as the comment says:
			file = strings.Replace(file, "# include =", "include =", 1)

			var configuration strings.Builder
			configuration.WriteString("terraform {\n  required_providers {\n")
			for _, source := range needs.providers {
				configuration.WriteString("    " + lastElement(source) + " = {\n      source = \"" + source + "\"\n    }\n")
			}
			configuration.WriteString("  }\n}\n")
			for i, source := range needs.modules {
				fmt.Fprintf(&configuration, "module \"m%d\" {\n  source  = %q\n  version = \">= 1.0.0\"\n}\n", i, source)
			}
			eachClient(t, func(t *testing.T, c Client) {
				ws := newWorkspace(t, registry, configuration.String())
				ws.CLIConfig(t, file)
				c.Run(t, ws, "init")
				for _, source := range needs.providers {
					// Mirrors give the hash of one platform, registries the hashes of
					// all.
					hashes := ws.Lock(t, source).ZH
					if complete := purpose != "mirror" || strings.HasPrefix(source, hosted); complete && len(hashes) < 3 {
						t.Errorf("the lock file has for %s the hashes %v, want those of 3 platforms", source, hashes)
					}
				}
			})
		})
	}
}
