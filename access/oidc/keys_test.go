package oidc

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

func TestKeysOfAllKinds(t *testing.T) {
	for _, algorithm := range []jose.SignatureAlgorithm{jose.RS256, jose.ES256, jose.EdDSA} {
		t.Run(string(algorithm), func(t *testing.T) {
			p := newProvider(t)
			p.rotate("key", algorithm)
			mustVerify(t, p.verifier(Options{}), p.token())
		})
	}
}

func TestAlgorithmsAreThoseTheIssuerNames(t *testing.T) {
	tests := []struct {
		rule      string
		names     any
		algorithm jose.SignatureAlgorithm
		good      bool
	}{
		{"RS256 if it names none", nil, jose.RS256, true},
		{"nothing else if it names none", nil, jose.ES256, false},
		{"the named ones", []string{"PS256"}, jose.PS256, true},
		{"not what it does not name", []string{"RS256"}, jose.ES256, false},
		{"RS256 if it names only unacceptable ones", []string{"HS256", "none"}, jose.RS256, true},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			p := newProvider(t)
			p.rotate("key", test.algorithm)
			p.config = func(c map[string]any) { c["id_token_signing_alg_values_supported"] = test.names }
			_, err := p.verifier(Options{}).Verify(t.Context(), p.token())
			if test.good && err != nil || !test.good && !errors.Is(err, ErrRefused) {
				t.Errorf("got error %v", err)
			}
		})
	}
}

func TestRotatedKeysAreFetched(t *testing.T) {
	p := newProvider(t)
	v := p.verifier(Options{})
	mustVerify(t, v, p.token())
	p.pass(renewalPause)
	p.rotate("second", jose.ES256)
	p.fetched()
	mustVerify(t, v, p.token())
	mustVerify(t, v, p.token("sub", "bob"))
	if got := p.fetched(); got != "0 configurations, 1 key sets" {
		t.Errorf("it fetched %s", got)
	}
}

// TestKeyReplacedUnderItsID: issuers should not do that, but some do.
func TestKeyReplacedUnderItsID(t *testing.T) {
	p := newProvider(t)
	v := p.verifier(Options{})
	mustVerify(t, v, p.token())
	p.pass(renewalPause)
	p.rotate("first", jose.ES256)
	mustVerify(t, v, p.token())
}

func TestWithdrawnKeyIsRefused(t *testing.T) {
	p := newProvider(t)
	v := p.verifier(Options{})
	token := p.token("exp", p.now().Add(24*time.Hour).Unix())
	mustVerify(t, v, token)
	p.rotate("second", jose.ES256)
	p.pass(renewalPause)
	mustVerify(t, v, p.token()) // fetches the keys
	p.pass(verdictLife)
	mustRefuse(t, v, token, "")
}

func TestForgedTokensDoNotHammerTheIssuer(t *testing.T) {
	p := newProvider(t)
	v := p.verifier(Options{})
	forged := func(n int) string {
		return p.sign(newKey(t, fmt.Sprintf("made-up %d", n), jose.EdDSA), p.claims())
	}
	for n := range 50 {
		mustRefuse(t, v, forged(n), "")
	}
	if got := p.fetched(); got != "1 configurations, 1 key sets" {
		t.Errorf("it fetched %s", got)
	}
	p.pass(renewalPause)
	for n := range 50 {
		mustRefuse(t, v, forged(n), "")
	}
	if got := p.fetched(); got != "0 configurations, 1 key sets" {
		t.Errorf("after a pause it fetched %s", got)
	}
	p.pass(time.Minute)
	mustRefuse(t, v, p.token("iss", "https://other.example.com"), "")
	if got := p.fetched(); got != "0 configurations, 0 key sets" {
		t.Errorf("for a token of another issuer it fetched %s", got)
	}
}

func TestKnownKeysOutliveTheIssuer(t *testing.T) {
	p := newProvider(t)
	v := p.verifier(Options{})
	mustVerify(t, v, p.token())
	p.down.Store(true)
	for range 3 {
		p.pass(2 * staleAge)
		mustVerify(t, v, p.token())
	}
	mustRefuse(t, v, p.token("exp", p.now().Unix()-1), "expired")
	forged := newKey(t, "first", jose.EdDSA)
	mustRefuse(t, v, p.sign(forged, p.claims()), "")
}

// TestNewKeyOfAnIssuerThatIsDown: the token may be valid, so it is not refused.
func TestNewKeyOfAnIssuerThatIsDown(t *testing.T) {
	p := newProvider(t)
	v := p.verifier(Options{})
	mustVerify(t, v, p.token())
	p.pass(renewalPause)
	p.rotate("second", jose.ES256)
	p.down.Store(true)
	for range 2 {
		mustBeUnavailable(t, v, p.token())
	}
	p.down.Store(false)
	p.pass(failurePause)
	mustVerify(t, v, p.token())
}

