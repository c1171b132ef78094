package access

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestLinkKeysRotation(t *testing.T) {
	first := NewLinkKeys(linkTime)
	second := first.rotate(linkTime.Add(time.Hour))
	third := second.rotate(linkTime.Add(2 * time.Hour))
	if got := second.rotated; !got.Equal(linkTime.Add(time.Hour)) {
		t.Errorf("rotated at %v", got)
	}
	query := sign(t, linksOf(first), linkTree, linkFile, linkTime)
	tests := []struct {
		rule string
		keys *LinkKeys
		want error
	}{
		{"the current key verifies", first, nil},
		{"the previous key verifies", second, nil},
		{"an older key is dropped", third, ErrLinkInvalid},
		{"the key of another set does not", NewLinkKeys(linkTime), ErrLinkInvalid},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			if err := linksOf(test.keys).Verify(linkTree, linkFile, query, linkTime); err != test.want {
				t.Errorf("got %v, want %v", err, test.want)
			}
		})
	}
	if sign(t, linksOf(second), linkTree, linkFile, linkTime) == query {
		t.Error("the previous key signs")
	}
	if first.current().name() == second.current().name() {
		t.Error("the keys have the same ID")
	}
}

func TestLinkKeysDocument(t *testing.T) {
	keys := NewLinkKeys(linkTime)
	for range 2 {
		document := keys.encode()
		decoded, err := decodeLinkKeys(document)
		if err != nil {
			t.Fatal(err)
		}
		if again := decoded.encode(); !bytes.Equal(again, document) {
			t.Errorf("encoded again it is another document")
		}
		if !decoded.rotated.Equal(keys.rotated) {
			t.Errorf("rotated at %v, want %v", decoded.rotated, keys.rotated)
		}
		query := sign(t, linksOf(keys), linkTree, linkFile, linkTime)
		if query != sign(t, linksOf(decoded), linkTree, linkFile, linkTime) {
			t.Error("the decoded keys sign differently")
		}
		keys = keys.rotate(linkTime.Add(1500 * time.Millisecond))
	}
}

func TestDecodeLinkKeys(t *testing.T) {
	secret, other := linkSecret(1), linkSecret(2)
	document := func(version int, rotated string, keys ...string) string {
		d, _ := json.Marshal(map[string]any{"version": version, "rotated": rotated, "keys": keys})
		return string(d)
	}
	const rotated = "2026-01-02T03:04:05Z"
	tests := []struct {
		rule, document string
		want           string // part of the error; empty: none
	}{
		{"one key", document(1, rotated, secret), ""},
		{"two keys", document(1, rotated, secret, other), ""},
		{"a time with an offset", document(1, "2026-01-02T03:04:05+02:00", secret), ""},

		{"nothing", "", "not the JSON"},
		{"not JSON", secret, "not the JSON"},
		{"half of it", document(1, rotated, secret)[:40], "not the JSON"},
		{"more after it", document(1, rotated, secret) + secret, "not the JSON"},
		{"a list", "[" + document(1, rotated, secret) + "]", "not the JSON"},
		{"endless nesting", strings.Repeat(`{"version":`, 20_000), "not the JSON"},
		{"no version", "{}", "its version is 0"},
		{"null", "null", "its version is 0"},
		{"a later version", `{"version":2,"` + secret + `":1}`, "a later release wrote it, in version 2"},
		{"an unknown member", `{"version":1,"` + secret + `":1}`, "members"},
		{"a key that is a number", `{"version":1,"keys":[1]}`, "members"},
		{"no time", document(1, "", secret), "when the keys were rotated"},
		{"a year before 1970", document(1, "0000-01-01T00:00:00+23:59", secret), "when the keys were rotated"},
		{"a key as the time", document(1, secret, secret), "when the keys were rotated"},
		{"no keys", document(1, rotated), "has 0 keys"},
		{"three keys", document(1, rotated, secret, other, linkSecret(3)), "has 3 keys"},
		{"a key twice", document(1, rotated, secret, secret), "the same"},
		{"an empty key", document(1, rotated, secret, ""), "key 2 is not 32 bytes"},
		{"a short key", document(1, rotated, secret[:40]), "key 1 is not 32 bytes"},
		{"a long key", document(1, rotated, secret+"AAAA"), "key 1 is not 32 bytes"},
		{"a key with padding", document(1, rotated, secret+"="), "key 1 is not 32 bytes"},
		{"a key with bits left over", document(1, rotated, secret[:42]+"_"), "key 1 is not 32 bytes"},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			keys, err := decodeLinkKeys([]byte(test.document))
			if test.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				if keys.rotated.IsZero() {
					t.Error("there is no time of rotation")
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %v, %v, want an error with %q", keys, err, test.want)
			}
			if strings.Contains(err.Error(), secret[:20]) {
				t.Errorf("error %q has a key in it", err)
			}
		})
	}
}

