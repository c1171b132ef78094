package oidc

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
)

func TestVerifierAccepts(t *testing.T) {
	p := newProvider(t)
	tests := []struct {
		rule    string
		changes []any
		options Options
		want    access.Subject
	}{
		{"a token for this registry", nil, Options{}, access.Subject{ID: "alice"}},
		{"one for other audiences too", []any{"aud", []string{"other", "registry"}}, Options{}, access.Subject{ID: "alice"}},
		{"any audience of several", []any{"aud", "b"}, Options{Audience: []string{"a", "b"}}, access.Subject{ID: "alice"}},
		{"groups", []any{"groups", []string{"dev", "ops"}}, Options{}, access.Subject{ID: "alice", Groups: []string{"dev", "ops"}}},
		{"another subject claim", []any{"email", "a@example.com"}, Options{SubjectClaim: "email"}, access.Subject{ID: "a@example.com"}},
		{"a required claim", []any{"repository_owner", "acme"},
			Options{Require: map[string][]string{"repository_owner": {"acme"}}}, access.Subject{ID: "alice"}},
		{"no sub, if another claim names the subject", []any{"sub", nil, "name", "a"}, Options{SubjectClaim: "name"}, access.Subject{ID: "a"}},
		{"a token that is valid soon, as clocks differ", []any{"nbf", p.now().Add(time.Minute).Unix()}, Options{}, access.Subject{ID: "alice"}},
		{"a time with a fraction", []any{"exp", float64(p.now().Unix()) + 60.5}, Options{}, access.Subject{ID: "alice"}},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			got, err := p.verifier(test.options).Verify(t.Context(), p.token(test.changes...))
			if err != nil || !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %+v, %v, want %+v", got, err, test.want)
			}
		})
	}
}

func TestVerifierRefuses(t *testing.T) {
	p := newProvider(t)
	past, future := p.now().Add(-time.Second).Unix(), p.now().Add(time.Hour).Unix()
	tests := []struct {
		rule    string
		changes []any
		options Options
		want    string // in the error
	}{
		{"a token for another service", []any{"aud", "other"}, Options{}, "its audience"},
		{"a token for no audience", []any{"aud", nil}, Options{}, "its audience"},
		{"a similar audience", []any{"aud", "registry2"}, Options{}, "its audience"},
		{"an expired token", []any{"exp", past}, Options{}, "expired"},
		{"a token that never expires", []any{"exp", nil}, Options{}, "expired"},
		{"an expiry that is a string", []any{"exp", "tomorrow"}, Options{}, ""},
		{"a token that is not valid yet", []any{"nbf", future}, Options{}, "not before"},
		{"a token of another issuer", []any{"iss", "https://other.example.com"}, Options{}, "another issuer"},
		{"a token of the issuer with a slash", []any{"iss", p.server.URL + "/"}, Options{}, "another issuer"},
		{"a token of no issuer", []any{"iss", nil}, Options{}, "another issuer"},
		{"an issuer that is a number", []any{"iss", 1}, Options{}, "not the expected JSON"},
		{"no subject", []any{"sub", nil}, Options{}, `"sub"`},
		{"an empty subject", []any{"sub", ""}, Options{}, `"sub"`},
		{"a subject of spaces", []any{"sub", " "}, Options{}, `"sub"`},
		{"a subject that is a number", []any{"id", 7}, Options{SubjectClaim: "id"}, `"id"`},
		{"a subject that is a list", []any{"id", []string{"a"}}, Options{SubjectClaim: "id"}, `"id"`},
		{"a missing required claim", nil, Options{Require: map[string][]string{"owner": {"*"}}}, `"owner"`},
		{"another value of it", []any{"owner", "evil"}, Options{Require: map[string][]string{"owner": {"acme"}}}, `"owner"`},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			v, token := p.verifier(test.options), p.token(test.changes...)
			for range 2 { // refusals are not cached
				mustRefuse(t, v, token, test.want)
			}
		})
	}
}

