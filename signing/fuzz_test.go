package signing

import (
	"bytes"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
)

// seeds adds keys of all kinds, each with a signing sub-key and a signature.
func seeds(f *testing.F, add func(key, document, signature []byte)) {
	for _, algorithm := range []packet.PublicKeyAlgorithm{
		packet.PubKeyAlgoEdDSA, packet.PubKeyAlgoEd25519, packet.PubKeyAlgoEd448, packet.PubKeyAlgoECDSA, packet.PubKeyAlgoRSA,
	} {
		for _, v6 := range []bool{false, true} {
			config := &packet.Config{Algorithm: algorithm, V6Keys: v6, KeyLifetimeSecs: 3600}
			if algorithm == packet.PubKeyAlgoECDSA {
				config.Curve = packet.CurveNistP256
			}
			if v6 && algorithm == packet.PubKeyAlgoEdDSA {
				continue // not allowed
			}
			key := newKey(f, config)
			if err := key.AddSigningSubkey(config); err != nil {
				f.Fatal(err)
			}
			var packets, signature bytes.Buffer
			document := []byte("document")
			if err := key.Serialize(&packets); err != nil {
				f.Fatal(err)
			}
			if err := openpgp.DetachSign(&signature, key, bytes.NewReader(document), config); err != nil {
				f.Fatal(err)
			}
			add(packets.Bytes(), document, signature.Bytes())
		}
	}
}

// Whatever is in a keys file, reading it returns a key or an error, and clients can
// read the key.
func FuzzReadKeyring(f *testing.F) {
	seeds(f, func(key, _, _ []byte) {
		f.Add(key)
		text, _ := enarmor(openpgp.PublicKeyType, key)
		f.Add(append(text, text...))
	})
	f.Fuzz(func(t *testing.T, file []byte) {
		text, err := enarmor(openpgp.PublicKeyType, file)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range [][]byte{file, text} {
			ring, problems := ReadKeyring(file)
			if len(ring.Keys()) == 0 && len(problems) == 0 {
				t.Error("neither a key nor a reason")
			}
			for _, key := range ring.Keys() {
				if again, problems := ReadKeyring([]byte(key.Armor)); len(problems) > 0 || len(again.Keys()) != 1 || again.Keys()[0] != key {
					t.Errorf("%v read again: %v", key, problems)
				}
			}
			_, _ = ReadKey(file, "passphrase")
		}
	})
}

// Clients accept every signature that Verify accepts.
func FuzzVerify(f *testing.F) {
	seeds(f, func(key, document, signature []byte) { f.Add(key, document, signature) })
	f.Fuzz(func(t *testing.T, key, document, signature []byte) {
		text, err := enarmor(openpgp.PublicKeyType, key)
		if err != nil {
			t.Fatal(err)
		}
		ring, _ := ReadKeyring(text)
		now := time.Now()
		ring.now = func() time.Time { return now }
		if _, err := ring.Verify(document, signature); err != nil {
			return
		}
		if err := clientVerify(ring.Keys(), document, signature, now); err != nil {
			t.Errorf("clients refuse it: %v", err)
		}
	})
}
