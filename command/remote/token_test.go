package remote

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/command/commandtest"
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
	commandtest.NoClientConfiguration(t)
	find := func(f TokenFinder) (foundToken, error) {
		t.Helper()
		f.hostname = "registry.example.com"
		f.variable = DefaultIDTokenVariable
		return f.find(t.Context(), Network{Pause: time.Millisecond}.client(false))
	}
	is := func(rule string, f TokenFinder, secret, origin string) {
		t.Helper()
		if got, err := find(f); err != nil || got.secret != secret || !strings.Contains(got.origin, origin) {
			t.Errorf("%s: got %+v, %v", rule, got, err)
		}
	}
	is("nothing", TokenFinder{}, "", "")
	newIssuer(t, func(w http.ResponseWriter, audience string) {
		w.Write([]byte(`{"value":"for:` + audience + `","count":1}`))
	})
	is("a job of GitHub Actions", TokenFinder{}, "for:https://registry.example.com", "the CI job")
	is("with another audience", TokenFinder{audience: "registry"}, "for:registry", "the CI job")
	t.Setenv(DefaultIDTokenVariable, "of-gitlab")
	is("a job of GitLab", TokenFinder{}, "of-gitlab", DefaultIDTokenVariable)
	home := os.Getenv("HOME")
	commandtest.Write(t, home, ".tofurc", `credentials "registry.example.com" { token = "configured" }`)
	is("a configuration", TokenFinder{}, "configured", ".tofurc")
	commandtest.Write(t, home, ".terraform.d/credentials.tfrc.json", `{"credentials":{"registry.example.com":{"token":"stored"}}}`)
	is("a login", TokenFinder{}, "stored", "credentials.tfrc.json")
	t.Setenv("TF_TOKEN_registry_example_com", "in-environment")
	is("the environment", TokenFinder{}, "in-environment", "TF_TOKEN_registry_example_com")
	file := commandtest.Write(t, t.TempDir(), "token", " in-file\n")
	is("a file", TokenFinder{file: file}, "in-file", file)
	file = commandtest.Write(t, t.TempDir(), "token", "\ufeffin-file\r\n")
	is("a file with a byte order mark", TokenFinder{file: file}, "in-file", file)
	file = commandtest.Write(t, t.TempDir(), "token", "\xff\xfei\x00n\x00\r\x00\n\x00")
	is("a file in UTF-16", TokenFinder{file: file}, "in", file)
}

