package oidc

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
)

var testChallenge = Challenge{State: "the-state", Nonce: "the-nonce", Verifier: strings.Repeat("v", 43), RedirectURI: "https://registry.example.com/_registry/callback"}

// answersTokens has the token endpoint answer with these tokens.
func (p *provider) answersTokens(answer map[string]any) {
	p.tokens = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(answer)
	}
}

// idToken returns the ID token of the test's login, with changes to its claims.
func (p *provider) idToken(changes ...any) string {
	p.t.Helper()
	return p.token(append([]any{"aud", "cli", "nonce", testChallenge.Nonce}, changes...)...)
}

func (p *provider) client(options ...Options) *Client {
	p.t.Helper()
	c := &Client{Issuer: p.issuer(), ID: "cli", Scopes: []string{"groups"}}
	if len(options) == 0 {
		options = []Options{{}}
	}
	for _, o := range options {
		c.Verifiers = append(c.Verifiers, p.verifierOf(c.Issuer, o))
	}
	return c
}

func TestAuthorizationURL(t *testing.T) {
	p := newProvider(t)
	sum := sha256.Sum256([]byte(testChallenge.Verifier))
	want := url.Values{
		"response_type": {"code"}, "client_id": {"cli"}, "redirect_uri": {testChallenge.RedirectURI}, "scope": {"openid groups"},
		"state": {"the-state"}, "nonce": {"the-nonce"}, "code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"},
	}
	check := func(rule string, c *Client, again bool, before string, want url.Values) {
		t.Helper()
		got, err := c.AuthorizationURL(t.Context(), testChallenge, again)
		u, _ := url.Parse(got)
		if err != nil || !strings.HasPrefix(got, before+"?") || !reflect.DeepEqual(u.Query(), want) {
			t.Errorf("%s: got %s, %v, want %s with %v", rule, got, err, before, want)
		}
	}
	with := func(name, value string) url.Values {
		v := url.Values{name: {value}}
		for k := range want {
			if k != name {
				v[k] = want[k]
			}
		}
		return v
	}
	check("the issuer's endpoint", p.client(), false, p.server.URL+"/authorize", want)
	check("another user", p.client(), true, p.server.URL+"/authorize", with("prompt", "login"))
	c := p.client()
	c.Authorization, c.Secret = "https://login.example.com/a?audience=registry", "hush"
	check("a configured endpoint with a query", c, false, "https://login.example.com/a", with("audience", "registry"))
	c = p.client()
	c.Scopes = []string{"profile", "openid"}
	check("openid is requested once", c, false, p.server.URL+"/authorize", with("scope", "profile openid"))

	p.down.Store(true)
	if _, err := p.client().AuthorizationURL(t.Context(), testChallenge, false); !errors.Is(err, ErrUnavailable) {
		t.Errorf("an issuer that is down: %v", err)
	}
}