func TestIssuerThatWasNeverUp(t *testing.T) {
	p := newProvider(t)
	p.down.Store(true)
	v := p.verifier(Options{})
	for range 5 {
		mustBeUnavailable(t, v, p.token())
	}
	if got := p.fetched(); got != "1 configurations, 0 key sets" {
		t.Errorf("it fetched %s", got)
	}
	mustRefuse(t, v, p.token("iss", "https://other.example.com"), "another issuer")
	p.down.Store(false)
	mustBeUnavailable(t, v, p.token()) // the failure is cached
	p.pass(failurePause)
	mustVerify(t, v, p.token())
}

func TestInvalidKeySets(t *testing.T) {
	key := newKey(t, "second", jose.ES256)
	tests := []struct {
		rule   string
		answer func(p *provider)
	}{
		{"not JSON", func(p *provider) { p.answer = func(w http.ResponseWriter) { fmt.Fprint(w, "<html>") } }},
		{"no keys", func(p *provider) { p.keys = nil }},
		{"too long", func(p *provider) {
			p.answer = func(w http.ResponseWriter) { w.Write(make([]byte, maxDocument+1)) }
		}},
		{"a secret key", func(p *provider) {
			p.keys, p.extra = nil, []any{jose.JSONWebKey{Key: []byte("secret"), KeyID: "second"}}
		}},
		{"the private key", func(p *provider) {
			p.keys, p.extra = nil, []any{jose.JSONWebKey{Key: key.private, KeyID: "second"}}
		}},
		{"a key for encryption", func(p *provider) {
			p.keys, p.extra = nil, []any{jose.JSONWebKey{Key: key.private.Public(), KeyID: "second", Use: "enc"}}
		}},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			p := newProvider(t)
			v := p.verifier(Options{})
			mustVerify(t, v, p.token()) // the configuration is cached
			p.pass(renewalPause)
			good := p.token("sub", "bob")
			p.change(func() { test.answer(p) })
			mustBeUnavailable(t, v, p.sign(key, p.claims()))
			mustVerify(t, v, good) // the cached keys stay
		})
	}
}

func TestKeysOfUnknownKindsAreSkipped(t *testing.T) {
	p := newProvider(t)
	p.extra = []any{
		json.RawMessage(`{"kty":"AKP","alg":"ML-DSA-44","kid":"a","pub":"AA"}`),
		json.RawMessage(`{"kty":"OKP","crv":"Ed448","kid":"b","x":"AA"}`),
		json.RawMessage(`{"kty":"RSA","kid":"c"}`),
		json.RawMessage(`17`),
	}
	mustVerify(t, p.verifier(Options{}), p.token())
}

func TestKeysWithoutIDs(t *testing.T) {
	p := newProvider(t)
	p.keys = []providerKey{newKey(t, "", jose.ES256), newKey(t, "", jose.ES256)}
	v := p.verifier(Options{})
	for _, k := range p.keys {
		mustVerify(t, v, p.sign(k, p.claims()))
	}
}

func TestVerifierIsConcurrent(t *testing.T) {
	p := newProvider(t)
	v := p.verifier(Options{})
	var done sync.WaitGroup
	start := make(chan struct{})
	for g := range 8 {
		done.Go(func() {
			<-start
			for n := range 20 {
				subject := fmt.Sprintf("user-%d", (g+n)%10)
				s, err := v.Verify(t.Context(), p.token("sub", subject))
				if err != nil || s.ID != subject {
					t.Errorf("got %v, %v, want %s", s, err, subject)
				}
				_, err = v.Verify(t.Context(), p.token("aud", "other"))
				if !errors.Is(err, ErrRefused) {
					t.Errorf("got error %v", err)
				}
			}
		})
	}
	close(start)
	done.Wait()
	if got := p.fetched(); got != "1 configurations, 1 key sets" {
		t.Errorf("it fetched %s", got)
	}
}

func mustVerify(t *testing.T, v *Verifier, token string) {
	t.Helper()
	if _, err := v.Verify(t.Context(), token); err != nil {
		t.Fatal(err)
	}
}

func mustBeUnavailable(t *testing.T, v *Verifier, token string) {
	t.Helper()
	s, err := v.Verify(t.Context(), token)
	if !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrRefused) || s.ID != "" {
		t.Fatalf("got %+v, %v, want ErrUnavailable", s, err)
	}
	if leaks(err, token) {
		t.Errorf("error %q has the token in it", err)
	}
}
