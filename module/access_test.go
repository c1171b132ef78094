package module

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/caddyauth"

	"github.com/caddy-terraform/caddy-terraform-registry/access/oidc"
	"github.com/caddy-terraform/caddy-terraform-registry/access/tokenfile"
	"github.com/caddy-terraform/caddy-terraform-registry/module/authenticate"
)

func allow(who string, addresses ...string) AccessRule {
	return AccessRule{Effect: "allow", Who: who, Right: "read", Addresses: addresses}
}

// tokensProvider returns an `auth` provider with a token of each name, whose group is
// the name with an s, and the tokens by name.
func tokensProvider(t *testing.T, names ...string) (json.RawMessage, map[string]string) {
	t.Helper()
	file, tokens := filepath.Join(t.TempDir(), "tokens"), make(map[string]string)
	for _, name := range names {
		tokens[name] = tokenfile.Generate()
		if err := tokenfile.Add(file, tokenfile.Entry{Name: name, Groups: []string{name + "s"}}, tokens[name]); err != nil {
			t.Fatal(err)
		}
	}
	return json.RawMessage(fmt.Sprintf(`{"provider":"terraform_tokens","file":%q}`, file)), tokens
}

// ask sends a request to a handler, after prepare has changed it, which may be nil.
func ask(t *testing.T, h *Handler, path, token string, prepare func(*http.Request, *caddy.Replacer)) *httptest.ResponseRecorder {
	t.Helper()
	w, repl := httptest.NewRecorder(), caddy.NewReplacer()
	if strings.HasPrefix(path, "/") {
		path = "https://registry.example.com" + path
	}
	r := httptest.NewRequest(http.MethodGet, path, nil)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	r = caddyhttp.PrepareRequest(r, repl, w, &caddyhttp.Server{})
	if prepare != nil {
		prepare(r, repl)
	}
	next := caddyhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error { return errors.New("not the registry's") })
	if err := h.ServeHTTP(w, r, next); err != nil {
		t.Fatal(err)
	}
	return w
}

const versionsOfDemo = "/v1/providers/acme/demo/versions"

