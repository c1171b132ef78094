package indextest

import (
	"bytes"
	"crypto"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
)

// A Publisher signs releases with a key of its own, as the authors of providers do. Its keys
// are small, so that they are made quickly.
type Publisher struct {
	entity *openpgp.Entity
	signed time.Time
}

var config = &packet.Config{Algorithm: packet.PubKeyAlgoEdDSA, DefaultHash: crypto.SHA256}

// Born is when publishers made their keys.
var Born = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// NewPublisher returns a publisher whose key never expires and who signs on the day after
// the key was made.
func NewPublisher(t testing.TB) *Publisher { return NewExpiringPublisher(t, 0, 24*time.Hour) }

// NewExpiringPublisher returns a publisher whose key expires at Born plus life, and who
// signs at Born plus signs.
func NewExpiringPublisher(t testing.TB, life, signs time.Duration) *Publisher {
	t.Helper()
	c := *config
	c.Time = func() time.Time { return Born }
	c.KeyLifetimeSecs = uint32(life / time.Second)
	e, err := openpgp.NewEntity("Acme Providers", "", "providers@example.com", &c)
	if err != nil {
		t.Fatal(err)
	}
	return &Publisher{entity: e, signed: Born.Add(signs)}
}

// Extend makes the key expire at Born plus life, or never, from now on.
func (p *Publisher) Extend(t testing.TB, life time.Duration) {
	t.Helper()
	c := *config
	c.Time = func() time.Time { return p.signed }
	seconds := uint32(life / time.Second)
	for name, identity := range p.entity.Identities {
		identity.SelfSignature.KeyLifetimeSecs = &seconds
		if err := identity.SelfSignature.SignUserId(name, p.entity.PrimaryKey, p.entity.PrivateKey, &c); err != nil {
			t.Fatal(err)
		}
	}
}

// ID returns the key's long ID.
func (p *Publisher) ID() string { return p.entity.PrimaryKey.KeyIdString() }

// PublicKey returns the armored public key.
func (p *Publisher) PublicKey() string {
	var b bytes.Buffer
	w, err := armor.Encode(&b, openpgp.PublicKeyType, nil)
	if err != nil {
		panic(err)
	}
	if err := p.entity.Serialize(w); err != nil {
		panic(err)
	}
	w.Close()
	b.WriteByte('\n')
	return b.String()
}

// Sign returns a binary detached signature. It is assembled by hand, because a library
// refuses to sign with a key that has expired, and some publishers' tools do not.
func (p *Publisher) Sign(document string) string {
	key := p.entity.PrivateKey
	signature := &packet.Signature{
		Version: key.Version, SigType: packet.SigTypeBinary, PubKeyAlgo: key.PubKeyAlgo,
		Hash: crypto.SHA256, CreationTime: p.signed, IssuerKeyId: &key.KeyId, IssuerFingerprint: key.Fingerprint,
	}
	h := crypto.SHA256.New()
	h.Write([]byte(document))
	if err := signature.Sign(h, key, config); err != nil {
		panic(err)
	}
	var b bytes.Buffer
	if err := signature.Serialize(&b); err != nil {
		panic(err)
	}
	return b.String()
}

// PrivateKey returns the armored private key, without a passphrase.
func (p *Publisher) PrivateKey() string {
	var b bytes.Buffer
	w, err := armor.Encode(&b, openpgp.PrivateKeyType, nil)
	if err != nil {
		panic(err)
	}
	if err := p.entity.SerializePrivate(w, config); err != nil {
		panic(err)
	}
	w.Close()
	b.WriteByte('\n')
	return b.String()
}
