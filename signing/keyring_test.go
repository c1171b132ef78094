package signing

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
)

func TestReadKeyring(t *testing.T) {
	g := newGnuPG(t)
	g.generate("one", "ed25519", "sign", "0")
	g.generate("two", "rsa2048", "sign", "2y")
	g.generate("sealed", "ed25519", "cert", "0")
	one, two, both := g.public("one"), g.public("two"), g.public("one", "two", "sealed")
	lines := bytes.SplitAfter(one, []byte("\n"))
	cut := bytes.Join(lines[:len(lines)-2], nil)
	crlf := bytes.ReplaceAll(one, []byte("\n"), []byte("\r\n"))
	corrupt := bytes.Replace(one, []byte("\n\n"), []byte("\n\nAAAA"), 1)
	modern := armored(t, newKey(t, &packet.Config{V6Keys: true, Algorithm: packet.PubKeyAlgoEd25519}))
	disguised := bytes.ReplaceAll(g.private("one"), []byte("PRIVATE"), []byte("PUBLIC"))
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, []byte("some text\n")) }

	tests := []struct {
		rule     string
		file     []byte
		keys     string // names in order
		problems []string
	}{
		{rule: "one block", file: one, keys: "one"},
		{rule: "blocks one after another", file: append(bytes.Clone(one), two...), keys: "one two"},
		{rule: "text between blocks", file: join(nil, two, one, nil), keys: "two one"},
		{rule: "a byte order mark and CRLF", file: append([]byte("\ufeff"), crlf...), keys: "one"},
		{rule: "files put together, each with a byte order mark", file: append(append([]byte("\ufeff"), crlf...), append([]byte("\ufeff"), two...)...), keys: "one two"},
		{rule: "files put together, one of them without a last line break", file: append(bytes.TrimSpace(one), two...), keys: "one two"},
		{rule: "a block of several keys is split", file: both, keys: "one two", problems: []string{"key block 1: clients cannot use key"}},
		{rule: "the same key twice counts once", file: join(one, crlf), keys: "one"},
		{rule: "a private key is refused and the rest stays", file: join(g.private("one"), two), keys: "two",
			problems: []string{"key block 1: it is a private key and is not used: remove it, and put in the public key as written by gpg --armor --export KEY"}},
		{rule: "a private key with another label is refused", file: disguised, problems: []string{"key block 1: it is a private key"}},
		{rule: "a signature is no key", file: join(one, g.run(nil, "--armor", "--local-user", "one", "--detach-sign")), keys: "one",
			problems: []string{"key block 2: it is a PGP SIGNATURE, not a public key: remove it"}},
		{rule: "a block without END", file: join(cut, two), keys: "two", problems: []string{"key block 1: it is cut off"}},
		{rule: "damaged base64", file: join(corrupt, two), keys: "two", problems: []string{"key block 1: "}},
		{rule: "a version 6 key", file: join(modern, two), keys: "two",
			problems: []string{"it is newer than OpenPGP version 4: use an RSA or Ed25519 key of version 4"}},
		{rule: "a key that may not sign", file: g.public("sealed"), problems: []string{"marked for signing"}},
		{rule: "no armor", file: g.run(nil, "--export", "one"), problems: []string{"no PGP PUBLIC KEY BLOCK in ASCII armor: write it with gpg --armor --output FILE --export KEY"}},
		{rule: "an empty file", problems: []string{"no PGP PUBLIC KEY BLOCK"}},
		{rule: "a file over the limit", file: bytes.Repeat(one, maxSize/len(one)+1), problems: []string{"larger than"}},
	}
	names := map[string]string{g.fingerprint("one")[24:]: "one", g.fingerprint("two")[24:]: "two"}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			ring, problems := ReadKeyring(test.file)
			if len(problems) != len(test.problems) {
				t.Fatalf("problems: %v, want %q", problems, test.problems)
			}
			for i, problem := range problems {
				if !strings.Contains(problem.Error(), test.problems[i]) {
					t.Errorf("problem: %v, want %q", problem, test.problems[i])
				}
			}
			var keys []string
			for _, key := range ring.Keys() {
				keys = append(keys, names[key.ID])
				read, err := openpgp.ReadArmoredKeyRing(strings.NewReader(key.Armor))
				if err != nil || len(read) != 1 || strings.Count(key.Armor, "-----BEGIN ") != 1 {
					t.Errorf("clients do not read one key (%v) of:\n%s", err, key.Armor)
				}
				if key.UserID != names[key.ID] || time.Since(key.Created) > time.Hour || key.Created.IsZero() {
					t.Errorf("key %s is %q's, made %v", names[key.ID], key.UserID, key.Created)
				}
				if eternal := names[key.ID] == "one"; eternal != key.Expires.IsZero() {
					t.Errorf("key %s expires %v", names[key.ID], key.Expires)
				}
			}
			if got := strings.Join(keys, " "); got != test.keys {
				t.Errorf("keys %q, want %q", got, test.keys)
			}
		})
	}
}

