package signing

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	//lint:ignore SA1019 Terraform 0.13 verifies with it
	oldpgp "golang.org/x/crypto/openpgp"
)

func TestGenerate(t *testing.T) {
	key, err := generate(2048)
	if err != nil {
		t.Fatal(err)
	}
	document := []byte("document")
	signature, err := key.Sign(document)
	if err != nil {
		t.Fatal(err)
	}
	public := key.PublicKey()
	if !public.Expires.IsZero() {
		t.Errorf("it expires %v", public.Expires)
	}
	t.Run("Terraform 0.13 verifies it", func(t *testing.T) {
		keys, err := oldpgp.ReadArmoredKeyRing(strings.NewReader(public.Armor))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := oldpgp.CheckDetachedSignature(keys, bytes.NewReader(document), bytes.NewReader(signature)); err != nil {
			t.Error(err)
		}
	})
	t.Run("clients verify it, with a late clock too", func(t *testing.T) {
		ring, problems := ReadKeyring([]byte(public.Armor))
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		late := time.Now().Add(-time.Hour)
		ring.now = func() time.Time { return late }
		if verified, err := ring.Verify(document, signature); err != nil || verified != public {
			t.Errorf("key %s, error %v", verified.ID, err)
		}
		if err := clientVerify(ring.Keys(), document, signature, late); err != nil {
			t.Error(err)
		}
	})
	t.Run("gpg verifies it", func(t *testing.T) {
		g := newGnuPG(t)
		g.run([]byte(public.Armor), "--import")
		g.verify(document, signature)
	})
	t.Run("it is the same key when read back", func(t *testing.T) {
		private, err := key.Armor()
		if err != nil {
			t.Fatal(err)
		}
		again, err := ReadKey(private, "not looked at")
		if err != nil {
			t.Fatal(err)
		}
		if other, _ := again.Sign(document); again.PublicKey() != public || !bytes.Equal(other, signature) {
			t.Error("another public key or another signature")
		}
		if twice, _ := again.Armor(); !bytes.Equal(twice, private) {
			t.Error("another private key")
		}
	})
}

func TestReadKey(t *testing.T) {
	g := newGnuPG(t)
	g.generate("plain", "ed25519", "sign", "0")
	g.generate("classic", "rsa2048", "sign", "2y")
	g.generate("split", "ed25519", "cert", "0")
	g.run(nil, "--passphrase", "", "--quick-add-key", g.fingerprint("split"), "ed25519", "sign", "0")
	g.run(nil, "--passphrase", "", "--quick-add-uid", g.fingerprint("split"), "another name")
	g.run(nil, "--passphrase", "open sesame", "--quick-gen-key", "locked", "ed25519", "sign", "0")
	g.generate("lapsed", "ed25519", "sign", "1y", "--faked-system-time=20200101T000000!")
	g.generate("weak", "rsa1024", "sign", "0")
	g.generate("random", "nistp256", "sign", "0")
	g.generate("sealed", "ed25519", "cert", "0")
	locked := g.private("locked", "--passphrase", "open sesame")
	primaryless := g.run(nil, "--armor", "--export-secret-subkeys", "split")
	subkeyless := g.run(nil, "--armor", "--export-secret-subkeys", "plain")

	tests := []struct {
		rule       string
		file       []byte
		passphrase string
		signer     string
		says       string
	}{
		{rule: "Ed25519", file: g.private("plain"), signer: "plain"},
		{rule: "RSA, the public key beside it", file: append(g.public("classic"), g.private("classic")...), signer: "classic"},
		{rule: "a sub-key signs", file: g.private("split"), signer: "split"},
		{rule: "a sub-key signs without the primary key's private part", file: primaryless, signer: "split"},
		{rule: "with its passphrase", file: locked, passphrase: "open sesame", signer: "locked"},
		{rule: "without its passphrase", file: locked, says: "has a passphrase: configure it"},
		{rule: "with another passphrase", file: locked, passphrase: "close sesame", says: "passphrase of key"},
		{rule: "a public key", file: g.public("plain"), says: "gpg --armor --output FILE --export-secret-keys KEY"},
		{rule: "several files", file: append(g.private("plain"), g.private("classic")...), says: "several private keys"},
		{rule: "several keys in a block", file: g.run(nil, "--armor", "--export-secret-keys", "plain", "classic"), says: "several private keys"},
		{rule: "an expired key", file: g.private("lapsed"), says: "it expired 2020-12-31"},
		{rule: "a short RSA key", file: g.private("weak"), says: "1024 bits: use one of 2048"},
		{rule: "ECDSA never signs twice the same", file: g.private("random"), says: "use an RSA or Ed25519 key"},
		{rule: "a key that may not sign", file: g.private("sealed"), says: "marked for signing"},
		{rule: "the private part is elsewhere", file: subkeyless, says: "is not in the file"},
		{rule: "cut off", file: g.private("plain")[:300], says: "cut off"},
		{rule: "over the limit", file: make([]byte, maxSize+1), says: "larger than"},
		{rule: "empty", says: "no PGP PRIVATE KEY BLOCK"},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			key, err := ReadKey(test.file, test.passphrase)
			if test.signer == "" {
				if err == nil || !strings.Contains(err.Error(), test.says) {
					t.Fatalf("error %v, want %q", err, test.says)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if want := g.fingerprint(test.signer)[24:]; key.PublicKey().ID != want {
				t.Errorf("key %s, want %s", key.PublicKey().ID, want)
			}
			document := []byte("document")
			signature, err := key.Sign(document)
			if err != nil {
				t.Fatal(err)
			}
			g.verify(document, signature)
			open, err := key.Armor()
			if err != nil {
				t.Fatal(err)
			}
			again, err := ReadKey(open, "")
			if err != nil {
				t.Fatalf("without passphrase: %v", err)
			}
			if other, _ := again.Sign(document); !bytes.Equal(other, signature) || again.PublicKey() != key.PublicKey() {
				t.Error("the same key gives another signature or public key")
			}
			if strings.Contains(key.PublicKey().Armor, "PRIVATE") {
				t.Error("the public key is not public")
			}
		})
	}
}