func TestWhoMayRead(t *testing.T) {
	c, root := newConfiguration(t), sampleTree(t)
	auth, tokens := tokensProvider(t, "ci", "stranger")
	byToken := c.mustHandle(Handler{Root: root, AuthRaw: []json.RawMessage{auth}, Access: &Access{Rules: []AccessRule{allow("ci", "acme")}}})
	byGroup := c.mustHandle(Handler{Root: root, AuthRaw: []json.RawMessage{auth}, Access: &Access{Rules: []AccessRule{allow("group:cis", "acme")}}})
	withoutRules := c.mustHandle(Handler{Root: root, AuthRaw: []json.RawMessage{auth}})
	byUser := c.mustHandle(Handler{Root: root, Access: &Access{Rules: []AccessRule{allow("bob", "acme"), allow("group:dev", "acme")}}})
	byHeader := c.mustHandle(Handler{Root: root, Access: &Access{
		Subject: "{http.request.header.Remote-User}", Groups: "{http.request.header.Remote-Groups}",
		Rules: []AccessRule{allow("bob", "acme"), allow("group:dev", "acme")},
	}})
	t.Setenv("BANNED", "bob")
	byText := c.mustHandle(Handler{Root: root, AuthRaw: []json.RawMessage{auth}, Access: &Access{
		Subject: "user:{http.auth.user.id}", Rules: []AccessRule{{Effect: "deny", Who: "user:{env.BANNED}", Right: "read", Addresses: []string{"*"}}, allow("authenticated", "*")},
	}})
	byCertificate := c.mustHandle(Handler{Root: root, AuthRaw: []json.RawMessage{auth}, Access: &Access{
		Subject: "{http.request.tls.client.subject}", Rules: []AccessRule{allow("group:cis", "acme")},
	}})
	open := c.mustHandle(Handler{Root: root})
	c.mustStart()
	snapshot(t, byToken)

	user := func(id, groups string) func(*http.Request, *caddy.Replacer) {
		return func(_ *http.Request, repl *caddy.Replacer) {
			repl.Set("http.auth.user.id", id)
			repl.Set("http.auth.user.groups", groups)
		}
	}
	header := func(user, groups string) func(*http.Request, *caddy.Replacer) {
		return func(r *http.Request, _ *caddy.Replacer) {
			r.Header.Set("Remote-User", user)
			r.Header.Set("Remote-Groups", groups)
		}
	}
	tests := []struct {
		rule    string
		handler *Handler
		token   string
		prepare func(*http.Request, *caddy.Replacer)
		want    int
	}{
		{"anyone, without rules", open, "", nil, http.StatusOK},
		{"no credentials", byToken, "", nil, http.StatusUnauthorized},
		{"a token that is allowed", byToken, tokens["ci"], nil, http.StatusOK},
		{"a token that is not allowed", byToken, tokens["stranger"], nil, http.StatusNotFound},
		{"an unknown token", byToken, "tfr_wrong", nil, http.StatusUnauthorized},
		{"a token of the group", byGroup, tokens["ci"], nil, http.StatusOK},
		{"a token of another group", byGroup, tokens["stranger"], nil, http.StatusNotFound},
		{"auth without access, any token", withoutRules, tokens["stranger"], nil, http.StatusOK},
		{"auth without access, no credentials", withoutRules, "", nil, http.StatusUnauthorized},
		{"a user set by an earlier handler", byUser, "", user("bob", ""), http.StatusOK},
		{"a group set by an earlier handler", byUser, "", user("alice", "ops, dev"), http.StatusOK},
		{"a group without a user", byUser, "", user("", "dev"), http.StatusUnauthorized},
		{"a name with the allowed one as prefix", byUser, "", user("bobby", "developers"), http.StatusNotFound},
		{"a user in a header", byHeader, "", header("bob", ""), http.StatusOK},
		{"a group in a header", byHeader, "", header("alice", "ops,dev"), http.StatusOK},
		{"an empty header", byHeader, "", header("", "dev"), http.StatusUnauthorized},
		{"text around an empty placeholder", byText, "", nil, http.StatusUnauthorized},
		{"text around a placeholder", byText, "", user("alice", ""), http.StatusOK},
		{"a rule with a placeholder", byText, "", user("bob", ""), http.StatusNotFound},
		{"a placeholder in a name is not replaced", byText, "", user("{env.BANNED}", ""), http.StatusOK},
		{"a token that is allowed, with a subject of other placeholders", byCertificate, tokens["ci"], nil, http.StatusOK},
		{"a token that is not allowed, with a subject of other placeholders", byCertificate, tokens["stranger"], nil, http.StatusNotFound},
		{"the default placeholder, with a subject of others", byHeader, "", user("bob", "dev"), http.StatusUnauthorized},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			if w := ask(t, test.handler, versionsOfDemo, test.token, test.prepare); w.Code != test.want {
				t.Errorf("got %d %s, want %d", w.Code, w.Body, test.want)
			}
			if w := ask(t, test.handler, "/.well-known/terraform.json", test.token, test.prepare); w.Code != http.StatusOK {
				t.Errorf("discovery: got %d (checklist 4)", w.Code)
			}
		})
	}
	t.Run("the access log has the user of a token", func(t *testing.T) {
		ask(t, byToken, versionsOfDemo, tokens["ci"], func(_ *http.Request, repl *caddy.Replacer) {
			t.Cleanup(func() {
				if id, _ := repl.GetString("http.auth.user.id"); id != "ci" {
					t.Errorf("{http.auth.user.id} is %q", id)
				}
			})
		})
	})
	t.Run("links are valid at every handler of the configuration", func(t *testing.T) {
		w := ask(t, byToken, "/v1/modules/acme/vpc/aws/1.0.0/download", tokens["ci"], nil)
		if w := ask(t, byGroup, w.Header().Get("X-Terraform-Get"), "", nil); w.Code != http.StatusOK {
			t.Errorf("got %d %s", w.Code, w.Body)
		}
	})
}

