package signing

import (
	"bytes"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	pgperrors "github.com/ProtonMail/go-crypto/openpgp/errors"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
)

func TestVerify(t *testing.T) {
	g := newGnuPG(t)
	document := []byte("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  terraform-provider-demo_1.0.0_linux_amd64.zip\n")
	in2020 := func(day string) string { return "--faked-system-time=2020" + day + "T000000!" }
	for _, name := range []string{"publisher", "stranger", "revoked"} {
		g.generate(name, "ed25519", "sign", "0")
	}
	g.generate("classic", "rsa2048", "sign", "0")
	g.generate("split", "ed25519", "cert", "0")
	g.run(nil, "--passphrase", "", "--quick-add-key", g.fingerprint("split"), "ed25519", "sign", "1y")
	g.generate("lapsed", "ed25519", "sign", "1y", in2020("0101"))
	lapsed := g.sign("lapsed", document, in2020("0601"))
	g.generate("belated", "ed25519", "sign", "0", in2020("0101"))
	belated := g.sign("belated", document, in2020("0601"))
	g.run(nil, in2020("0601"), "--quick-set-expire", g.fingerprint("belated"), "20200301T000000")
	revoked := g.sign("revoked", document)
	g.revoke("revoked")

	good := g.sign("publisher", document)
	strange := g.sign("stranger", document)
	classic := g.sign("classic", document)
	tests := []struct {
		rule      string
		key       string // the only one in the file
		signature []byte
		document  []byte        // if another
		after     time.Duration // from now
		signer    string        // if good
		expired   bool
		err       error
		says      string
	}{
		{rule: "Ed25519", key: "publisher", signature: good, signer: "publisher"},
		{rule: "RSA", key: "classic", signature: classic, signer: "classic"},
		{rule: "text mode", key: "classic", signature: g.sign("classic", document, "--textmode"), signer: "classic"},
		{rule: "a sub-key signs for its key", key: "split", signature: g.sign("split", document), signer: "split"},
		{rule: "a sub-key expires by itself", key: "split", signature: g.sign("split", document), after: 2 * 365 * 24 * time.Hour, signer: "split", expired: true},
		{rule: "a key that expired since is named", key: "lapsed", signature: lapsed, signer: "lapsed", expired: true},
		{rule: "a key that had expired", key: "belated", signature: belated, err: ErrKeyExpired, says: "expired 2020-03-01T00:00:00Z, signed 2020-06-01T00:00:00Z"},
		{rule: "a revoked key", key: "revoked", signature: revoked, err: ErrBadSignature, says: "is revoked"},
		{rule: "dated in the future", key: "publisher", signature: good, after: -time.Hour, err: ErrSignedInFuture},
		{rule: "dated in the future, by an expired key", key: "belated", signature: belated, after: time.Until(time.Date(2020, 4, 1, 0, 0, 0, 0, time.UTC)), err: ErrSignedInFuture},
		{rule: "past its own lifetime", key: "publisher", signature: g.sign("publisher", document, "--default-sig-expire=1d"), after: 48 * time.Hour, err: ErrBadSignature, says: "time it was made for"},
		{rule: "an unknown key is named", key: "publisher", signature: strange, err: ErrUnknownKey, says: g.fingerprint("stranger")[24:]},
		{rule: "several signatures, the second by the key", key: "publisher", signature: append(bytes.Clone(strange), good...), signer: "publisher"},
		{rule: "several signatures, none by the key", key: "publisher", signature: append(bytes.Clone(strange), classic...), err: ErrUnknownKey, says: ", "},
		{rule: "another document", key: "publisher", signature: good, document: []byte("other"), err: ErrBadSignature, says: "not the one that was signed"},
		{rule: "another document, RSA", key: "classic", signature: classic, document: []byte("other"), err: ErrBadSignature, says: "not the one that was signed"},
		{rule: "SHA-1, as old releases have and clients verify", key: "classic", signature: g.sign("classic", document, "--digest-algo=SHA1"), signer: "classic"},
		{rule: "MD5", key: "classic", signature: g.sign("classic", document, "--digest-algo=MD5", "--allow-weak-digest-algos"), err: ErrBadSignature, says: "--digest-algo SHA256"},
		{rule: "armored", key: "publisher", signature: g.sign("publisher", document, "--armor"), err: ErrBadSignature, says: "make one with `gpg --detach-sign`, without --armor"},
		{rule: "base64", key: "publisher", signature: []byte(base64.StdEncoding.EncodeToString(good)), err: ErrBadSignature, says: "make one with `gpg --detach-sign`, without --armor"},
		{rule: "armored, with no usable key", signature: g.sign("publisher", document, "--armor"), err: ErrBadSignature, says: "make one with `gpg --detach-sign`, without --armor"},
		{rule: "truncated", key: "publisher", signature: good[:len(good)-1], err: ErrBadSignature},
		{rule: "truncated, with no usable key", signature: good[:len(good)-1], err: ErrBadSignature},
		{rule: "not detached", key: "publisher", signature: g.run(document, "--local-user", "publisher", "--sign"), err: ErrBadSignature, says: "--detach-sign"},
		{rule: "a key in its place", signature: g.run(nil, "--export", "publisher"), err: ErrBadSignature, says: "--detach-sign"},
		{rule: "empty", key: "publisher", err: ErrBadSignature, says: "empty"},
		{rule: "over the limit", key: "publisher", signature: bytes.Repeat(good, maxSize/len(good)+1), err: ErrBadSignature, says: "larger"},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			ring := &Keyring{}
			if test.key != "" {
				ring, _ = ReadKeyring(g.public(test.key))
			}
			now := time.Now().Add(test.after)
			ring.now = func() time.Time { return now }
			if test.document == nil {
				test.document = document
			}
			key, err := ring.Verify(test.document, test.signature)
			if !errors.Is(err, test.err) || test.err == nil && err != nil {
				t.Fatalf("error %v, want %v", err, test.err)
			}
			if err != nil {
				if !strings.Contains(err.Error(), test.says) || key != (PublicKey{}) {
					t.Fatalf("key %q, error %q, want no key and %q", key.ID, err, test.says)
				}
				return
			}
			if want := g.fingerprint(test.signer)[24:]; key.ID != want {
				t.Errorf("key %s, want %s", key.ID, want)
			}
			if expired := !key.Expires.IsZero() && key.Expires.Before(now); expired != test.expired {
				t.Errorf("expires %v", key.Expires)
			}
			if err := clientVerify(ring.Keys(), test.document, test.signature, now); err != nil {
				t.Errorf("clients refuse it: %v", err)
			}
			known := KnownKeyring(ring.Keys())
			known.now = ring.now
			if again, err := known.Verify(test.document, test.signature); err != nil || again != key {
				t.Errorf("of the keys as they are remembered, it is %q, error %v", again.ID, err)
			}
		})
	}
}