// Each half of this key is sound, but the halves belong to two keys.
func TestReadKeyOfTwoHalves(t *testing.T) {
	config := &packet.Config{Algorithm: packet.PubKeyAlgoEd25519}
	one, other := newKey(t, config), newKey(t, config)
	one.PrivateKey.PrivateKey = other.PrivateKey.PrivateKey
	var packets bytes.Buffer
	if err := one.SerializePrivateWithoutSigning(&packets, nil); err != nil {
		t.Fatal(err)
	}
	text, err := enarmor(openpgp.PrivateKeyType, packets.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ReadKey(text, ""); err == nil {
		t.Error("no error")
	}
}

// A late clock has another error than an unusable key.
func TestReadKeyWithALateClock(t *testing.T) {
	g := newGnuPG(t)
	fakedTime := func(day string) string { return "--faked-system-time=2026" + day + "T000000!" }
	g.generate("whole", "ed25519", "sign", "0", fakedTime("0110"))
	g.generate("split", "ed25519", "cert", "0", fakedTime("0110"))
	g.run(nil, fakedTime("0120"), "--passphrase", "", "--quick-add-key", g.fingerprint("split"), "ed25519", "sign", "0")
	g.generate("both", "ed25519", "sign", "0", fakedTime("0110"))
	g.run(nil, fakedTime("0120"), "--passphrase", "", "--quick-add-key", g.fingerprint("both"), "ed25519", "sign", "0")
	g.generate("sealing", "ed25519", "sign", "0", fakedTime("0110"))
	g.run(nil, fakedTime("0120"), "--passphrase", "", "--quick-add-key", g.fingerprint("sealing"), "cv25519", "encr", "0")
	g.generate("extended", "ed25519", "sign", "1y", fakedTime("0110"))
	g.run(nil, fakedTime("0120"), "--quick-set-expire", g.fingerprint("extended"), "2y")

	for _, test := range []struct {
		rule, key string
		day       int    // of January
		made      string // in the error; empty: none
	}{
		{"before the key was made", "whole", 8, "2026-01-10T00:00:00Z"},
		{"when it was made", "whole", 10, ""},
		{"before the sub-key that signs was made", "split", 15, "2026-01-20T00:00:00Z"},
		{"before a sub-key takes over from the primary key", "both", 15, "2026-01-20T00:00:00Z"},
		{"after both", "both", 21, ""},
		{"a sub-key that does not sign is of no interest", "sealing", 15, ""},
		{"before its expiry was moved", "extended", 15, "2026-01-20T00:00:00Z"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			now := time.Date(2026, 1, test.day, 0, 0, 0, 0, time.UTC)
			_, err := readKey(g.private(test.key), "", now)
			if test.made == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			want := "the clock of this machine is wrong: the key was made at " + test.made + ", and the clock says " + now.Format(time.RFC3339) + ": set the clock"
			if !errors.Is(err, ErrClock) || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want %q", err, want)
			}
		})
	}
}
