package authenticate

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-terraform/caddy-terraform-registry/access/tokenfile"
)

const tokensModule = "http.authentication.providers.terraform_tokens"

// newTokens provisions the authentication provider as a configuration does.
func newTokens(t *testing.T, file string) (*Tokens, error) {
	t.Helper()
	loaded, err := newConfiguration(t).ctx.LoadModuleByID(tokensModule, caddyconfig.JSON(&Tokens{File: file}, nil))
	if err != nil {
		return nil, err
	}
	return loaded.(*Tokens), nil
}

// tokensFile writes a file with a valid and an expired token.
func tokensFile(t *testing.T) (file, good, expired string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "tokens")
	good, expired = tokenfile.Generate(), tokenfile.Generate()
	for _, add := range []struct {
		entry  tokenfile.Entry
		secret string
	}{
		{tokenfile.Entry{Name: "ci", Groups: []string{"dev", "ops"}}, good},
		{tokenfile.Entry{Name: "old", Expires: time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)}, expired},
	} {
		if err := tokenfile.Add(file, add.entry, add.secret); err != nil {
			t.Fatal(err)
		}
	}
	return file, good, expired
}

func TestTokensAuthenticate(t *testing.T) {
	file, good, expired := tokensFile(t)
	tokens, err := newTokens(t, file)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	tokens.logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	basic := func(user, password string) string {
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
	}
	tests := []struct {
		rule, header string
		ok           bool
		log          string // a part of what is logged; empty: nothing
	}{
		{"a token", "Bearer " + good, true, ""},
		{"a scheme in lower case", "bearer " + good, true, ""},
		{"spaces around a token", " Bearer   " + good + "  ", true, ""},
		{"a password with a user name", basic("x", good), true, ""},
		{"a password without a user name", basic("", good), true, ""},
		{"no header", "", false, ""},
		{"an empty token", "Bearer ", false, ""},
		{"a scheme alone", "Bearer", false, ""},
		{"an empty password", basic("x", ""), false, ""},
		{"a token as user name", basic(good, ""), false, ""},
		{"another scheme", "Digest " + good, false, ""},
		{"a token without a scheme", good, false, ""},
		{"Basic without encoding", "Basic " + good, false, ""},
		{"an unknown token", "Bearer " + good + "x", false, "unknown or revoked"},
		{"an unknown password", basic("ci", "ci"), false, "unknown or revoked"},
		{"the name of a token", "Bearer ci", false, "unknown or revoked"},
		{"an expired token", "Bearer " + expired, false, "old"},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			log.Reset()
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			if test.header != "" {
				r.Header.Set("Authorization", test.header)
			}
			w := httptest.NewRecorder()
			user, ok, err := tokens.Authenticate(w, r)
			if err != nil || ok != test.ok {
				t.Fatalf("got %v, %v and error %v", user, ok, err)
			}
			if ok && (user.ID != "ci" || user.Metadata["groups"] != "dev,ops") {
				t.Errorf("got %+v", user)
			}
			if !ok && (user.ID != "" || len(user.Metadata) > 0) {
				t.Errorf("the user is %+v", user)
			}
			if len(w.Header()) > 0 || w.Body.Len() > 0 {
				t.Errorf("the provider wrote an answer: %v %s", w.Header(), w.Body)
			}
			if test.log == "" && log.Len() > 0 || !strings.Contains(log.String(), test.log) {
				t.Errorf("got the log %q, want %q", log.String(), test.log)
			}
			if strings.Contains(log.String(), good) || strings.Contains(log.String(), expired) {
				t.Errorf("the log has the token: %s", log.String())
			}
		})
	}
}

func TestTokensInTheAuthenticationHandler(t *testing.T) {
	file, good, _ := tokensFile(t)
	loaded, err := newConfiguration(t).ctx.LoadModuleByID("http.handlers.authentication",
		fmt.Appendf(nil, `{"providers":{"terraform_tokens":{"file":%q}}}`, file))
	if err != nil {
		t.Fatal(err)
	}
	handler := loaded.(caddyhttp.MiddlewareHandler)
	next := caddyhttp.HandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
		repl := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
		_, err := fmt.Fprint(w, repl.ReplaceAll("{http.auth.user.id} {http.auth.user.groups}", "?"))
		return err
	})
	ask := func(token string) (string, error) {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		err := handler.ServeHTTP(w, caddyhttp.PrepareRequest(r, caddy.NewReplacer(), w, nil), next)
		return w.Body.String(), err
	}
	if got, err := ask(good); err != nil || got != "ci dev,ops" {
		t.Errorf("got %q and error %v", got, err)
	}
	if got, err := ask("other"); err == nil || got != "" {
		t.Errorf("without a valid token: got %q and error %v", got, err)
	}
}

func TestTokensProvision(t *testing.T) {
	file, _, _ := tokensFile(t)
	broken := filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(broken, []byte("ci sha256:00\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TOKENS_DIR", filepath.Dir(file))
	tests := []struct {
		rule, file, want string // empty: it is good
	}{
		{"a file", file, ""},
		{"a placeholder", "{env.TOKENS_DIR}/tokens", ""},
		{"no file", "", "it is required"},
		{"an empty placeholder", "{env.TOKENS_NOWHERE}", "TOKENS_NOWHERE"},
		{"a placeholder of a request", "{http.request.host}", "http.request.host"},
		{"a missing file", file + "2", "tokens2: no such file or directory: make a first token with `caddy-terraform-registry token new NAME --file " + file + "2`"},
		{"a broken file", broken, "line 1: ci: "},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			_, err := newTokens(t, test.file)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got error %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestTokensUnmarshalCaddyfile(t *testing.T) {
	tests := []struct {
		rule, text, want string // empty: it is good
	}{
		{"a file", "terraform_tokens /etc/caddy/tokens", ""},
		{"no file", "terraform_tokens", "needs one argument"},
		{"an empty file name", `terraform_tokens ""`, "needs one argument"},
		{"two files", "terraform_tokens a b", "needs one argument"},
		{"a block", "terraform_tokens a {\n\tfile b\n}", "has no block"},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			d := caddyfile.NewTestDispenser("auth " + test.text)
			d.Next() // auth
			d.Next() // the name of the authentication provider
			loaded, err := caddyfile.UnmarshalModule(d, tokensModule)
			if test.want != "" {
				if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "Testfile:") {
					t.Errorf("got error %v, want one with %q and the position", err, test.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := string(caddyconfig.JSON(loaded, nil)); got != `{"file":"/etc/caddy/tokens"}` {
				t.Errorf("got %s", got)
			}
		})
	}
}