func TestTokensThatCannotBeUsed(t *testing.T) {
	for _, test := range []struct {
		rule, says string
		prepare    func(t *testing.T, f *TokenFinder)
	}{
		{"no such file", "--token-file: ", func(t *testing.T, f *TokenFinder) { f.file = filepath.Join(t.TempDir(), "token") }},
		{"an empty file", "is empty", func(t *testing.T, f *TokenFinder) { f.file = commandtest.Write(t, t.TempDir(), "token", "\n") }},
		{"more than a token in the file", "has a space or line break in it", func(t *testing.T, f *TokenFinder) {
			f.file = commandtest.Write(t, t.TempDir(), "token", "secret\nmore")
		}},
		{"a variable that is named and not there", "--id-token-variable: MY_TOKEN is not in the environment", func(t *testing.T, f *TokenFinder) { f.variable, f.named = "MY_TOKEN", true }},
		{"a configuration that cannot be read", "cannot be read", func(t *testing.T, f *TokenFinder) {
			commandtest.Write(t, os.Getenv("HOME"), ".terraformrc", "credentials registry {\n  secret\n")
		}},
		{"an issuer that refuses", "the token of the CI job could not be requested: 127.0.0.1:", func(t *testing.T, f *TokenFinder) {
			newIssuer(t, nil)
			t.Setenv("ACTIONS_ID_TOKEN_REQUEST_TOKEN", "secret")
		}},
		{"an issuer that answers something else", "answered without a token", func(t *testing.T, f *TokenFinder) {
			newIssuer(t, func(w http.ResponseWriter, _ string) { w.Write([]byte("<html>")) })
		}},
		{"an issuer that is not there", "could not be requested: ", func(t *testing.T, f *TokenFinder) {
			t.Setenv("ACTIONS_ID_TOKEN_REQUEST_URL", "http://127.0.0.1:1/?secret=1")
			t.Setenv("ACTIONS_ID_TOKEN_REQUEST_TOKEN", "secret")
		}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			commandtest.NoClientConfiguration(t)
			f := TokenFinder{hostname: "registry.example.com", variable: DefaultIDTokenVariable}
			test.prepare(t, &f)
			_, err := f.find(t.Context(), Network{Pause: time.Millisecond}.client(false))
			if err == nil || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "secret") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// The token of a job is requested again before it expires, and goes on being used while that
// fails and it is still valid.
func TestTokensOfJobsAreRenewed(t *testing.T) {
	for _, test := range []struct {
		rule   string
		token  string        // "": as a job has it
		life   time.Duration // of the first token; zero: it does not say
		refuse bool          // the second
		want   string
		says   string
	}{
		{rule: "it is valid for long", life: time.Hour, want: "1"},
		{rule: "it does not say how long", want: "1"},
		{rule: "it is about to expire", life: renewBefore / 2, want: "2"},
		{rule: "it has expired", life: -time.Minute, want: "2"},
		{rule: "it is about to expire, and there is no other", life: renewBefore / 2, refuse: true, want: "1"},
		{rule: "it has expired, and there is no other", life: -time.Minute, refuse: true, says: "the token of the CI job could not be requested"},
		{rule: "one that was given has expired", token: tokenOf("given", -time.Minute), want: "given"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			commandtest.NoClientConfiguration(t)
			requests := 0
			newIssuer(t, func(w http.ResponseWriter, _ string) {
				requests++
				life := time.Hour
				if requests == 1 {
					life = test.life
				} else if test.refuse {
					w.WriteHeader(http.StatusForbidden)
					return
				}
				json.NewEncoder(w).Encode(map[string]string{"value": tokenOf(strconv.Itoa(requests), life)})
			})
			f := TokenFinder{hostname: "registry.example.com", variable: DefaultIDTokenVariable}
			if test.token != "" {
				t.Setenv(DefaultIDTokenVariable, test.token)
			}
			client := Network{Pause: time.Millisecond}.client(false)
			found, err := f.find(t.Context(), client)
			if err != nil {
				t.Fatal(err)
			}
			token := &runToken{finder: f, client: client, foundToken: found}
			for range 3 {
				secret, err := token.current(t.Context())
				if test.says != "" {
					if err == nil || !strings.Contains(err.Error(), test.says) {
						t.Errorf("got %v", err)
					}
				} else if name, _, _ := strings.Cut(secret, "."); err != nil || name != test.want {
					t.Errorf("got %q, %v", secret, err)
				}
			}
			if !test.refuse && test.token == "" && requests > 2 {
				t.Errorf("%d were requested", requests)
			}
		})
	}
}

// tokenOf is a token like the tokens of issuers. Without a life, it does not say when it
// expires.
func tokenOf(name string, life time.Duration) string {
	claims := "{}"
	if life != 0 {
		claims = fmt.Sprintf(`{"exp":%d}`, time.Now().Add(life).Unix())
	}
	return name + "." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".signature"
}

// A variable that cannot be for a host with a port is named.
func TestTokenVariablesOfHostsWithPorts(t *testing.T) {
	for _, test := range []struct{ hostname, set, says string }{
		{"registry.example.com:8443", "TF_TOKEN_registry_example_com", "do not use TF_TOKEN_registry_example_com for it. Log in with terraform login, or name a file by --token-file."},
		{"registry.example.com:8443", "TF_TOKEN_registry_example_com_8443", "do not use TF_TOKEN_registry_example_com_8443 for it."},
		{"registry.example.com:8443", "TF_TOKEN_example_com", "No token was found: log in with terraform login"},
		{"registry.example.com", "TF_TOKEN_example_com", "set TF_TOKEN_registry_example_com"},
	} {
		t.Run(test.hostname+" "+test.set, func(t *testing.T) {
			commandtest.NoClientConfiguration(t)
			t.Setenv(test.set, "secret")
			f := TokenFinder{hostname: svchost.Hostname(test.hostname), variable: DefaultIDTokenVariable}
			found, err := f.find(t.Context(), Network{Pause: time.Millisecond}.client(false))
			if hint := f.hint(found); err != nil || found.secret != "" || !strings.Contains(hint, test.says) {
				t.Errorf("got %q, %v", hint, err)
			}
		})
	}
}