// A signature by a sub-key names the sub-key.
func TestIssuer(t *testing.T) {
	g := newGnuPG(t)
	g.generate("publisher", "ed25519", "sign", "0")
	g.generate("split", "ed25519", "cert", "0")
	g.run(nil, "--passphrase", "", "--quick-add-key", g.fingerprint("split"), "ed25519", "sign")
	if got := Issuer(g.sign("publisher", []byte("document"))); got != g.fingerprint("publisher")[24:] {
		t.Errorf("it is %q", got)
	}
	if got := Issuer(g.sign("split", []byte("document"))); len(got) != 16 || got == g.fingerprint("split")[24:] {
		t.Errorf("by a sub-key it is %q", got)
	}
	if got := Issuer([]byte("no signature")); got != "" {
		t.Errorf("without a signature it is %q", got)
	}
}

// Of several copies of one key, the copy that is valid for longest counts, wherever it
// is in the file. Some clients, such as Terraform 1.6.0, read only the first copy.
func TestOneCopyOfAKeyCounts(t *testing.T) {
	g := newGnuPG(t)
	in2020 := "--faked-system-time=20200101T000000!"
	document := []byte("document")
	g.generate("other", "ed25519", "sign", "0")
	g.generate("publisher", "ed25519", "sign", "1y", in2020)
	before := g.public("publisher")
	signed := g.sign("publisher", document, in2020)
	g.run(nil, "--quick-set-expire", g.fingerprint("publisher"), "20y")
	after := g.public("publisher")
	g.run(nil, "--quick-set-expire", g.fingerprint("publisher"), "0")
	forever := g.public("publisher")

	g.generate("split", "ed25519", "cert", "0", in2020)
	g.run(nil, in2020, "--passphrase", "", "--quick-add-key", g.fingerprint("split"), "ed25519", "sign", "1y")
	bySubkey := g.sign("split", document, in2020)
	lapsed := g.public("split")
	subkeys := strings.Split(string(g.run(nil, "--with-colons", "--list-keys", "split")), "\nfpr:")
	g.run(nil, "--faked-system-time=20200201T000000!", "--quick-set-expire", g.fingerprint("split"), "0", strings.Split(subkeys[2], ":")[8])
	extended := g.public("split")
	g.run(nil, "--passphrase", "", "--quick-add-key", g.fingerprint("split"), "rsa2048", "sign", "0")
	without := g.run(nil, "--armor", "--export-filter", "drop-subkey=key_algo = 22", "--export", "split")

	g.generate("stolen", "ed25519", "sign", "0")
	trusted, byThief := g.public("stolen"), g.sign("stolen", document)
	g.revoke("stolen")
	revoked := g.public("stolen")

	for _, test := range []struct {
		rule      string
		file      [][]byte
		keys      [][]byte // that clients are given
		signature []byte
		err       error
	}{
		{"the extended one is first", [][]byte{after, before}, [][]byte{after}, signed, nil},
		{"the extended one is last, and takes the place of the first", [][]byte{before, g.public("other"), after}, [][]byte{after, g.public("other")}, signed, nil},
		{"one that never expires lasts longest", [][]byte{after, forever, before}, [][]byte{forever}, signed, nil},
		{"a sub-key has been extended", [][]byte{lapsed, extended}, [][]byte{extended}, bySubkey, nil},
		{"the extended sub-key is first", [][]byte{extended, lapsed}, [][]byte{extended}, bySubkey, nil},
		{"a sub-key has been removed: what it signed stays good", [][]byte{extended, without}, [][]byte{without, extended}, bySubkey, nil},
		{"it has been revoked", [][]byte{trusted, revoked}, [][]byte{revoked}, byThief, ErrBadSignature},
		{"the revoked one is first", [][]byte{revoked, trusted}, [][]byte{revoked}, byThief, ErrBadSignature},
	} {
		t.Run(test.rule, func(t *testing.T) {
			ring, problems := ReadKeyring(bytes.Join(test.file, nil))
			given := ring.Keys()
			if len(given) != len(test.keys) || len(problems) > 0 {
				t.Fatalf("%d keys, want %d, problems %v", len(given), len(test.keys), problems)
			}
			for i, want := range test.keys {
				alone, _ := ReadKeyring(want)
				if given[i] != alone.Keys()[0] {
					t.Errorf("key %d is %s, which expires %v, want %s, %v", i, given[i].ID, given[i].Expires, alone.Keys()[0].ID, alone.Keys()[0].Expires)
				}
			}
			key, err := ring.Verify(document, test.signature)
			if !errors.Is(err, test.err) || test.err == nil && err != nil {
				t.Fatalf("error %v, want %v", err, test.err)
			}
			if err == nil && !key.Expires.IsZero() && key.Expires.Before(time.Now()) {
				t.Errorf("the signature is by a copy that expired %v", key.Expires)
			}
		})
	}
}

