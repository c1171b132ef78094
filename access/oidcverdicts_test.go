package access

import (
	"crypto/sha256"
	"fmt"
	"testing"
	"time"
)

func TestVerdictsEnd(t *testing.T) {
	now := time.Now()
	var v verdicts
	token := sha256.Sum256([]byte("token"))
	if _, ok := v.get(token, now); ok {
		t.Error("there is one of an unknown token")
	}
	v.put(token, verdict{Subject{ID: "alice"}, now.Add(time.Second)})
	if s, ok := v.get(token, now); !ok || s.ID != "alice" {
		t.Errorf("got %v, %v", s, ok)
	}
	if _, ok := v.get(token, now.Add(time.Second)); ok {
		t.Error("it did not end")
	}
	v.put(token, verdict{Subject{ID: "alice"}, now.Add(time.Minute)})
	if _, ok := v.get(token, now.Add(time.Second)); !ok {
		t.Error("it was not replaced")
	}
}

func TestVerdictsAreBounded(t *testing.T) {
	now := time.Now()
	var v verdicts
	token := func(n int) jwtDigest { return sha256.Sum256(fmt.Append(nil, n)) }
	for n := range 2*maxVerdicts + 10 {
		v.put(token(n), verdict{Subject{ID: "alice"}, now.Add(time.Second)})
		v.put(token(n), verdict{Subject{ID: "alice"}, now.Add(time.Minute)}) // takes no room
		if len(v.all) > maxVerdicts || len(v.order) > maxVerdicts {
			t.Fatalf("there are %d", len(v.all))
		}
	}
	for n := range 2*maxVerdicts + 10 {
		_, ok := v.get(token(n), now)
		if want := n >= maxVerdicts+10; ok != want {
			t.Fatalf("token %d is remembered: %v, want %v", n, ok, want)
		}
	}
}

// TestVerdictsEndWithTheToken, however recently it was seen.
func TestVerdictsEndWithTheToken(t *testing.T) {
	p := newOpenIDProvider(t)
	v := p.verifier(VerifierOptions{})
	token := p.token("exp", p.now().Add(time.Minute).Unix())
	mustVerify(t, v, token)
	p.pass(time.Minute - time.Second)
	mustVerify(t, v, token)
	p.pass(2 * time.Second)
	mustRefuse(t, v, token, "expired")
}

func BenchmarkVerify(b *testing.B) {
	p := newOpenIDProvider(b)
	groups := make([]string, 20)
	for i := range groups {
		groups[i] = fmt.Sprintf("team-%d", i)
	}
	token := p.token("groups", groups)
	now := p.now()
	i := p.issuerAt(func() time.Time { return now })
	options := VerifierOptions{Audience: []string{"registry"}}
	known, err := NewVerifier(i, options)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("known", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(token)))
		for b.Loop() {
			if _, err := known.Verify(b.Context(), token); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("new", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			v := &Verifier{issuer: i, audience: options.Audience, claims: known.claims}
			if _, err := v.Verify(b.Context(), token); err != nil {
				b.Fatal(err)
			}
		}
	})
}