func TestRedeem(t *testing.T) {
	p := newProvider(t)
	stranger := newKey(t, "stranger", "ES256")
	end := func(d time.Duration) time.Time { return p.now().Add(d).Truncate(time.Second) }
	alice := func(groups ...string) access.Subject { return access.Subject{ID: "alice", Groups: groups} }
	access := p.token("groups", []string{"dev"}, "exp", p.now().Add(2*time.Hour).Unix())
	acme := map[string][]string{"org": {"acme"}}
	hash := func(token string) string {
		sum := sha256.Sum256([]byte(token))
		return base64.RawURLEncoding.EncodeToString(sum[:16])
	}
	for _, test := range []struct {
		rule    string
		answer  map[string]any
		options []Options
		want    Identity
		err     error
	}{
		{"an access token for the registry says who it is",
			map[string]any{"id_token": p.idToken("groups", []string{"other"}), "access_token": access}, nil,
			Identity{alice("dev"), end(2 * time.Hour)}, nil},
		{"an opaque access token leaves it to the ID token",
			map[string]any{"id_token": p.idToken("groups", []string{"ops"}), "access_token": "opaque"}, nil,
			Identity{alice("ops"), end(time.Hour)}, nil},
		{"and tells how long it lasts",
			map[string]any{"id_token": p.idToken(), "access_token": "opaque", "expires_in": 7200}, nil,
			Identity{alice(), end(2 * time.Hour)}, nil},
		{"an access token for another service is not for the registry",
			map[string]any{"id_token": p.idToken(), "access_token": p.token("aud", "other", "sub", "bob"), "expires_in": "60"}, nil,
			Identity{alice(), end(time.Minute)}, nil},
		{"the second verifier accepts what the first does not",
			map[string]any{"id_token": p.idToken("email", "a@example.com"), "access_token": "opaque"},
			[]Options{{Require: acme}, {SubjectClaim: "email"}},
			Identity{Subject: subjectNamed("a@example.com"), Expiry: end(time.Hour)}, nil},
		{"an ID token is for the verifier that has its audience, whatever another one accepts",
			map[string]any{"id_token": p.idToken(), "access_token": "opaque"},
			[]Options{{Audience: []string{"ci"}}, {Audience: []string{"cli"}, Require: acme}}, Identity{}, ErrRefused},
		{"and that verifier decides on the groups",
			map[string]any{"id_token": p.idToken("org", "acme", "groups", []string{"other"}, "roles", []string{"ops"}), "access_token": "opaque"},
			[]Options{{Audience: []string{"ci"}}, {Audience: []string{"cli"}, Require: acme, GroupsClaims: []string{"roles"}}},
			Identity{alice("ops"), end(time.Hour)}, nil},
		{"where the verifier of its audience refuses an access token, no ID token is accepted by another one",
			map[string]any{"id_token": p.idToken(), "access_token": access},
			[]Options{{Audience: []string{"registry"}, Require: acme}, {Audience: []string{"ci"}}}, Identity{}, ErrRefused},
		{"a single verifier accepts the ID token, if the access token lacks a claim",
			map[string]any{"id_token": p.idToken("org", "acme"), "access_token": access}, []Options{{Require: acme}}, Identity{alice(), end(time.Hour)}, nil},
		{"the second verifier accepts an access token that the first one of the same audience does not",
			map[string]any{"id_token": p.idToken(), "access_token": access}, []Options{{Require: acme}, {}}, Identity{alice("dev"), end(2 * time.Hour)}, nil},
		{"an ID token of no verifier's audience, which one of them does not accept",
			map[string]any{"id_token": p.idToken(), "access_token": "opaque"},
			[]Options{{Audience: []string{"ci"}}, {Audience: []string{"registry"}, Require: acme}}, Identity{}, ErrRefused},
		{"and which all of them accept",
			map[string]any{"id_token": p.idToken("org", "acme"), "access_token": "opaque"},
			[]Options{{Audience: []string{"ci"}}, {Audience: []string{"registry"}, Require: acme}}, Identity{alice(), end(time.Hour)}, nil},
		{"requirements for tokens apply to ID tokens",
			map[string]any{"id_token": p.idToken(), "access_token": "opaque"}, []Options{{Require: acme}}, Identity{}, ErrRefused},
		{"a subject without a name", map[string]any{"id_token": p.idToken(), "access_token": "opaque"}, []Options{{SubjectClaim: "email"}}, Identity{}, ErrRefused},
		{"the access token that its hash says", map[string]any{"id_token": p.idToken("at_hash", hash("opaque")), "access_token": "opaque"}, nil, Identity{alice(), end(time.Hour)}, nil},
		{"another access token than its hash says", map[string]any{"id_token": p.idToken("at_hash", hash("other")), "access_token": access}, nil, Identity{}, ErrRefused},
		{"no ID token", map[string]any{"access_token": access}, nil, Identity{}, ErrClient},
		{"an ID token without a nonce", map[string]any{"id_token": p.idToken("nonce", nil), "access_token": access}, nil, Identity{}, ErrRefused},
		{"the ID token of another login", map[string]any{"id_token": p.idToken("nonce", "other"), "access_token": access}, nil, Identity{}, ErrRefused},
		{"the ID token of another client", map[string]any{"id_token": p.idToken("aud", "other"), "access_token": access}, nil, Identity{}, ErrRefused},
		{"an ID token for two, issued to this client", map[string]any{"id_token": p.idToken("aud", []string{"cli", "api"}, "azp", "cli"), "access_token": access}, nil, Identity{alice("dev"), end(2 * time.Hour)}, nil},
		{"an ID token for two, issued to the other", map[string]any{"id_token": p.idToken("aud", []string{"cli", "api"}, "azp", "api"), "access_token": access}, nil, Identity{}, ErrRefused},
		{"an ID token for two, issued to nobody", map[string]any{"id_token": p.idToken("aud", []string{"cli", "api"}), "access_token": access}, nil, Identity{}, ErrRefused},
		{"an ID token that has expired", map[string]any{"id_token": p.idToken("exp", p.now().Add(-time.Second).Unix()), "access_token": access}, nil, Identity{}, ErrRefused},
		{"an ID token of another issuer", map[string]any{"id_token": p.idToken("iss", "https://evil.example"), "access_token": access}, nil, Identity{}, ErrRefused},
		{"an ID token with another key", map[string]any{"id_token": p.sign(stranger, p.claims("aud", "cli", "nonce", testChallenge.Nonce)), "access_token": access}, nil, Identity{}, ErrRefused},
		{"no access token", map[string]any{"id_token": p.idToken()}, nil, Identity{}, ErrUnavailable},
	} {
		t.Run(test.rule, func(t *testing.T) {
			p.answersTokens(test.answer)
			got, err := p.client(test.options...).Redeem(t.Context(), "the-code", testChallenge)
			if !errors.Is(err, test.err) || test.err == nil && (err != nil || !reflect.DeepEqual(got.Subject, test.want.Subject) || !got.Expiry.Equal(test.want.Expiry)) {
				t.Errorf("got %+v, %v, want %+v, %v", got, err, test.want, test.err)
			}
		})
	}
}

