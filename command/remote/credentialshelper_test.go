package remote

import (
	"context"
	"encoding/json"
	"errors"
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

// A scriptedHelper is a helper that does as a test says.
type scriptedHelper struct {
	Answer string // ARGUMENTS stands for its arguments
	Errors string
	Status int
	Noted  string // the file in which it notes for which host it was run
	Waits  bool   // it gives no answer
}

// scriptedHelpers is the variable of the environment that makes this program a helper. It has
// the helpers by their paths.
const scriptedHelpers = "TEST_SCRIPTED_HELPERS"

func TestMain(m *testing.M) {
	scripts := os.Getenv(scriptedHelpers)
	if scripts == "" {
		os.Exit(m.Run())
	}
	var helpers map[string]scriptedHelper
	if err := json.Unmarshal([]byte(scripts), &helpers); err != nil {
		panic(err)
	}
	h := helpers[os.Args[0]]
	if h.Noted != "" {
		f, err := os.OpenFile(h.Noted, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = fmt.Fprintln(f, os.Args[len(os.Args)-1])
		}
		if err := errors.Join(err, f.Close()); err != nil {
			panic(err)
		}
	}
	if h.Waits {
		time.Sleep(time.Hour)
	}
	fmt.Print(strings.ReplaceAll(h.Answer, "ARGUMENTS", strings.ReplaceAll(strings.Join(os.Args[1:], ","), " ", "_")))
	fmt.Fprint(os.Stderr, h.Errors)
	os.Exit(h.Status)
}

// installHelpers installs helpers, by their names in a folder.
func installHelpers(t *testing.T, dir string, helpers map[string]scriptedHelper) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	scripts := make(map[string]scriptedHelper)
	for name, h := range helpers {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if runtime.GOOS == "windows" {
			path += ".exe"
		}
		scripts[path] = h
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if os.Link(self, path) == nil {
			continue
		}
		if err := os.Symlink(self, path); err != nil { // on another disk
			t.Fatal(err)
		}
	}
	content, err := json.Marshal(scripts)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(scriptedHelpers, string(content))
}

// A helper is a program of others: its faults are told, and what it writes has a bound.
func TestCredentialsHelper(t *testing.T) {
	const platform = runtime.GOOS + "_" + runtime.GOARCH
	const vault = "terraform-credentials-vault"
	tells := func(token string) scriptedHelper { return scriptedHelper{Answer: `{"token":"` + token + `"}`} }
	for _, test := range []struct {
		rule    string
		helpers map[string]scriptedHelper // by their names in the folder of plugins
		token   string
		says    string
	}{
		{"the host is one argument after those of the user", map[string]scriptedHelper{vault: tells("ARGUMENTS")}, "--of_me,get,a.example.com", ""},
		{"in the folder of the platform", map[string]scriptedHelper{platform + "/" + vault: tells("x")}, "x", ""},
		{"the newest version", map[string]scriptedHelper{vault + "_v1.9.0": tells("old"), vault + "_v1.10.0": tells("new"), platform + "/" + vault: tells("none")}, "new", ""},
		{"the first folder", map[string]scriptedHelper{vault + "_v1.0.0": tells("first"), platform + "/" + vault + "_v1.0.0": tells("second")}, "first", ""},
		{"another name", map[string]scriptedHelper{vault + "2": tells("x")}, "", ""},
		{"no program", nil, "", ""},
		{"a folder is no program", map[string]scriptedHelper{vault + "/x": tells("x")}, "", ""},
		{"it knows none", map[string]scriptedHelper{vault: {Answer: "{}"}}, "", ""},
		{"it fails", map[string]scriptedHelper{vault: {Errors: "locked\033[2J: unlock it", Status: 1}}, "", "the credentials helper vault, asked for a token of a.example.com, failed: \"locked\\x1b[2J: unlock it\""},
		{"it fails silently", map[string]scriptedHelper{vault: {Status: 3}}, "", "failed: exit status 3"},
		{"it answers something else", map[string]scriptedHelper{vault: {Answer: "secret"}}, "", "answered with something that is not a JSON object with a token"},
		{"its answer is too long", map[string]scriptedHelper{vault: {Answer: strings.Repeat("secret", 20_000)}}, "", "answered with more than 65536 bytes"},
		{"a token that cannot be sent", map[string]scriptedHelper{vault: tells("sec ret")}, "sec ret", "the token from the credentials helper vault has a space"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			plugins := clientFolders(t)[0]
			installHelpers(t, plugins, test.helpers)
			writeFile(t, mainFiles(t)[0], "credentials_helper \"vault\" {\n  args = [\"--of me\"]\n}\n")
			token, err := ClientTokens()(t.Context(), "a.example.com")
			if token != test.token || (err == nil) != (test.says == "") || err != nil && (!strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "sec ret")) {
				t.Errorf("got %q, %v", token, err)
			}
		})
	}
}

