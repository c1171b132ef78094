package e2e_test

import (
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// The image's Caddyfile is valid without any variable, and with the variables of each
// compose file. These are enough for clients.
func TestImageCaddyfile(t *testing.T) {
	t.Parallel()
	binary, err := caddyBinary()
	if err != nil {
		t.Fatal(err)
	}
	packaging := filepath.Join(repository(), "packaging")
	content, err := os.ReadFile(filepath.Join(packaging, "image.Caddyfile"))
	if err != nil {
		t.Fatal(err)
	}
	grace := regexp.MustCompile(`(?m)^\s*grace_period (\S+)$`).FindSubmatch(content)
	if grace == nil {
		t.Fatal("the Caddyfile has no grace_period")
	}
	gracePeriod, err := time.ParseDuration(string(grace[1]))
	if err != nil {
		t.Fatal(err)
	}
	validate := func(t *testing.T, variables map[string]string) {
		t.Helper()
		dir := t.TempDir()
		for _, folder := range []string{"registry", "data"} {
			if err := os.Mkdir(filepath.Join(dir, folder), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		writeFile(t, filepath.Join(dir, "data", "tokens"), "")
		here := strings.NewReplacer("/srv/registry", filepath.Join(dir, "registry"), "/data/tokens", filepath.Join(dir, "data", "tokens"))
		writeFile(t, filepath.Join(dir, "Caddyfile"), here.Replace(string(content)))
		cmd := exec.CommandContext(beforeDeadline(t), binary, "validate", "--config", filepath.Join(dir, "Caddyfile"))
		cmd.Env = []string{"HOME=" + dir, "XDG_DATA_HOME=" + filepath.Join(dir, "data"), "PATH=" + os.Getenv("PATH")}
		for name, value := range variables {
			cmd.Env = append(cmd.Env, name+"="+here.Replace(value))
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("with %v: %v\n%s", variables, err, out)
		}
	}
	t.Run("with nothing set", func(t *testing.T) { validate(t, nil) })
	t.Run("behind a proxy", func(t *testing.T) {
		validate(t, map[string]string{"SERVER_NAME": ":8080", "SERVER_OPTIONS": "trusted_proxies static private_ranges"})
	})

	files, err := filepath.Glob(filepath.Join(packaging, "compose", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no compose files: %v", err)
	}
	for _, name := range files {
		t.Run("with "+filepath.Base(name), func(t *testing.T) {
			var compose struct {
				Services map[string]struct {
					Environment map[string]string
					Volumes     []string
					StopGrace   time.Duration `yaml:"stop_grace_period"`
				}
				Volumes map[string]any
			}
			file, err := os.ReadFile(name)
			if err == nil {
				err = yaml.Unmarshal(file, &compose)
			}
			if err != nil {
				t.Fatal(err)
			}
			service := compose.Services["registry"]
			server := service.Environment["SERVER_NAME"]
			if strings.HasPrefix(server, "${SERVER_NAME:?") {
				server = "registry.example.com"
				service.Environment["SERVER_NAME"] = server
			}
			if !strings.Contains(server, ".") {
				t.Errorf("the server is named %q: clients take no modules from a name without a dot", server)
			}
			if _, err := netip.ParseAddr(server); err == nil && !strings.Contains(service.Environment["GLOBAL_OPTIONS"], "default_sni "+server) {
				t.Error("clients that send no name get no certificate")
			}
			if service.StopGrace <= gracePeriod {
				t.Errorf("the server is killed after %s, before it has waited %s for downloads", service.StopGrace, gracePeriod)
			}
			if !slices.ContainsFunc(service.Volumes, func(v string) bool { return strings.HasSuffix(v, ":/data") }) {
				t.Error("the certificates and the signing key are not kept")
			}
			validate(t, service.Environment)
		})
	}
}