// TestVerifierRefusesForgeries covers tokens with valid claims.
func TestVerifierRefusesForgeries(t *testing.T) {
	p := newProvider(t)
	claims := p.claims()
	public, err := x509.MarshalPKIXPublicKey(p.keys[0].private.Public())
	if err != nil {
		t.Fatal(err)
	}
	inPEM := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})
	symmetric := func(secret []byte) string {
		return signJWT(t, jose.SigningKey{Algorithm: jose.HS256, Key: jose.JSONWebKey{Key: secret, KeyID: "first"}}, claims)
	}
	good := p.token()
	parts := strings.Split(good, ".")
	other := strings.Split(p.token("sub", "mallory"), ".")
	encode := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	mallory := newKey(t, "first", jose.ES256)

	embedded, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: mallory.private}, &jose.SignerOptions{EmbedJWK: true})
	if err != nil {
		t.Fatal(err)
	}
	payload, _ := base64.RawURLEncoding.DecodeString(parts[1])
	signed, err := embedded.Sign(payload)
	if err != nil {
		t.Fatal(err)
	}
	withKey, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}

	tests := []struct{ rule, token string }{
		{"no signature, as alg none", encode(`{"alg":"none"}`) + "." + parts[1] + "."},
		{"alg none in another case", encode(`{"alg":"nOnE"}`) + "." + parts[1] + "."},
		{"an empty alg", encode(`{"alg":""}`) + "." + parts[1] + "." + parts[2]},
		{"no signature", parts[0] + "." + parts[1] + "."},
		{"HS256 with the public key", symmetric(public)},
		{"HS256 with the public key in PEM", symmetric(inPEM)},
		{"the signature of another token", other[0] + "." + other[1] + "." + parts[2]},
		{"another key with the same ID", p.sign(mallory, claims)},
		{"another key with another ID", p.sign(newKey(t, "mallory", jose.ES256), claims)},
		{"another key without an ID", p.sign(newKey(t, "", jose.ES256), claims)},
		{"a key embedded in the token", withKey},
		{"claims that are not JSON", parts[0] + "." + encode("not JSON") + "." + parts[2]},
		{"claims that are not base64", parts[0] + ".+++." + parts[2]},
		{"a signature that is not base64", parts[0] + "." + parts[1] + ".+++"},
	}
	v := p.verifier(Options{})
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			if test.token == good {
				t.Fatal("it is the valid token")
			}
			mustRefuse(t, v, test.token, "")
		})
	}
	if _, err := v.Verify(t.Context(), good); err != nil {
		t.Errorf("the token they were derived from: %v", err)
	}
}

func TestVerifierIgnoresOtherTokens(t *testing.T) {
	p := newProvider(t)
	v := p.verifier(Options{})
	jwt := strings.Split(p.token(), ".")
	for _, token := range []string{
		"", ".", "..", "...", "secret", "tfr_0123456789abcdef", "a.b.c", "1.2.3",
		jwt[0] + "." + jwt[1],
		strings.Join(jwt, ".") + ".x",
		"e30.e30.e30",             // {} has no alg
		"bnVsbA." + jwt[1] + ".x", // null
		"eyJhbGciOjF9.e30.e30",    // {"alg":1}
		" " + strings.Join(jwt, "."),
	} {
		if s, err := v.Verify(t.Context(), token); !errors.Is(err, errNotJWT) || s.ID != "" {
			t.Errorf("%q: %v, %v, want errNotJWT", token, s, err)
		}
	}
	if got := p.fetched(); got != "0 configurations, 0 key sets" {
		t.Errorf("it fetched %s", got)
	}
}

func TestVerifierOptionsAreChecked(t *testing.T) {
	audience := []string{"registry"}
	tests := []struct {
		rule    string
		options Options
		want    string
	}{
		{"no audience", Options{}, "audience: it is missing"},
		{"an empty audience", Options{Audience: []string{"a", ""}}, "audience: it is empty"},
		{"a groups claim without name", Options{Audience: audience, GroupsClaims: []string{""}}, "groups: a claim has no name"},
		{"a required claim without name", Options{Audience: audience, Require: map[string][]string{"": {"a"}}}, "require: a claim has no name"},
		{"a required claim without values", Options{Audience: audience, Require: map[string][]string{"owner": nil}}, `require: the claim "owner" has no values`},
		{"an empty required value", Options{Audience: audience, Require: map[string][]string{"owner": {""}}}, `require: a value of the claim "owner" is empty`},
	}
	i, err := NewIssuer("https://issuer.example.com")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			if _, err := NewVerifier(i, test.options); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want one with %q", err, test.want)
			}
		})
	}
}

// mustRefuse fails unless the token is refused, with that text in the error.
func mustRefuse(t *testing.T, v *Verifier, token, want string) {
	t.Helper()
	s, err := v.Verify(t.Context(), token)
	if !errors.Is(err, ErrRefused) || errors.Is(err, ErrUnavailable) || s.ID != "" {
		t.Fatalf("got %+v, %v, want ErrRefused", s, err)
	}
	if !strings.Contains(err.Error(), want) {
		t.Errorf("error %q does not have %q", err, want)
	}
	if leaks(err, token) {
		t.Errorf("error %q has the token in it", err)
	}
}

// TestVerdictsEndWithTheToken: a cached token expires like any other.
func TestVerdictsEndWithTheToken(t *testing.T) {
	p := newProvider(t)
	v := p.verifier(Options{})
	token := p.token("exp", p.now().Add(time.Minute).Unix())
	mustVerify(t, v, token)
	p.pass(time.Minute - time.Second)
	mustVerify(t, v, token)
	p.pass(2 * time.Second)
	mustRefuse(t, v, token, "expired")
}

func BenchmarkVerify(b *testing.B) {
	p := newProvider(b)
	groups := make([]string, 20)
	for i := range groups {
		groups[i] = fmt.Sprintf("team-%d", i)
	}
	token := p.token("groups", groups)
	now := p.now()
	i := p.issuerAt(func() time.Time { return now })
	v := p.verifierOf(i, Options{})
	b.Run("cached", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(token)))
		for b.Loop() {
			if _, err := v.Verify(b.Context(), token); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("new", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			v.verdicts.Remove(sha256.Sum256([]byte(token)))
			if _, err := v.Verify(b.Context(), token); err != nil {
				b.Fatal(err)
			}
		}
	})
}
