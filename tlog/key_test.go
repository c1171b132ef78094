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
	if _, err := ReadStoredKey(t.Context(), a); !errors.Is(err, fs.ErrNotExist) {
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
	stored, err := ReadStoredKey(t.Context(), a)
	if err != nil || stored.Public != k.Public || stored.Verifier.Name() != origin {
		t.Errorf("it is %+v, %v", stored, err)
	}
	another := &access{memory: newMemory()}
	if err := StoreKey(t.Context(), another, k.Public); err != nil {
		t.Fatal(err)
	}
	if other, err := ReadStoredKey(t.Context(), another); err != nil || other.ID == stored.ID || other.Public != k.Public {
		t.Errorf("another store is %+v, %v", other, err)
	}
	for _, damaged := range []string{"hello", k.Public, k.Public + "\nid \n", k.Public + "\nid 12\n", k.Public + "\nhello"} {
		a.memory.files[keyName] = []byte(damaged)
		if _, err := ReadStoredKey(t.Context(), a); err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q says %v", damaged, err)
		}
	}
}
