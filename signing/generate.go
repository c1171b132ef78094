package signing

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"fmt"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
)

// userID names generated keys; tools that list keys show it.
const userID = "Terraform registry"

// clockSkew dates a generated key back, for a client whose clock is late would
// otherwise take its signatures for signatures from the future (checklist 56).
const clockSkew = 24 * time.Hour

// Generate makes a new private key: RSA with 4096 bits, which every client since
// Terraform 0.13 verifies, and without an end.
func Generate() (*Key, error) { return generate(4096) }

func generate(bits int) (*Key, error) {
	key, err := newEntity(bits, time.Now().Add(-clockSkew))
	if err != nil {
		return nil, fmt.Errorf("generating a signing key: %w", err)
	}
	var packets bytes.Buffer
	if err := key.SerializePrivateWithoutSigning(&packets, nil); err != nil {
		return nil, fmt.Errorf("generating a signing key: %w", err)
	}
	armored, err := enarmor(openpgp.PrivateKeyType, packets.Bytes())
	if err != nil {
		return nil, fmt.Errorf("generating a signing key: %w", err)
	}
	return ReadKey(armored, "")
}

// newEntity leaves out the encryption sub-key the library would add: it takes as
// long to generate and has no use here.
func newEntity(bits int, created time.Time) (*openpgp.Entity, error) {
	numbers, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		return nil, err
	}
	primary := packet.NewRSAPrivateKey(created.Truncate(time.Second), numbers)
	entity := &openpgp.Entity{
		PrimaryKey: &primary.PublicKey,
		PrivateKey: primary,
		Identities: make(map[string]*openpgp.Identity),
	}
	config := unsalted()
	config.Time = func() time.Time { return primary.CreationTime }
	return entity, entity.AddUserId(userID, "", "", config)
}
