package tlog

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"
)

func TestKeys(t *testing.T) {
	private, err := GenerateKey(origin)
	if err != nil {
		t.Fatal(err)
	}
	k, err := ReadKey(private + "\n")
	if err != nil || !strings.HasPrefix(k.Public, origin+"+") {
		t.Fatalf("its public key is %q, %v", k.Public, err)
	}
	signed, err := Checkpoint{Origin: origin}.Sign(k.Signer)
	if err != nil {
		t.Fatal(err)
	}
	v, err := note.NewVerifier(k.Public)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenCheckpoint(signed, origin, v); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"", "hello", k.Public, private[:len(private)-4], strings.Replace(private, "PRIVATE", "Private", 1)} {
		if _, err := ReadKey(bad); err == nil || len(bad) > 0 && strings.Contains(err.Error(), bad) {
			t.Errorf("%q is read: %v", bad, err)
		}
	}
	for _, bad := range []string{"", "a b", "a+b", "https://a/b", "a\nb", "\xff"} {
		if _, err := GenerateKey(bad); err == nil {
			t.Errorf("%q may be a name", bad)
		}
	}
}

func TestTheKeyOfAStoreStays(t *testing.T) {
	a := &access{memory: newMemory()}
	if _, _, err := StoredKey(t.Context(), a); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without one it says %v", err)
	}
	private, err := GenerateKey(origin)
	if err != nil {
		t.Fatal(err)
	}
	k, err := ReadKey(private)
	if err != nil {
		t.Fatal(err)
	}
	if err := StoreKey(t.Context(), a, k.Public); err != nil {
		t.Fatal(err)
	}
	if err := StoreKey(t.Context(), a, "other"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("another key says %v", err)
	}
	if public, v, err := StoredKey(t.Context(), a); err != nil || public != k.Public || v.Name() != origin {
		t.Errorf("it is %q, %v", public, err)
	}
	a.memory.files[keyName] = []byte("hello")
	if _, _, err := StoredKey(t.Context(), a); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a damaged one says %v", err)
	}
}
