package signin

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// An issuer is an OpenID provider in which people log in without being asked.
type issuer struct {
	*httptest.Server
	t    *testing.T
	key  *ecdsa.PrivateKey
	down atomic.Bool

	mutex  sync.Mutex
	logins map[string]url.Values // the request of each code, until the code is redeemed

	// Claims of the next ID tokens, in addition to the usual ones.
	claims map[string]any
	life   time.Duration // of the access token; zero: the issuer does not say
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{t: t, key: key, logins: map[string]url.Values{}}
	i.Server = httptest.NewServer(i)
	t.Cleanup(i.Close)
	return i
}

func (i *issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if i.down.Load() {
		http.Error(w, "down", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		json.NewEncoder(w).Encode(map[string]any{
			"issuer": i.URL, "jwks_uri": i.URL + "/keys", "authorization_endpoint": i.URL + "/authorize", "token_endpoint": i.URL + "/token",
			"id_token_signing_alg_values_supported": []string{"ES256"},
		})
	case "/keys":
		json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: i.key.Public(), KeyID: "key"}}})
	case "/token":
		i.mutex.Lock()
		defer i.mutex.Unlock()
		login, ok := i.logins[r.PostFormValue("code")]
		delete(i.logins, r.PostFormValue("code"))
		sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
		if !ok || login.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(sum[:]) || login.Get("redirect_uri") != r.PostFormValue("redirect_uri") {
			w.WriteHeader(http.StatusBadRequest)
			json.NewEncoder(w).Encode(map[string]any{"error": "invalid_grant"})
			return
		}
		answer := map[string]any{"access_token": "opaque", "token_type": "Bearer", "id_token": i.idToken(login.Get("nonce"))}
		if i.life != 0 {
			answer["expires_in"] = int(i.life / time.Second)
		}
		json.NewEncoder(w).Encode(answer)
	default:
		http.NotFound(w, r)
	}
}

func (i *issuer) idToken(nonce string) string {
	claims := map[string]any{"iss": i.URL, "aud": "cli", "sub": "alice", "nonce": nonce, "exp": time.Now().Add(time.Hour).Unix()}
	for name, value := range i.claims {
		claims[name] = value
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		i.t.Error(err)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: i.key, KeyID: "key"}}, nil)
	if err != nil {
		i.t.Error(err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		i.t.Error(err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		i.t.Error(err)
	}
	return token
}

// login logs in at the issuer like a browser that was sent there. It returns the query
// with which the issuer sends the browser back.
func (i *issuer) login(location string) url.Values {
	i.t.Helper()
	u, err := url.Parse(location)
	if err != nil {
		i.t.Fatal(err)
	}
	i.mutex.Lock()
	defer i.mutex.Unlock()
	code := rand.Text()
	i.logins[code] = u.Query()
	return url.Values{"code": {code}, "state": {u.Query().Get("state")}}
}
