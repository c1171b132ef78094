package remote

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/command/commandtest"
)

// Settings and tokens are read as by the client that the environment configures.
func TestSettingsOfClients(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Setenv("TF_CLI_CONFIG_FILE", filepath.Join(dir, "cli.tfrc"))
	if s, err := ClientSettings(); err != nil || len(s.Services) > 0 {
		t.Errorf("without a file: %v, %v", s, err)
	}
	write := func(text string) {
		t.Helper()
		commandtest.Write(t, dir, "cli.tfrc", text)
	}
	write("credentials \"a.example.com\" { token = \"secret\" }\nprovider_installation {\n  network_mirror { url = \"https://m.example.com/v1/mirror/\" }\n}\n")
	s, err := ClientSettings()
	if err != nil {
		t.Fatal(err)
	}
	mirrors, direct, _ := s.Sources(address.Address{Hostname: "registry.terraform.io", Namespace: "acme", Name: "demo"})
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
	// Errors name the file.
	file := filepath.Join(dir, "cli.tfrc") + ": "
	write("provider_installation {")
	if _, err := ClientSettings(); err == nil || err.Error() != file+"line 1 cannot be read: correct it" {
		t.Errorf("a broken file: %v", err)
	}
	for content, says := range map[string]string{
		"credentials \"b.example.com\" {}":            "its credentials for b.example.com have no token",
		"credentials_helper \"a\" {\n  args = 1\n}\n": "args of its credentials_helper are no list of strings",
	} {
		write(content)
		if _, err := ClientTokens()(t.Context(), "b.example.com"); err == nil || err.Error() != file+says {
			t.Errorf("a token by\n%s: %v", content, err)
		}
	}
}

// The files in the folder of configurations count before the main file, as for clients.
func TestSettingsInTheFolder(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("APPDATA", home)
	for _, name := range []string{"XDG_CONFIG_HOME", "TF_CLI_CONFIG_FILE", "TERRAFORM_CONFIG"} {
		t.Setenv(name, "")
	}
	folder, main := ".terraform.d", ".terraformrc"
	if runtime.GOOS == "windows" {
		folder, main = "terraform.d", "terraform.rc"
	}
	for name, service := range map[string]string{main: "main", filepath.Join(folder, "company.tfrc"): "company"} {
		text := fmt.Sprintf("host \"a.example.com\" {\n  services = { \"modules.v1\" = \"https://%s.example.com/\" }\n}\ncredentials \"a.example.com\" { token = %q }\n", service, service)
		commandtest.Write(t, home, name, text)
	}
	s, err := ClientSettings()
	if url := s.Services["a.example.com"]["modules.v1"]; url != "https://company.example.com/" || err != nil {
		t.Errorf("modules are at %q, %v", url, err)
	}
	if token, err := ClientTokens()(t.Context(), "a.example.com"); token != "company" || err != nil {
		t.Errorf("the token is %q, %v", token, err)
	}
}