// A program that cannot be looked at is not one that is missing. A link to nothing is.
func TestHelpersThatCannotBeLookedAt(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "terraform-credentials-vault")
	for target, fails := range map[string]bool{"none": false, filepath.Base(link): true} {
		if err := os.Symlink(target, link); err != nil {
			t.Skip(err) // Windows allows it to some users
		}
		path, err := (credentialsHelper{Name: "vault"}).program([]string{dir})
		if path != "" || (err != nil) != fails {
			t.Errorf("a link to %s: got %q, %v", target, path, err)
		}
		if err := os.Remove(link); err != nil {
			t.Fatal(err)
		}
	}
}

// clientFolders are the folders of plugins of a user who has configured nothing.
func clientFolders(t *testing.T) (plugins []string) {
	t.Helper()
	commandtest.NoClientConfiguration(t)
	home := os.Getenv("HOME")
	t.Setenv("APPDATA", home)
	t.Setenv("XDG_DATA_HOME", filepath.Join(home, "data"))
	return pluginFolders(runtime.GOOS, os.Getenv)
}

func writeFile(t *testing.T, name, content string) {
	t.Helper()
	commandtest.Write(t, filepath.Dir(name), filepath.Base(name), content)
}

// mainFiles are the files that clients read while their folder has none.
func mainFiles(t *testing.T) []string {
	t.Helper()
	files, err := configurationFiles(runtime.GOOS, os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// The helper is run once for a host, and only for a host without a token elsewhere. OpenTofu
// has a further folder of helpers, the last one here.
func TestWhenHelpersAreRun(t *testing.T) {
	plugins := clientFolders(t)
	files := mainFiles(t)
	noted := filepath.Join(t.TempDir(), "hosts")
	t.Setenv("TF_TOKEN_environment_example_com", "the-environment")
	installHelpers(t, plugins[len(plugins)-2], map[string]scriptedHelper{"terraform-credentials-vault": {Answer: `{"token":"from-the-helper"}`, Noted: noted}})
	writeFile(t, files[0], "credentials \"configured.example.com\" {\n  token = \"configured\"\n}\n")
	writeFile(t, files[1], "credentials_helper \"vault\" {}\n")
	writeFile(t, files[len(files)-1], `{"credentials":{"login.example.com":{"token":"login"}}}`)
	tokens := ClientTokens()
	for range 2 {
		for host, want := range map[string]string{"environment.example.com": "the-environment", "configured.example.com": "configured", "login.example.com": "login", "other.example.com": "from-the-helper"} {
			hostname := svchost.Hostname(host)
			if token, err := tokens(t.Context(), hostname); token != want || err != nil {
				t.Errorf("%s: got %q, %v", host, token, err)
			}
		}
	}
	if hosts, err := os.ReadFile(noted); string(hosts) != "other.example.com\n" || err != nil {
		t.Errorf("it was run for %q, %v", hosts, err)
	}
}

// A helper that gives no answer ends with the command.
func TestHelpersEnd(t *testing.T) {
	dir := t.TempDir()
	noted := filepath.Join(dir, "hosts")
	installHelpers(t, dir, map[string]scriptedHelper{"terraform-credentials-vault": {Noted: noted, Waits: true}})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for tick := time.NewTicker(time.Millisecond); ; <-tick.C {
			if _, err := os.Stat(noted); err == nil {
				cancel()
				return
			}
		}
	}()
	if _, err := (credentialsHelper{Name: "vault"}).token(ctx, "a.example.com", []string{dir}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
