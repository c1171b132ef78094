package access

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

func TestVerifierAccepts(t *testing.T) {
	p := newOpenIDProvider(t)
	tests := []struct {
		rule    string
		changes []any
		options VerifierOptions
		want    Subject
	}{
		{"a token for this registry", nil, VerifierOptions{}, Subject{ID: "alice"}},
		{"one that is for others too", []any{"aud", []string{"other", "registry"}}, VerifierOptions{}, Subject{ID: "alice"}},
		{"any audience of several", []any{"aud", "b"}, VerifierOptions{Audience: []string{"a", "b"}}, Subject{ID: "alice"}},
		{"groups", []any{"groups", []string{"dev", "ops"}}, VerifierOptions{}, Subject{"alice", []string{"dev", "ops"}}},
		{"another subject claim", []any{"email", "a@example.com"}, VerifierOptions{SubjectClaim: "email"}, Subject{ID: "a@example.com"}},
		{"a required claim", []any{"repository_owner", "acme"},
			VerifierOptions{Require: map[string][]string{"repository_owner": {"acme"}}}, Subject{ID: "alice"}},
		{"no subject, if another claim is it", []any{"sub", nil, "name", "a"}, VerifierOptions{SubjectClaim: "name"}, Subject{ID: "a"}},
		{"a token that is valid soon, as clocks differ", []any{"nbf", p.now().Add(time.Minute).Unix()}, VerifierOptions{}, Subject{ID: "alice"}},
		{"a time with a fraction", []any{"exp", float64(p.now().Unix()) + 60.5}, VerifierOptions{}, Subject{ID: "alice"}},
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
	p := newOpenIDProvider(t)
	past, future := p.now().Add(-time.Second).Unix(), p.now().Add(time.Hour).Unix()
	tests := []struct {
		rule    string
		changes []any
		options VerifierOptions
		want    string // in the error
	}{
		{"a token for another service", []any{"aud", "other"}, VerifierOptions{}, "its audience"},
		{"a token for nobody", []any{"aud", nil}, VerifierOptions{}, "its audience"},
		{"an audience that is only similar", []any{"aud", "registry2"}, VerifierOptions{}, "its audience"},
		{"an expired token", []any{"exp", past}, VerifierOptions{}, "expired"},
		{"a token that never expires", []any{"exp", nil}, VerifierOptions{}, "expired"},
		{"an expiry that is a text", []any{"exp", "tomorrow"}, VerifierOptions{}, ""},
		{"a token that is not valid yet", []any{"nbf", future}, VerifierOptions{}, "not before"},
		{"a token of another issuer", []any{"iss", "https://other.example.com"}, VerifierOptions{}, "another issuer"},
		{"a token of the issuer with a slash", []any{"iss", p.server.URL + "/"}, VerifierOptions{}, "another issuer"},
		{"a token of no issuer", []any{"iss", nil}, VerifierOptions{}, "another issuer"},
		{"an issuer that is a number", []any{"iss", 1}, VerifierOptions{}, "not the JSON"},
		{"no subject", []any{"sub", nil}, VerifierOptions{}, `"sub"`},
		{"an empty subject", []any{"sub", ""}, VerifierOptions{}, `"sub"`},
		{"a subject of spaces", []any{"sub", " "}, VerifierOptions{}, `"sub"`},
		{"a subject that is a number", []any{"id", 7}, VerifierOptions{SubjectClaim: "id"}, `"id"`},
		{"a subject that is a list", []any{"id", []string{"a"}}, VerifierOptions{SubjectClaim: "id"}, `"id"`},
		{"a missing required claim", nil, VerifierOptions{Require: map[string][]string{"owner": {"*"}}}, `"owner"`},
		{"another value of it", []any{"owner", "evil"}, VerifierOptions{Require: map[string][]string{"owner": {"acme"}}}, `"owner"`},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			v, token := p.verifier(test.options), p.token(test.changes...)
			for range 2 { // nothing of it is remembered
				mustRefuse(t, v, token, test.want)
			}
		})
	}
}

