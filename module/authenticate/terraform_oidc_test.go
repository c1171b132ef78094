package authenticate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/caddyauth"

	"github.com/caddy-terraform/caddy-terraform-registry/access/oidc"
	"github.com/caddy-terraform/caddy-terraform-registry/access/oidc/oidctest"
)

// openID provisions a provider of a configuration.
func openID(c *configuration, o OpenID) (*OpenID, error) {
	c.t.Helper()
	raw, err := json.Marshal(o)
	if err != nil {
		c.t.Fatal(err)
	}
	loaded, err := c.ctx.LoadModuleByID("http.authentication.providers.terraform_oidc", raw)
	if err != nil {
		return nil, err
	}
	return loaded.(*OpenID), nil
}

func mustOpenID(c *configuration, o OpenID) *OpenID {
	c.t.Helper()
	loaded, err := openID(c, o)
	if err != nil {
		c.t.Fatal(err)
	}
	return loaded
}

func withAuthorization(value string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	if value != "" {
		r.Header.Set("Authorization", value)
	}
	return r
}

func TestOpenIDAuthenticates(t *testing.T) {
	s := oidctest.NewIssuer(t)
	o := mustOpenID(newConfiguration(t), OpenID{Issuer: s.URL, Audience: []string{"registry"}})
	token := s.Mint(map[string]any{"groups": []string{"dev", "a,b", "ops"}})
	basic := func(user, password string) string {
		r := withAuthorization("")
		r.SetBasicAuth(user, password)
		return r.Header.Get("Authorization")
	}
	alice := caddyauth.User{ID: "alice", Metadata: map[string]string{"groups": "dev,ops"}}
	alone := caddyauth.User{ID: "alice", Metadata: map[string]string{"groups": ""}}
	tests := []struct {
		rule, authorization string
		want                caddyauth.User
	}{
		{"a bearer", "Bearer " + token, alice},
		{"a scheme in lower case", "bearer " + token, alice},
		{"a password, as from a .netrc file", basic("token", token), alice},
		{"a password without a user", basic("", token), alice},
		{"no groups", "Bearer " + s.Mint(nil), alone},
		{"no header", "", caddyauth.User{}},
		{"an empty bearer", "Bearer ", caddyauth.User{}},
		{"a scheme alone", "Bearer", caddyauth.User{}},
		{"another scheme", "Token " + token, caddyauth.User{}},
		{"no scheme", token, caddyauth.User{}},
		{"a user without a password", basic(token, ""), caddyauth.User{}},
		{"another password", basic("alice", "secret"), caddyauth.User{}},
		{"a token of another kind", "Bearer secret", caddyauth.User{}},
		{"a token for another audience", "Bearer " + s.Mint(map[string]any{"aud": "other"}), caddyauth.User{}},
		{"an expired token", "Bearer " + s.Mint(map[string]any{"exp": 1}), caddyauth.User{}},
		{"a token of another issuer", "Bearer " + oidctest.NewIssuer(t).Mint(nil), caddyauth.User{}},
		{"a forged token", "Bearer " + oidctest.NewIssuer(t).Mint(map[string]any{"iss": s.URL}), caddyauth.User{}},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			w := httptest.NewRecorder()
			user, ok, err := o.Authenticate(w, withAuthorization(test.authorization))
			if err != nil || ok != (test.want.ID != "") || !reflect.DeepEqual(user, test.want) {
				t.Errorf("got %+v, %v, %v, want %+v", user, ok, err, test.want)
			}
			if len(w.Header()) > 0 || w.Body.Len() > 0 {
				t.Error("the provider wrote an answer")
			}
		})
	}
}

// The log has the reason why a token is refused, and no part of the token.
func TestOpenIDLogsReasons(t *testing.T) {
	s := oidctest.NewIssuer(t)
	o := mustOpenID(newConfiguration(t), OpenID{Issuer: s.URL, Audience: []string{"registry"}})
	var log bytes.Buffer
	o.logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	token := s.Mint(map[string]any{"aud": "other"})
	if _, ok, err := o.Authenticate(nil, withAuthorization("Bearer "+token)); ok || err != nil {
		t.Fatal(ok, err)
	}
	if !strings.Contains(log.String(), "audience") || !strings.Contains(log.String(), "level=DEBUG") {
		t.Errorf("the log has %q", &log)
	}
	for part := range strings.SplitSeq(token, ".") {
		if strings.Contains(log.String(), part) {
			t.Errorf("the log has a part of the token: %q", &log)
		}
	}
}

