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

// userID is the user ID of generated keys. Tools that list keys show it.
const userID = "Terraform registry"

// clockSkew is subtracted from the creation time of a generated key. A client whose
// clock is late would otherwise take its signatures for signatures from the future
// (checklist 56).
const clockSkew = 24 * time.Hour

// Generate makes a new private key. It has RSA with 4096 bits, which every client since
// Terraform 0.13 verifies, and does not expire.
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

// newEntity leaves out the encryption sub-key that the library would add. It takes as
// long to generate and is not used.
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