// TestVerifierRefusesForgeries are tokens whose claims are all right.
func TestVerifierRefusesForgeries(t *testing.T) {
	p := newOpenIDProvider(t)
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
	mallory := newOpenIDKey(t, "first", jose.ES256)

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
		{"alg none in other letters", encode(`{"alg":"nOnE"}`) + "." + parts[1] + "."},
		{"an empty alg", encode(`{"alg":""}`) + "." + parts[1] + "." + parts[2]},
		{"no signature", parts[0] + "." + parts[1] + "."},
		{"HS256 with the public key", symmetric(public)},
		{"HS256 with the public key in PEM", symmetric(inPEM)},
		{"the signature of another token", other[0] + "." + other[1] + "." + parts[2]},
		{"another key of the same name", p.sign(mallory, claims)},
		{"another key of another name", p.sign(newOpenIDKey(t, "mallory", jose.ES256), claims)},
		{"another key without a name", p.sign(newOpenIDKey(t, "", jose.ES256), claims)},
		{"a key that the token brings", withKey},
		{"claims that are not JSON", parts[0] + "." + encode("not JSON") + "." + parts[2]},
		{"claims that are not base64", parts[0] + ".+++." + parts[2]},
		{"a signature that is not base64", parts[0] + "." + parts[1] + ".+++"},
	}
	v := p.verifier(VerifierOptions{})
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			if test.token == good {
				t.Fatal("it is the good token")
			}
			mustRefuse(t, v, test.token, "")
		})
	}
	if _, err := v.Verify(t.Context(), good); err != nil {
		t.Errorf("the token they were made of: %v", err)
	}
}

func TestVerifierLeavesOtherTokensToOthers(t *testing.T) {
	p := newOpenIDProvider(t)
	v := p.verifier(VerifierOptions{})
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
		if s, err := v.Verify(t.Context(), token); !errors.Is(err, ErrNotJWT) || s.ID != "" {
			t.Errorf("%q: %v, %v, want ErrNotJWT", token, s, err)
		}
	}
	if got := p.asked(); got != "0 configurations, 0 key sets" {
		t.Errorf("it asked for %s", got)
	}
}

func TestVerifierOptionsAreChecked(t *testing.T) {
	audience := []string{"registry"}
	tests := []struct {
		rule    string
		options VerifierOptions
		want    string
	}{
		{"no audience", VerifierOptions{}, "audience: it is missing"},
		{"an empty audience", VerifierOptions{Audience: []string{"a", ""}}, "audience: it is empty"},
		{"a groups claim without name", VerifierOptions{Audience: audience, GroupsClaims: []string{""}}, "groups: a claim has no name"},
		{"a required claim without name", VerifierOptions{Audience: audience, Require: map[string][]string{"": {"a"}}}, "require: a claim has no name"},
		{"a required claim without values", VerifierOptions{Audience: audience, Require: map[string][]string{"owner": nil}}, `require: the claim "owner" has no values`},
		{"an empty required value", VerifierOptions{Audience: audience, Require: map[string][]string{"owner": {""}}}, `require: a value of the claim "owner" is empty`},
	}
	i, err := NewIssuer("https://issuer.example.com", IssuerOptions{})
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

// mustRefuse fails unless the token is refused for what it is.
func mustRefuse(t *testing.T, v *Verifier, token, want string) {
	t.Helper()
	s, err := v.Verify(t.Context(), token)
	if !errors.Is(err, ErrTokenRefused) || errors.Is(err, ErrIssuerUnavailable) || s.ID != "" {
		t.Fatalf("got %+v, %v, want ErrTokenRefused", s, err)
	}
	if !strings.Contains(err.Error(), want) {
		t.Errorf("error %q does not have %q", err, want)
	}
	if leaks(err, token) {
		t.Errorf("error %q has the token in it", err)
	}
}