func TestOpenIDOfAnUnavailableIssuer(t *testing.T) {
	s := oidctest.NewIssuer(t)
	s.Broken.Store(true)
	o := mustOpenID(newConfiguration(t), OpenID{Issuer: s.URL, Audience: []string{"registry"}})
	user, ok, err := o.Authenticate(nil, withAuthorization("Bearer "+s.Mint(nil)))
	if ok || user.ID != "" || !errors.Is(err, oidc.ErrUnavailable) {
		t.Errorf("got %v, %v, %v", user, ok, err)
	}
	if _, ok, err := o.Authenticate(nil, withAuthorization("Bearer secret")); ok || err != nil {
		t.Errorf("for a token of another kind: %v, %v", ok, err)
	}
}

// The cached keys of an issuer are kept across reloads.
func TestOpenIDSurvivesReloads(t *testing.T) {
	s := oidctest.NewIssuer(t)
	options := OpenID{Issuer: s.URL, Audience: []string{"registry"}}
	request := func() *http.Request { return withAuthorization("Bearer " + s.Mint(nil)) }
	before := newConfiguration(t)
	if _, ok, err := mustOpenID(before, options).Authenticate(nil, request()); !ok || err != nil {
		t.Fatal(ok, err)
	}
	s.Broken.Store(true)
	after := newConfiguration(t)
	o := mustOpenID(after, options)
	before.cancel()
	if _, ok, err := o.Authenticate(nil, request()); !ok || err != nil {
		t.Errorf("after a reload: %v, %v", ok, err)
	}
	after.cancel()
	if n, ok := issuerPool.References(s.URL); ok {
		t.Errorf("the issuer still has %d references", n)
	}
}

func TestOpenIDOptions(t *testing.T) {
	t.Setenv("REGISTRY_ISSUER", "https://issuer.example.com")
	t.Setenv("REGISTRY_NAME", "registry")
	registry := []string{"registry"}
	const url = "https://issuer.example.com"
	tests := []struct {
		rule    string
		options OpenID
		want    string // in the error, empty without
	}{
		{"an issuer that cannot be reached", OpenID{Issuer: "https://issuer.invalid", Audience: registry}, ""},
		{"placeholders", OpenID{Issuer: "{env.REGISTRY_ISSUER}", Audience: []string{"{env.REGISTRY_NAME}"}}, ""},
		{"no issuer", OpenID{Audience: registry}, "issuer: it is missing"},
		{"http", OpenID{Issuer: "http://issuer.example.com", Audience: registry}, "must begin with https://"},
		{"no audience", OpenID{Issuer: url}, "audience: it is missing"},
		{"a placeholder of requests", OpenID{Issuer: "{http.request.host}", Audience: registry}, "issuer:"},
		{"an unset variable", OpenID{Issuer: url, Audience: []string{"{env.REGISTRY_UNSET}"}}, "audience:"},
		{"an unset variable for the subject", OpenID{Issuer: url, Audience: registry, SubjectClaim: "{env.REGISTRY_UNSET}"}, "subject_claim:"},
		{"an unset variable for the groups", OpenID{Issuer: url, Audience: registry, GroupsClaims: []string{"{env.REGISTRY_UNSET}"}}, "groups_claims:"},
		{"an unset variable for a value", OpenID{Issuer: url, Audience: registry, Require: map[string][]string{"a": {"{env.REGISTRY_UNSET}"}}}, "require: a:"},
		{"a required claim without values", OpenID{Issuer: url, Audience: registry, Require: map[string][]string{"a": {}}}, "has no values"},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			c := newConfiguration(t)
			o, err := openID(c, test.options)
			if test.want != "" {
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("got error %v, want one with %q", err, test.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(o.Issuer+o.Audience[0], "{") {
				t.Errorf("the placeholders are still in %+v", o)
			}
		})
	}
	if n, ok := issuerPool.References(url); ok {
		t.Errorf("%d issuers were not released", n)
	}
}

