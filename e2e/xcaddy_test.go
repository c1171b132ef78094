package e2e_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Most users build Caddy with the plugin by xcaddy. Here it uses the module's
// path and version, as if the checkout had been published.
func TestXcaddy(t *testing.T) {
	t.Parallel()
	xcaddy, err := goTool("xcaddy")
	require(t, err)
	// terraform leaves a path with a colon in the sample configuration, which no Go
	// module may have.
	checkout := t.TempDir()
	copyCheckout(t, checkout)
	env, plugin := moduleProxy(t, "github.com/caddy-terraform/caddy-terraform-registry", checkout)
	binary := filepath.Join(t.TempDir(), executable("caddy"))

	build := exec.CommandContext(beforeDeadline(t), xcaddy, "build", caddyVersion(t),
		"--with", plugin.String(), "--output", binary)
	build.Dir = t.TempDir()
	// Its defaults are the flags of releases and images, so that they share Go's build cache.
	build.Env = env
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build.Args, err, out)
	}

	modules, err := exec.Command(binary, "list-modules", "--versions").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, modules)
	}
	if want := "http.handlers.terraform_registry " + plugin.Version; !strings.Contains(string(modules), want) {
		t.Errorf("the built Caddy does not list %q:\n%s", want, modules)
	}
}

// caddyVersion returns the version of Caddy that the registry is built with.
func caddyVersion(t *testing.T) string {
	t.Helper()
	list := exec.Command("go", "list", "-m", "-f", "{{.Version}}", "github.com/caddyserver/caddy/v2")
	list.Dir = repository()
	out, err := list.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", list.Args, err, out)
	}
	return strings.TrimSpace(string(out))
}