// A key beside a ring counts if it changes the keys that clients receive.
func TestWhichKeysCountBeside(t *testing.T) {
	g := newGnuPG(t)
	g.generate("publisher", "ed25519", "sign", "1y", "--faked-system-time=20200101T000000!")
	before, _ := ReadKeyring(g.public("publisher"))
	g.run(nil, "--quick-set-expire", g.fingerprint("publisher"), "0")
	after, _ := ReadKeyring(g.public("publisher"))
	g.generate("other", "ed25519", "sign", "0")
	other, _ := ReadKeyring(g.public("other"))
	for _, test := range []struct {
		rule  string
		ring  *Keyring
		key   PublicKey
		count bool
	}{
		{"a key that is there", before, before.Keys()[0], false},
		{"another key", before, other.Keys()[0], true},
		{"the first key", KnownKeyring(nil), before.Keys()[0], true},
		{"an extended copy", before, after.Keys()[0], true},
		{"a copy from before it was extended", after, before.Keys()[0], false},
		{"no key", before, PublicKey{Armor: "nothing"}, false},
	} {
		if got := test.ring.Counts(test.key); got != test.count {
			t.Errorf("%s: %v", test.rule, got)
		}
	}
}

func TestVerifyIsSafeForConcurrentUse(t *testing.T) {
	key, err := generate(2048)
	if err != nil {
		t.Fatal(err)
	}
	ring, _ := ReadKeyring([]byte(key.PublicKey().Armor))
	first, _ := key.Sign([]byte("document"))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			signature, err := key.Sign([]byte("document"))
			if err != nil || !bytes.Equal(signature, first) {
				t.Errorf("another signature, or error %v", err)
			}
			if _, err := ring.Verify([]byte("document"), signature); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// clientVerify does the same as findSigningKey of Terraform and of OpenTofu, as
// strictly as the stricter of them.
func clientVerify(keys []PublicKey, document, signature []byte, now time.Time) error {
	config := &packet.Config{Time: func() time.Time { return now }}
	expired := pgperrors.ErrUnknownIssuer
	for _, key := range keys {
		entities, err := openpgp.ReadArmoredKeyRing(strings.NewReader(key.Armor))
		if err != nil {
			return err
		}
		_, err = openpgp.CheckDetachedSignature(entities, bytes.NewReader(document), bytes.NewReader(signature), config)
		switch {
		case errors.Is(err, pgperrors.ErrUnknownIssuer):
		case errors.Is(err, pgperrors.ErrKeyExpired):
			expired = nil
		default:
			return err
		}
	}
	return expired
}

// revoke imports the revocation certificate that gpg wrote when it made the key.
func (g gnupg) revoke(name string) {
	g.Helper()
	certificate, err := os.ReadFile(filepath.Join(g.home, "openpgp-revocs.d", g.fingerprint(name)+".rev"))
	if err != nil {
		g.Fatal(err)
	}
	g.run(bytes.Replace(certificate, []byte(":-----BEGIN"), []byte("-----BEGIN"), 1), "--import")
}
