package oidc

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// A provider is an issuer that answers over TLS, with a clock and outages that the
// test controls.
type provider struct {
	t      testing.TB
	server *httptest.Server

	mutex  sync.Mutex
	time   time.Time
	keys   []providerKey             // the last one signs
	extra  []any                     // further entries of the key set
	config func(c map[string]any)    // changes its configuration
	answer func(http.ResponseWriter) // in place of a document
	tokens http.HandlerFunc          // the token endpoint

	down           atomic.Bool
	configurations atomic.Int32 // how often each was fetched
	keySets        atomic.Int32
}

type providerKey struct {
	id        string
	algorithm jose.SignatureAlgorithm
	private   crypto.Signer
}

func newProvider(t testing.TB) *provider {
	t.Helper()
	p := &provider{t: t, time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	p.keys = []providerKey{newKey(t, "first", jose.RS256)}
	p.server = httptest.NewUnstartedServer(p)
	p.server.Config.ErrorLog = log.New(io.Discard, "", 0) // about clients that have gone
	p.server.StartTLS()
	t.Cleanup(p.server.Close)
	return p
}

// testRSAKey is generated once, which takes longer than any of the tests.
var testRSAKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

func newKey(t testing.TB, id string, algorithm jose.SignatureAlgorithm) providerKey {
	t.Helper()
	var private crypto.Signer
	var err error
	switch algorithm {
	case jose.EdDSA:
		_, private, err = ed25519.GenerateKey(rand.Reader)
	case jose.ES256:
		private, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	default:
		private, err = testRSAKey()
	}
	if err != nil {
		t.Fatal(err)
	}
	return providerKey{id, algorithm, private}
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/token":
		if p.tokens == nil || p.down.Load() {
			http.Error(w, "down", http.StatusServiceUnavailable)
			return
		}
		p.tokens(w, r)
		return
	case "/.well-known/openid-configuration":
		p.configurations.Add(1)
	case "/keys":
		p.keySets.Add(1)
	default:
		http.NotFound(w, r)
		return
	}
	if p.down.Load() {
		http.Error(w, "down", http.StatusServiceUnavailable)
		return
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.answer != nil {
		p.answer(w)
		return
	}
	var document any
	if r.URL.Path == "/keys" {
		set := append([]any{}, p.extra...)
		for _, k := range p.keys {
			set = append(set, jose.JSONWebKey{Key: k.private.Public(), KeyID: k.id, Use: "sig"})
		}
		document = map[string]any{"keys": set}
	} else {
		c := map[string]any{
			"issuer":                                p.server.URL,
			"authorization_endpoint":                p.server.URL + "/authorize",
			"token_endpoint":                        p.server.URL + "/token",
			"jwks_uri":                              p.server.URL + "/keys",
			"id_token_signing_alg_values_supported": []string{"HS256", "none", "RS256", "ES256", "EdDSA"},
		}
		if p.config != nil {
			p.config(c)
		}
		document = c
	}
	json.NewEncoder(w).Encode(document)
}

func (p *provider) change(f func()) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	f()
}

func (p *provider) now() time.Time {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.time
}

func (p *provider) pass(d time.Duration) {
	p.change(func() { p.time = p.time.Add(d) })
}

// rotate replaces all keys by a new one.
func (p *provider) rotate(id string, algorithm jose.SignatureAlgorithm) {
	k := newKey(p.t, id, algorithm)
	p.change(func() { p.keys = []providerKey{k} })
}

// claims returns the claims of a valid token, with changes: names and values in turn. A
// nil value removes the claim.
func (p *provider) claims(changes ...any) map[string]any {
	c := map[string]any{
		"iss": p.server.URL,
		"aud": "registry",
		"sub": "alice",
		"iat": p.now().Unix(),
		"exp": p.now().Add(time.Hour).Unix(),
	}
	for i := 0; i < len(changes); i += 2 {
		c[changes[i].(string)] = changes[i+1]
		if changes[i+1] == nil {
			delete(c, changes[i].(string))
		}
	}
	return c
}

// token returns a valid token, with changes to its claims.
func (p *provider) token(changes ...any) string {
	p.t.Helper()
	claims := p.claims(changes...)
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.sign(p.keys[len(p.keys)-1], claims)
}

func (p *provider) sign(k providerKey, claims map[string]any) string {
	p.t.Helper()
	return signJWT(p.t, jose.SigningKey{Algorithm: k.algorithm, Key: jose.JSONWebKey{Key: k.private, KeyID: k.id}}, claims)
}

func signJWT(t testing.TB, key jose.SigningKey, claims map[string]any) string {
	t.Helper()
	signer, err := jose.NewSigner(key, (&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		t.Fatal(err)
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		t.Fatal(err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func (p *provider) issuer() *Issuer {
	p.t.Helper()
	return p.issuerAt(p.now)
}

// issuerAt returns the issuer with another clock, for use while the provider's clock is
// locked.
func (p *provider) issuerAt(now func() time.Time) *Issuer {
	p.t.Helper()
	i, err := newIssuer(p.server.URL, p.server.Client(), now)
	if err != nil {
		p.t.Fatal(err)
	}
	return i
}

// verifier returns a new verifier, which has fetched nothing yet.
func (p *provider) verifier(o Options) *Verifier {
	p.t.Helper()
	return p.verifierOf(p.issuer(), o)
}

func (p *provider) verifierOf(i *Issuer, o Options) *Verifier {
	p.t.Helper()
	if o.Audience == nil {
		o.Audience = []string{"registry"}
	}
	v, err := NewVerifier(i, o)
	if err != nil {
		p.t.Fatal(err)
	}
	return v
}

// fetched returns how often the issuer was asked since the last call.
func (p *provider) fetched() string {
	return fmt.Sprintf("%d configurations, %d key sets", p.configurations.Swap(0), p.keySets.Swap(0))
}

// leaks reports whether an error contains a part of a token.
func leaks(err error, token string) bool {
	for part := range strings.SplitSeq(token, ".") {
		if len(part) > 8 && strings.Contains(err.Error(), part) {
			return true
		}
	}
	return false
}
