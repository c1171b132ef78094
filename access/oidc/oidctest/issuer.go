// Package oidctest has an OpenID Connect issuer for tests.
package oidctest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// An Issuer is an issuer on the loopback interface, in which people log in without being asked.
type Issuer struct {
	*httptest.Server
	t   *testing.T
	key *ecdsa.PrivateKey

	Asked     atomic.Int32 // how often
	Broken    atomic.Bool
	WhenAsked atomic.Value // a context.CancelFunc to call when it is asked; may be empty

	Claims map[string]any // of ID tokens
	Life   time.Duration  // of access tokens; zero: it does not say
	Secret atomic.Value   // of the client that got the last token

	mu     sync.Mutex
	logins map[string]url.Values // the request of each code, until the code is redeemed
}

// NewIssuer starts an issuer that runs until the test ends.
func NewIssuer(t *testing.T) *Issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i := &Issuer{t: t, key: key, logins: make(map[string]url.Values)}
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
		i.redeem(w, r)
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

// Login logs in like a browser that was sent to a location. It returns the query with which the
// browser is sent back.
func (i *Issuer) Login(location string) url.Values {
	i.t.Helper()
	u, err := url.Parse(location)
	if err != nil {
		i.t.Fatal(err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	code := rand.Text()
	i.logins[code] = u.Query()
	return url.Values{"code": {code}, "state": {u.Query().Get("state")}}
}

// redeem answers a code of Login once, for the client that has sent the browser.
func (i *Issuer) redeem(w http.ResponseWriter, r *http.Request) {
	_, secret, _ := r.BasicAuth()
	i.Secret.Store(secret)
	code := r.PostFormValue("code")
	i.mu.Lock()
	login, ok := i.logins[code]
	delete(i.logins, code)
	i.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	if !ok || login.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(sum[:]) || login.Get("redirect_uri") != r.PostFormValue("redirect_uri") {
		w.WriteHeader(http.StatusBadRequest)
		json.NewEncoder(w).Encode(map[string]any{"error": "invalid_grant"})
		return
	}
	claims := map[string]any{"aud": "cli", "nonce": login.Get("nonce")}
	maps.Copy(claims, i.Claims)
	answer := map[string]any{"access_token": "opaque", "token_type": "Bearer", "id_token": i.Mint(claims)}
	if i.Life != 0 {
		answer["expires_in"] = int(i.Life / time.Second)
	}
	json.NewEncoder(w).Encode(answer)
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
