package command

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A CI system issues tokens for an audience.
func newIssuer(t *testing.T, answer func(w http.ResponseWriter, audience string)) {
	t.Helper()
	issuer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "bearer runner" || r.URL.Query().Get("api-version") != "2.0" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		answer(w, r.URL.Query().Get("audience"))
	}))
	t.Cleanup(issuer.Close)
	t.Setenv("ACTIONS_ID_TOKEN_REQUEST_URL", issuer.URL+"/token?api-version=2.0")
	t.Setenv("ACTIONS_ID_TOKEN_REQUEST_TOKEN", "runner")
}

// Where a token is looked for, in order: each source is found in spite of those after it.
func TestTokenSources(t *testing.T) {
	noClientConfiguration(t)
	find := func(f tokenFinder) (foundToken, error) {
		t.Helper()
		f.hostname = "registry.example.com"
		f.variable = defaultIDTokenVariable
		return f.find(t.Context(), registryNetwork{pause: time.Millisecond}.client(false))
	}
	is := func(rule string, f tokenFinder, secret, origin string) {
		t.Helper()
		if got, err := find(f); err != nil || got.secret != secret || !strings.Contains(got.origin, origin) {
			t.Errorf("%s: got %+v, %v", rule, got, err)
		}
	}
	is("nothing", tokenFinder{}, "", "")
	newIssuer(t, func(w http.ResponseWriter, audience string) {
		w.Write([]byte(`{"value":"for:` + audience + `","count":1}`))
	})
	is("a job of GitHub Actions", tokenFinder{}, "for:https://registry.example.com", "the CI job")
	is("with another audience", tokenFinder{audience: "registry"}, "for:registry", "the CI job")
	t.Setenv(defaultIDTokenVariable, "of-gitlab")
	is("a job of GitLab", tokenFinder{}, "of-gitlab", defaultIDTokenVariable)
	home := os.Getenv("HOME")
	write(t, home, ".terraform.d/credentials.tfrc.json", `{"credentials":{"registry.example.com":{"token":"stored"}}}`)
	is("a login", tokenFinder{}, "stored", "credentials.tfrc.json")
	write(t, home, ".tofurc", `credentials "registry.example.com" { token = "configured" }`)
	is("a configuration", tokenFinder{}, "configured", ".tofurc")
	t.Setenv("TF_TOKEN_registry_example_com", "in-environment")
	is("the environment", tokenFinder{}, "in-environment", "TF_TOKEN_registry_example_com")
	file := write(t, t.TempDir(), "token", " in-file\n")
	is("a file", tokenFinder{file: file}, "in-file", file)
}

func TestTokensThatCannotBeUsed(t *testing.T) {
	for _, test := range []struct {
		rule, says string
		prepare    func(t *testing.T, f *tokenFinder)
	}{
		{"no such file", "--token-file: ", func(t *testing.T, f *tokenFinder) { f.file = filepath.Join(t.TempDir(), "token") }},
		{"an empty file", "is empty", func(t *testing.T, f *tokenFinder) { f.file = write(t, t.TempDir(), "token", "\n") }},
		{"more than a token in the file", "has a space or line break in it", func(t *testing.T, f *tokenFinder) { f.file = write(t, t.TempDir(), "token", "secret\nmore") }},
		{"a variable that is named and not there", "--id-token-variable: MY_TOKEN is not in the environment", func(t *testing.T, f *tokenFinder) { f.variable, f.named = "MY_TOKEN", true }},
		{"a configuration that cannot be read", "cannot be read", func(t *testing.T, f *tokenFinder) {
			write(t, os.Getenv("HOME"), ".terraformrc", "credentials registry {\n  secret\n")
		}},
		{"an issuer that refuses", "the token of the CI job could not be requested: 127.0.0.1:", func(t *testing.T, f *tokenFinder) {
			newIssuer(t, nil)
			t.Setenv("ACTIONS_ID_TOKEN_REQUEST_TOKEN", "secret")
		}},
		{"an issuer that answers something else", "answered without a token", func(t *testing.T, f *tokenFinder) {
			newIssuer(t, func(w http.ResponseWriter, _ string) { w.Write([]byte("<html>")) })
		}},
		{"an issuer that is not there", "could not be requested: ", func(t *testing.T, f *tokenFinder) {
			t.Setenv("ACTIONS_ID_TOKEN_REQUEST_URL", "http://127.0.0.1:1/?secret=1")
			t.Setenv("ACTIONS_ID_TOKEN_REQUEST_TOKEN", "secret")
		}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			noClientConfiguration(t)
			f := tokenFinder{hostname: "registry.example.com", variable: defaultIDTokenVariable}
			test.prepare(t, &f)
			_, err := f.find(t.Context(), registryNetwork{pause: time.Millisecond}.client(false))
			if err == nil || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "secret") {
				t.Errorf("got %v", err)
			}
		})
	}
}