// The challenge of one authentication provider must not reach clients that another one
// authenticates.
func TestAuthenticationProvidersDoNotAnswer(t *testing.T) {
	auth, tokens := tokensProvider(t, "ci")
	c := newConfiguration(t)
	h := c.mustHandle(Handler{Root: sampleTree(t), AuthRaw: []json.RawMessage{json.RawMessage(`{"provider":"test_misbehaving"}`), auth}})
	c.mustStart()
	snapshot(t, h)
	w := ask(t, h, versionsOfDemo, tokens["ci"], nil)
	if w.Code != http.StatusOK || w.Header().Get("WWW-Authenticate") != "" {
		t.Errorf("got %d with %v", w.Code, w.Header())
	}
	if w := ask(t, h, versionsOfDemo, "fails", nil); w.Code != http.StatusUnauthorized {
		t.Errorf("a provider that fails: got %d, want 401", w.Code)
	}
	if w := ask(t, h, versionsOfDemo, "down", nil); w.Code != http.StatusServiceUnavailable || strings.Contains(w.Body.String(), "issuer.internal") {
		t.Errorf("a provider that cannot check credentials: got %d %s, want 503 without its reason", w.Code, w.Body)
	}
}

// misbehavingProvider is an authentication provider that fails, and writes challenges.
type misbehavingProvider struct{}

func init() { caddy.RegisterModule(misbehavingProvider{}) }

func (misbehavingProvider) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.authentication.providers.test_misbehaving", New: func() caddy.Module { return new(misbehavingProvider) }}
}

func (misbehavingProvider) Authenticate(w http.ResponseWriter, r *http.Request) (caddyauth.User, bool, error) {
	w.Header().Set("WWW-Authenticate", "Basic")
	switch r.Header.Get("Authorization") {
	case "Bearer fails":
		return caddyauth.User{}, false, errors.New("it failed")
	case "Bearer down":
		return caddyauth.User{}, false, fmt.Errorf("issuer.internal: %w", oidc.ErrUnavailable)
	}
	return caddyauth.User{}, false, nil
}

func TestProvisionAccessRefuses(t *testing.T) {
	auth, _ := tokensProvider(t, "ci")
	tests := []struct {
		rule string
		h    Handler
		want string
	}{
		{"access without a rule", Handler{Access: &Access{}}, "access: it has no rule, so nothing could be read"},
		{"an invalid rule", Handler{Access: &Access{Rules: []AccessRule{allow("ci", "acme"), {Effect: "permit", Who: "ci", Right: "read", Addresses: []string{"*"}}}}}, "access: rule 2: "},
		{"a subject without a placeholder", Handler{Access: &Access{Subject: "http.auth.user.id", Rules: []AccessRule{allow("ci", "*")}}}, "has no placeholder, so all requests would have the same subject"},
		{"a rule with a placeholder of a request", Handler{Access: &Access{Rules: []AccessRule{allow("{http.auth.user.id}", "*")}}}, "access: rule 1: "},
		{"links where everything is public", Handler{Links: caddy.Duration(time.Minute)}, "links: no links are signed where anyone may read everything"},
		{"links that expire too soon", Handler{AuthRaw: []json.RawMessage{auth}, Links: caddy.Duration(time.Millisecond)}, "links: 1ms is not between 1s and 12h"},
		{"links that are valid too long", Handler{AuthRaw: []json.RawMessage{auth}, Links: caddy.Duration(24 * time.Hour)}, "links: 24h0m0s is not between 1s and 12h"},
		{"an unknown authentication provider", Handler{AuthRaw: []json.RawMessage{json.RawMessage(`{"provider":"unknown"}`)}}, "auth: "},
		{"a missing file of tokens", Handler{AuthRaw: []json.RawMessage{json.RawMessage(`{"provider":"terraform_tokens","file":"/nowhere/tokens"}`)}}, "auth: "},
		{"an invalid login", Handler{Login: &Login{}}, "login: client: it is missing"},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			test.h.Root = sampleTree(t)
			_, err := newConfiguration(t).handle(test.h)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want one with %q", err, test.want)
			}
		})
	}
}