// Clients receive the sub-keys, the user IDs and the expiry of a key.
func TestKeysAreServedWhole(t *testing.T) {
	g := newGnuPG(t)
	g.generate("whole", "ed25519", "cert", "2y")
	fingerprint := g.fingerprint("whole")
	g.run(nil, "--passphrase", "", "--quick-add-key", fingerprint, "rsa2048", "sign", "1y")
	g.run(nil, "--passphrase", "", "--quick-add-uid", fingerprint, "another name")
	ring, problems := ReadKeyring(g.public("whole"))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	other := newGnuPG(t)
	other.run([]byte(ring.Keys()[0].Armor), "--import")
	if !bytes.Equal(other.public("whole"), g.public("whole")) {
		t.Error("the served key differs from gpg's export")
	}
	if year := 365 * 24 * time.Hour; time.Until(ring.Keys()[0].Expires).Round(year) != 2*year {
		t.Errorf("expires %v, want in two years", ring.Keys()[0].Expires)
	}
}

// The library, and so the client, crashes on a user ID without self-signature.
func TestRevokedUserIDWithoutSelfSignature(t *testing.T) {
	key, err := openpgp.NewEntity(strings.Repeat("n", 1<<16), "", "", &packet.Config{Algorithm: packet.PubKeyAlgoEdDSA})
	if err == nil {
		err = key.AddSigningSubkey(nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, identity := range key.Identities {
		revocation := *identity.SelfSignature
		revocation.SigType = packet.SigTypeCertificationRevocation
		if err := revocation.SignUserId(identity.Name, key.PrimaryKey, key.PrivateKey, nil); err != nil {
			t.Fatal(err)
		}
		identity.Signatures = []*packet.Signature{&revocation}
	}
	ring, problems := ReadKeyring(armored(t, key))
	if err := errors.Join(problems...); len(ring.Keys()) != 0 || err == nil || !strings.Contains(err.Error(), "not self-signed") {
		t.Errorf("%d keys, problems %.2000v", len(ring.Keys()), err)
	} else if len(err.Error()) > 2000 {
		t.Errorf("the problem is %d characters long", len(err.Error()))
	}
}

// The library keeps user IDs in a map. The shown user ID of a key, and its expiry, must
// not depend on the order of a map.
func TestUserIDsOfTheSameSecond(t *testing.T) {
	made := time.Now().Add(-time.Hour)
	config := &packet.Config{Algorithm: packet.PubKeyAlgoEd25519, Time: func() time.Time { return made }}
	key := newKey(t, config)
	for _, name := range []string{"another", "zest", "middle"} {
		if err := key.AddUserId(name, "", "", config); err != nil {
			t.Fatal(err)
		}
	}
	for name, identity := range key.Identities { // none is marked as the primary one
		identity.SelfSignature.IsPrimaryId = nil
		if err := identity.SelfSignature.SignUserId(name, key.PrimaryKey, key.PrivateKey, config); err != nil {
			t.Fatal(err)
		}
	}
	text := armored(t, key)
	for range 50 {
		ring, problems := ReadKeyring(text)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		if got := ring.Keys()[0].UserID; got != "another" {
			t.Fatalf("the key is %q's", got)
		}
	}
}

func newKey(t testing.TB, config *packet.Config) *openpgp.Entity {
	t.Helper()
	key, err := openpgp.NewEntity("test", "", "", config)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func armored(t testing.TB, key *openpgp.Entity) []byte {
	t.Helper()
	var packets bytes.Buffer
	if err := key.Serialize(&packets); err != nil {
		t.Fatal(err)
	}
	text, err := enarmor(openpgp.PublicKeyType, packets.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return text
}
