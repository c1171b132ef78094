// Package oidctest has an OpenID Connect issuer for tests.
package oidctest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// An Issuer is an issuer on the loopback interface. It answers any code with an ID token.
type Issuer struct {
	*httptest.Server
	t   *testing.T
	key *ecdsa.PrivateKey

	Asked     atomic.Int32 // how often
	Broken    atomic.Bool
	WhenAsked atomic.Value // a context.CancelFunc to call when it is asked; may be empty

	Claims        map[string]any // of ID tokens
	Nonce, Secret atomic.Value   // of the next ID token, and of the client that got the last
}

// NewIssuer starts an issuer that runs until the test ends.
func NewIssuer(t *testing.T) *Issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i := &Issuer{t: t, key: key}
	i.Server = httptest.NewServer(http.HandlerFunc(i.serve))
	t.Cleanup(i.Close)
	return i
}

func (i *Issuer) serve(w http.ResponseWriter, r *http.Request) {
	i.Asked.Add(1)
	if f, ok := i.WhenAsked.Load().(context.CancelFunc); ok {
		f()
	}
	if i.Broken.Load() {
		http.Error(w, "broken", http.StatusInternalServerError)
		return
	}
	if r.URL.Path == "/keys" {
		json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: i.key.Public(), KeyID: "key"}}})
		return
	}
	if r.URL.Path == "/token" {
		_, secret, _ := r.BasicAuth()
		i.Secret.Store(secret)
		claims := map[string]any{"aud": "cli", "nonce": i.Nonce.Load()}
		maps.Copy(claims, i.Claims)
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(map[string]any{"access_token": "opaque", "token_type": "Bearer", "id_token": i.Mint(claims)})
		return
	}
	json.NewEncoder(w).Encode(map[string]any{
		"issuer":                                i.URL,
		"jwks_uri":                              i.URL + "/keys",
		"authorization_endpoint":                i.URL + "/authorize",
		"token_endpoint":                        i.URL + "/token",
		"id_token_signing_alg_values_supported": []string{"ES256"},
	})
}

// Mint returns a token for alice that is valid for the audience "registry", with changes
// to its claims.
func (i *Issuer) Mint(changes map[string]any) string {
	i.t.Helper()
	claims := map[string]any{"iss": i.URL, "aud": "registry", "sub": "alice", "exp": time.Now().Add(time.Hour).Unix()}
	maps.Copy(claims, changes)
	payload, err := json.Marshal(claims)
	if err != nil {
		i.t.Fatal(err)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: i.key, KeyID: "key"}}, nil)
	if err != nil {
		i.t.Fatal(err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		i.t.Fatal(err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		i.t.Fatal(err)
	}
	return token
}