func subjectNamed(id string) access.Subject { return access.Subject{ID: id} }

func TestRedeemPresentsTheClient(t *testing.T) {
	p := newProvider(t)
	for _, test := range []struct {
		rule, secret string
		methods      []string // nil: none are listed
		header       bool
	}{
		{"a client without a secret", "", nil, false},
		{"a secret goes into the header", "hush:%", nil, true},
		{"also where both are possible", "hush", []string{"client_secret_post", "client_secret_basic"}, true},
		{"or into the form where that alone is possible", "hush", []string{"client_secret_post"}, false},
	} {
		t.Run(test.rule, func(t *testing.T) {
			p.change(func() {
				p.config = func(c map[string]any) {
					if test.methods != nil {
						c["token_endpoint_auth_methods_supported"] = test.methods
					}
				}
			})
			p.answersTokens(map[string]any{"id_token": p.idToken(), "access_token": "opaque"})
			answer := p.tokens
			p.tokens = func(w http.ResponseWriter, r *http.Request) {
				form := func(name string) string { return r.PostFormValue(name) }
				id, secret, ok := r.BasicAuth()
				if ok != test.header || ok && (id != "cli" || secret != url.QueryEscape(test.secret)) || !ok && (form("client_id") != "cli" || form("client_secret") != test.secret) {
					t.Errorf("it is presented as %q %q, %v", id, secret, r.PostForm)
				}
				if form("grant_type") != "authorization_code" || form("code") != "the-code" || form("code_verifier") != testChallenge.Verifier || form("redirect_uri") != testChallenge.RedirectURI {
					t.Errorf("the form is %v", r.PostForm)
				}
				answer(w, r)
			}
			c := p.client()
			c.Secret = test.secret
			if _, err := c.Redeem(t.Context(), "the-code", testChallenge); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestRedeemFails(t *testing.T) {
	p := newProvider(t)
	answers := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Location", "https://evil.example/token")
			w.WriteHeader(status)
			w.Write([]byte(body))
		}
	}
	for _, test := range []struct {
		rule   string
		answer http.HandlerFunc
		want   error
	}{
		{"a code that was used", answers(400, `{"error":"invalid_grant","error_description":"hush"}`), ErrCode},
		{"a wrong secret", answers(401, `{"error":"invalid_client","error_description":"hush"}`), ErrClient},
		{"a refusal without a reason", answers(403, `hush`), ErrClient},
		{"a redirect is not followed", answers(307, `hush`), ErrClient},
		{"too many requests", answers(429, `{"error":"slow_down"}`), ErrUnavailable},
		{"a failure", answers(500, `hush`), ErrUnavailable},
		{"an answer that is not JSON", answers(200, `<p>hush</p>`), ErrUnavailable},
		{"no answer", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, ErrUnavailable},
	} {
		t.Run(test.rule, func(t *testing.T) {
			p.tokens = test.answer
			_, err := p.client().Redeem(t.Context(), "the-code", testChallenge)
			if !errors.Is(err, test.want) || strings.Contains(err.Error(), "hush") || strings.Contains(err.Error(), "the-code") {
				t.Errorf("got %v, want %v", err, test.want)
			}
		})
	}
}

func TestEndSessionURL(t *testing.T) {
	p := newProvider(t)
	for endpoint, want := range map[string]string{
		"":                                "",
		"http://evil.example/logout":      "",
		"https://login.example.com/out?a": "https://login.example.com/out?a=&client_id=cli&post_logout_redirect_uri=https%3A%2F%2Fregistry.example.com%2F",
	} {
		p.change(func() { p.config = func(c map[string]any) { c["end_session_endpoint"] = endpoint } })
		if got := p.client().EndSessionURL(t.Context(), "https://registry.example.com/"); got != want {
			t.Errorf("%q: got %q, want %q", endpoint, got, want)
		}
	}
	p.down.Store(true)
	if got := p.client().EndSessionURL(t.Context(), "https://registry.example.com/"); got != "" {
		t.Errorf("an issuer that is down: %q", got)
	}
}
