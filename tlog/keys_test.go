package tlog

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"
	"testing/synctest"

	"golang.org/x/mod/sumdb/note"
)

// signedBy returns which of the keys have signed the checkpoint of the head.
func signedBy(l *Log, keys ...note.Verifier) (signed []bool) {
	for _, v := range keys {
		_, err := OpenCheckpoint(l.Head().Signed, origin, v)
		signed = append(signed, err == nil)
	}
	return signed
}

// Keys rotate while a log is open, also if nothing is added.
func TestKeysRotate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		second, verifier := newTestKey(rand.Reader)
		verifiers := []note.Verifier{verifier, testVerifier}
		keys := Keys{Signers: []note.Signer{testSigner}, Verifiers: []note.Verifier{testVerifier}}
		var failure error
		m := newMemory()
		o := optionsFor(&access{memory: m})
		o.Rotated = func(context.Context, Keys) (Keys, error) { return keys, failure }
		l, err := Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		mustAppend(t, l, moduleLeaf(0))
		old := open(t, m) // an instance that does not know of the new key
		defer old.Close()

		check := func(when string, l *Log, first, next bool) {
			t.Helper()
			if signed := signedBy(l, testVerifier, verifier); signed[0] != first || signed[1] != next {
				t.Errorf("%s, the keys that have signed are %v", when, signed)
			}
		}
		refresh := func(l *Log) {
			t.Helper()
			if err := l.Refresh(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		keys = Keys{Signers: []note.Signer{second, testSigner}, Verifiers: verifiers, Public: []PublicKey{{Line: "new"}, {Line: "old"}}}
		check("before it is told", l, true, false)
		failure = errors.New("it fails")
		if err := l.Refresh(t.Context()); !errors.Is(err, failure) {
			t.Errorf("while the keys cannot be read, it says %v", err)
		}
		check("while the keys cannot be read", l, true, false)
		failure = nil
		refresh(l)
		check("when it is refreshed", l, true, true)
		if public := l.Public(); len(public) != 2 || public[0].Line != "new" {
			t.Errorf("it is known by %v", public)
		}
		if stored, err := (&access{memory: m}).Read(t.Context(), checkpointName); err != nil || string(stored) != string(l.Head().Signed) {
			t.Errorf("stored is %q, %v", stored, err)
		}
		mustAppend(t, old, moduleLeaf(1))
		refresh(l)
		check("after another instance has added to it", l, true, true)
		refresh(old)
		check("by the other instance", old, true, false)

		started, err := Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		defer started.Close()
		refresh(started)
		check("by an instance that starts", started, true, true)

		keys.Signers = keys.Signers[:1]
		refresh(l)
		mustAppend(t, l, moduleLeaf(2))
		check("when the first key has ceased", l, false, true)
	})
}