// If an earlier version let publishers manage, too, a line says which rule to write
// now.
func TestWarnOfManaging(t *testing.T) {
	for _, test := range []struct {
		rule  string
		rules []string
		warns bool
	}{
		{"somebody may publish, and nobody manage", []string{"allow ci publish acme"}, true},
		{"nor what they publish", []string{"allow ci read *", "allow group:builders publish *"}, true},
		{"somebody may manage", []string{"allow ci publish acme", "allow group:platform manage *"}, false},
		{"it is said that nobody may", []string{"allow ci publish acme", "deny authenticated manage *"}, false},
		{"managing alone", []string{"allow ops manage *"}, false},
		{"reading alone", []string{"allow ci read *"}, false},
		{"nobody may publish", []string{"allow ci read *", "deny ci publish *"}, false},
		{"no rules", nil, false},
	} {
		t.Run(test.rule, func(t *testing.T) {
			h := Handler{Root: t.TempDir(), SigningKey: &SigningKey{Off: true}}
			if test.rules != nil {
				h.Access = new(Access)
			}
			for _, line := range test.rules {
				rule, err := NewAccessRule(strings.Fields(line))
				if err != nil {
					t.Fatal(err)
				}
				h.Access.Rules = append(h.Access.Rules, rule)
			}
			var log bytes.Buffer
			h.logger = slog.New(slog.NewTextHandler(&log, nil))
			h.warnOfManaging()
			want := 0
			if test.warns {
				want = 1
			}
			if got := strings.Count(log.String(), "level=WARN"); got != want || strings.Count(log.String(), "manage *") < want {
				t.Errorf("it logs %s", log.String())
			}
		})
	}
}

// The line is logged when a configuration is loaded, once.
func TestLoadingWarnsOfManaging(t *testing.T) {
	options, _ := publishingHandler(t)
	options.Access.Rules[0].Right = "publish"
	handler, err := json.Marshal(options)
	if err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(t.TempDir(), "log")
	var config caddy.Config
	text := fmt.Sprintf(`{
		"admin":{"disabled":true,"config":{"persist":false}},
		"storage":{"module":"file_system","root":%q},
		"logging":{"logs":{"default":{"writer":{"output":"file","filename":%q}}}},
		"apps":{"http":{"servers":{"registry":{"listen":["127.0.0.1:0"],"routes":[
			{"handle":[{"handler":"terraform_registry",%s]}]}}}}}`, t.TempDir(), log, strings.TrimPrefix(string(handler), "{"))
	if err := json.Unmarshal([]byte(text), &config); err != nil {
		t.Fatal(err)
	}
	if err := caddy.Validate(&config); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(log)
	if got := strings.Count(string(content), "the right publish no longer includes"); err != nil || got != 1 {
		t.Errorf("it warns %d times (%v):\n%s", got, err, content)
	}
}

// A password that cannot be compared is not a wrong one: the answer tells the client to
// try again.
func TestPasswordsThatCannotBeComparedAreNotWrong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots := authenticate.NewPasswordSlots()
		for slots.TryAcquire(1) {
		}
		basic := authenticate.BoundPasswords(new(caddyauth.HTTPBasicAuth), slots)
		h := &Handler{authenticators: []caddyauth.Authenticator{basic}, subject: defaultSubject, groups: defaultGroups}
		h.logger, h.outage = slog.New(slog.DiscardHandler), new(atomic.Bool)
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.SetBasicAuth("alice", "$right")
		r = r.WithContext(context.WithValue(r.Context(), caddy.ReplacerCtxKey, caddy.NewReplacer()))
		if s, err := h.authenticate(r); !s.Anonymous() || !errors.Is(err, authenticate.ErrTooManyPasswords) {
			t.Errorf("she is %v, error %v", s, err)
		}
	})
}