func TestLinkKeyIsNotPrinted(t *testing.T) {
	keys, err := decodeLinkKeys(fixedLinkKeys(1).encode())
	if err != nil {
		t.Fatal(err)
	}
	in := struct{ keys *LinkKeys }{keys}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%t"} {
		text := fmt.Sprintf(verb+" "+verb+" "+verb+" "+verb, keys, *keys, keys.current(), in)
		for _, secret := range []string{"\x01\x01", linkSecret(1), "010101", "1 1 1", "0x1, 0x1", `\x01`, "%!t(uint8=1)"} {
			if strings.Contains(text, secret) {
				t.Errorf("%s prints the key: %s", verb, text)
			}
		}
	}
	//lint:ignore SA9005 the test checks that JSON has nothing of the keys
	if document, err := json.Marshal(keys); err != nil || string(document) != "{}" {
		t.Errorf("as JSON it is %s, %v", document, err)
	}
}

// linkSecret is a key of 32 equal bytes, as in a document.
func linkSecret(b byte) string {
	return base64.RawURLEncoding.EncodeToString(bytes.Repeat([]byte{b}, 32))
}

// fixedLinkKeys returns the same keys for every test.
func fixedLinkKeys(secrets ...byte) *LinkKeys {
	var keys []string
	for _, b := range secrets {
		keys = append(keys, fmt.Sprintf("%q", linkSecret(b)))
	}
	document := fmt.Sprintf(`{"version":1,"rotated":%q,"keys":[%s]}`, linkTime.Format(time.RFC3339), strings.Join(keys, ","))
	decoded, err := decodeLinkKeys([]byte(document))
	if err != nil {
		panic(err)
	}
	return decoded
}

// A document from the store is either decoded, and encoded to the same document again,
// or refused with an error that does not quote it.
func FuzzDecodeLinkKeys(f *testing.F) {
	f.Add(fixedLinkKeys(1).encode())
	f.Add(fixedLinkKeys(1, 2).encode())
	f.Add([]byte(`{"version":1,"rotated":"9999-12-31T23:59:59-23:59","keys":["` + linkSecret(1) + `"]}`))
	f.Add([]byte(`{"version":1,"rotated":"0000-01-01T00:00:00+23:59","keys":["` + linkSecret(1) + `"]}`))
	f.Add([]byte(`{"version":1,"VERSION":1,"rotated":"2026-01-02T03:04:05.9Z","keys":null}`))
	f.Fuzz(func(t *testing.T, document []byte) {
		keys, err := decodeLinkKeys(document)
		if err != nil {
			if len(document) >= 20 && strings.Contains(err.Error(), string(document[len(document)/2:])) {
				t.Fatalf("error %q quotes the document", err)
			}
			return
		}
		again, err := decodeLinkKeys(keys.encode())
		if err != nil {
			t.Fatalf("%s encoded again: %v", document, err)
		}
		if !bytes.Equal(again.encode(), keys.encode()) {
			t.Fatalf("%s encoded again is another document", document)
		}
		if query := sign(t, linksOf(keys), linkTree, linkFile, linkTime); linksOf(again).Verify(linkTree, linkFile, query, linkTime) != nil {
			t.Fatalf("%s does not verify what it signs", document)
		}
	})
}