// Caddy also cleans up after a failed Provision.
func TestOpenIDReleasesOnlyAcquiredIssuers(t *testing.T) {
	s := oidctest.NewIssuer(t)
	mustOpenID(newConfiguration(t), OpenID{Issuer: s.URL, Audience: []string{"registry"}})
	for _, wrong := range []OpenID{
		{Issuer: s.URL},
		{Issuer: s.URL, Audience: []string{"{env.REGISTRY_UNSET}"}},
	} {
		if _, err := openID(newConfiguration(t), wrong); err == nil {
			t.Errorf("%+v is accepted", wrong)
		}
	}
	if n, ok := issuerPool.References(s.URL); !ok || n != 1 {
		t.Errorf("the issuer has %d references, %v, want 1", n, ok)
	}
	if n := s.Asked.Load(); n != 0 {
		t.Errorf("provisioning asked the issuer %d times", n)
	}
}

func TestOpenIDUnmarshalCaddyfile(t *testing.T) {
	d := caddyfile.NewTestDispenser(`terraform_oidc https://issuer.example.com {
		audience a b
		audience c
		subject  email
		groups   groups realm_access.roles
		groups   roles
		require  owner acme
		require  ref refs/heads/* "refs/tags/v *"
		require  owner initech
	}`)
	var o OpenID
	if err := o.UnmarshalCaddyfile(d); err != nil {
		t.Fatal(err)
	}
	want := OpenID{
		Issuer:       "https://issuer.example.com",
		Audience:     []string{"a", "b", "c"},
		SubjectClaim: "email",
		GroupsClaims: []string{"groups", "realm_access.roles", "roles"},
		Require:      map[string][]string{"owner": {"acme", "initech"}, "ref": {"refs/heads/*", "refs/tags/v *"}},
	}
	if !reflect.DeepEqual(o, want) {
		t.Errorf("got %+v, want %+v", o, want)
	}
	if d.Next() {
		t.Errorf("%q is left", d.Val())
	}
}

func TestOpenIDUnmarshalCaddyfileRefuses(t *testing.T) {
	block := func(lines string) string {
		return "terraform_oidc https://issuer.example.com {\n" + lines + "\n}"
	}
	tests := []struct{ rule, text, want string }{
		{"no issuer", "terraform_oidc {\naudience a\n}", "takes one argument"},
		{"an empty issuer", "terraform_oidc \"\" {\naudience a\n}", "takes one argument"},
		{"two issuers", "terraform_oidc https://a https://b {\naudience a\n}", "takes one argument"},
		{"no block", "terraform_oidc https://issuer.example.com", "the audience is missing"},
		{"no audience", block("subject email"), "the audience is missing"},
		{"an empty line of audiences", block("audience"), "wrong argument count"},
		{"an unknown option", block("scope openid"), "unrecognized subdirective 'scope', the allowed ones are: audience,"},
		{"no subject", block("audience a\nsubject"), "wrong argument count"},
		{"two subjects in a line", block("audience a\nsubject b c"), "subject takes one claim"},
		{"two subjects", block("audience a\nsubject b\nsubject c"), "subject is already specified"},
		{"no groups", block("audience a\ngroups"), "wrong argument count"},
		{"a required claim without values", block("audience a\nrequire owner"), "require takes a claim and the values"},
		{"an option with a block", block("audience a {\nb\n}"), "audience does not have a block"},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			err := new(OpenID).UnmarshalCaddyfile(caddyfile.NewTestDispenser(test.text))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got error %v, want one with %q", err, test.want)
			}
			if !strings.Contains(err.Error(), "at Testfile:") {
				t.Errorf("error %q does not have the position", err)
			}
		})
	}
}

// A canceled request does not wait for the issuer.
func TestOpenIDOfACanceledRequest(t *testing.T) {
	release := make(chan struct{})
	hanging := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer hanging.Close()
	defer close(release)
	s := oidctest.NewIssuer(t)
	o := mustOpenID(newConfiguration(t), OpenID{Issuer: hanging.URL, Audience: []string{"registry"}})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := withAuthorization("Bearer " + s.Mint(map[string]any{"iss": hanging.URL})).WithContext(ctx)
	if _, ok, err := o.Authenticate(nil, r); ok || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, %v", ok, err)
	}
}
