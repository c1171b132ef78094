package remote

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// Settings and tokens are read as by the client that the environment configures.
func TestSettingsOfClients(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cli.tfrc")
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Setenv("TF_CLI_CONFIG_FILE", file)
	if s, err := ClientSettings(); err != nil || len(s.Services) > 0 {
		t.Errorf("without a file: %v, %v", s, err)
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("credentials \"a.example.com\" { token = \"secret\" }\nprovider_installation {\n  network_mirror { url = \"https://m.example.com/v1/mirror/\" }\n}\n")
	s, err := ClientSettings()
	if err != nil {
		t.Fatal(err)
	}
	mirrors, direct := s.Mirrors(address.Address{Hostname: "registry.terraform.io", Namespace: "acme", Name: "demo"})
	if len(mirrors) != 1 || direct {
		t.Errorf("the mirrors are %v, %t", mirrors, direct)
	}
	if token, err := ClientTokens()(t.Context(), "a.example.com"); token != "secret" || err != nil {
		t.Errorf("the token is %q, %v", token, err)
	}
	t.Setenv("TF_TOKEN_a_example_com", "sec ret")
	if _, err := ClientTokens()(t.Context(), "a.example.com"); err == nil || strings.Contains(err.Error(), "sec ret") {
		t.Errorf("a token with a space: %v", err)
	}
	write("provider_installation {")
	if _, err := ClientSettings(); err == nil || !strings.Contains(err.Error(), "cannot be read: correct it") {
		t.Errorf("a broken file: %v", err)
	}
}
