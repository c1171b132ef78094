package remote

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/command/commandtest"
)

func TestHelperIn(t *testing.T) {
	for _, test := range []struct{ rule, file, content, want, says string }{
		{"in a block", ".terraformrc", "credentials_helper \"vault\" {\n  args = [\"--path\", \"a b\"]\n}\n", `vault ["--path" "a b"]`, ""},
		{"without arguments", ".tofurc", "plugin_cache_dir = \"x\"\ncredentials_helper \"vault\" {}\n", `vault []`, ""},
		{"in JSON", "a.tfrc.json", `{"credentials_helper":{"vault":{"args":["x"]}}}`, `vault ["x"]`, ""},
		{"beside what cannot be read", ".terraformrc", "credentials_helper \"vault\" {}\na = [\n", `vault []`, ""},
		{"none", ".terraformrc", "credentials \"a.example.com\" {}\n", "", ""},
		{"arguments that are no list", ".terraformrc", "credentials_helper \"vault\" {\n  args = \"secret\"\n}\n", "", "args of its credentials_helper are no list of strings"},
		{"an argument that is no string", ".terraformrc", "credentials_helper \"vault\" {\n  args = [1]\n}\n", "", "are no list of strings"},
	} {
		h, err := helperIn([]byte(test.content), test.file)
		got := ""
		if h != nil {
			got = fmt.Sprintf("%s %q", h.name, h.args)
		}
		if got != test.want || (err == nil) != (test.says == "") || err != nil && (!strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%s: got %q, %v", test.rule, got, err)
		}
	}
}

// A helper is a program, so what it does wrong is said, and has bounds.
func TestCredentialsHelper(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the helpers are shell scripts")
	}
	const platform = runtime.GOOS + "_" + runtime.GOARCH
	const good = `echo "{\"token\":\"$*\"}"`
	for _, test := range []struct {
		rule     string
		programs map[string]string // by their paths in the home folder
		token    string
		says     string
	}{
		{"the host is one argument after those of the user", map[string]string{"plugins/terraform-credentials-vault": `[ "$1" = "--of me" ] && echo "{\"token\":\"$#.$2.$3\"}"`}, "3.get.a.example.com", ""},
		{"in the folder of the platform", map[string]string{"plugins/" + platform + "/terraform-credentials-vault": `echo '{"token":"x"}'`}, "x", ""},
		{"the newest version", map[string]string{"plugins/terraform-credentials-vault_v1.9.0": good, "plugins/terraform-credentials-vault_v1.10.0": `echo '{"token":"new"}'`, "plugins/" + platform + "/terraform-credentials-vault": good}, "new", ""},
		{"the first folder", map[string]string{"plugins/terraform-credentials-vault_v1.0.0": `echo '{"token":"first"}'`, "plugins/" + platform + "/terraform-credentials-vault_v1.0.0": good}, "first", ""},
		{"another name", map[string]string{"plugins/terraform-credentials-vault2": good}, "", ""},
		{"no program", nil, "", ""},
		{"a folder is no program", map[string]string{"plugins/terraform-credentials-vault/x": good}, "", ""},
		{"it knows none", map[string]string{"plugins/terraform-credentials-vault": `echo '{}'`}, "", ""},
		{"it fails", map[string]string{"plugins/terraform-credentials-vault": `printf 'locked\033[2J: unlock it' >&2; exit 1`}, "", "the credentials helper vault, asked for a token of a.example.com, failed: \"locked\\x1b[2J: unlock it\""},
		{"it fails silently", map[string]string{"plugins/terraform-credentials-vault": `exit 3`}, "", "failed: exit status 3"},
		{"it answers something else", map[string]string{"plugins/terraform-credentials-vault": `echo secret`}, "", "answered with something that is not a JSON object with a token"},
		{"it answers without an end", map[string]string{"plugins/terraform-credentials-vault": `yes secret | head -c 200000`}, "", "answered with more than 65536 bytes"},
		{"a token that cannot be sent", map[string]string{"plugins/terraform-credentials-vault": `echo '{"token":"sec ret"}'`}, "sec ret", "the token from the credentials helper vault has a space"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			commandtest.NoClientConfiguration(t)
			home := os.Getenv("HOME")
			for name, script := range test.programs {
				writeProgram(t, filepath.Join(home, ".terraform.d", name), script)
			}
			commandtest.Write(t, home, ".terraformrc", "credentials_helper \"vault\" {\n  args = [\"--of me\"]\n}\n")
			token, err := ClientTokens()(t.Context(), "a.example.com")
			if token != test.token || (err == nil) != (test.says == "") || err != nil && (!strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "sec ret")) {
				t.Errorf("got %q, %v", token, err)
			}
		})
	}
}

func writeProgram(t *testing.T, name, script string) {
	t.Helper()
	commandtest.Write(t, filepath.Dir(name), filepath.Base(name), "#!/bin/sh\n"+script+"\n")
	if err := os.Chmod(name, 0o755); err != nil {
		t.Fatal(err)
	}
}

// The helper is run once for a host, and only for a host without a token elsewhere. OpenTofu
// has a further folder of helpers.
func TestWhenHelpersAreRun(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the helper is a shell script")
	}
	commandtest.NoClientConfiguration(t)
	home, runs := os.Getenv("HOME"), filepath.Join(t.TempDir(), "runs")
	t.Setenv("XDG_DATA_HOME", filepath.Join(home, "data"))
	t.Setenv("TF_TOKEN_environment_example_com", "the-environment")
	writeProgram(t, filepath.Join(home, "data", "opentofu", "plugins", "terraform-credentials-vault"), `echo "$2" >> `+runs+`; echo '{"token":"from-the-helper"}'`)
	commandtest.Write(t, home, ".terraformrc", "credentials \"configured.example.com\" {\n  token = \"configured\"\n}\n")
	commandtest.Write(t, home, ".tofurc", "credentials_helper \"vault\" {}\n")
	commandtest.Write(t, home, ".terraform.d/credentials.tfrc.json", `{"credentials":{"login.example.com":{"token":"login"}}}`)
	tokens := ClientTokens()
	for range 2 {
		for host, want := range map[string]string{"environment.example.com": "the-environment", "configured.example.com": "configured", "login.example.com": "login", "other.example.com": "from-the-helper"} {
			hostname := svchost.Hostname(host)
			if token, err := tokens(t.Context(), hostname); token != want || err != nil {
				t.Errorf("%s: got %q, %v", host, token, err)
			}
		}
	}
	if log, err := os.ReadFile(runs); string(log) != "other.example.com\n" || err != nil {
		t.Errorf("it was run for %q, %v", log, err)
	}
}

// A helper that waits, with what it has started, ends with the command.
func TestHelpersEnd(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the helper is a shell script")
	}
	dir := t.TempDir()
	started := filepath.Join(dir, "started")
	writeProgram(t, filepath.Join(dir, "terraform-credentials-vault"), "sleep 1000 & touch "+started+"; wait")
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for tick := time.NewTicker(time.Millisecond); ; <-tick.C {
			if _, err := os.Stat(started); err == nil {
				cancel()
				return
			}
		}
	}()
	if _, err := (&credentialsHelper{name: "vault"}).token(ctx, "a.example.com", []string{dir}); err == nil || !strings.Contains(err.Error(), "gave no answer") {
		t.Errorf("got %v", err)
	}
}
