package access

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"errors"
)

// ErrNotSealed means that this registry has not sealed the text for that purpose, or
// that the key of the text is gone because of its age.
var ErrNotSealed = errors.New("it was not sealed by this registry, or with a key that is gone")

// A Sealer encrypts and authenticates data that a browser stores for the registry. Its
// keys are derived from the keys of signed links: all instances that share the link
// keys can read the data. The data can be read for at least one day and at most two,
// since a key verifies for a day after it last signed.
type Sealer struct {
	// Keys and Reload are the same as in Links.
	Keys   func() *LinkKeys
	Reload func() bool
}

// Seal returns the sealed plaintext, in characters that are allowed in a cookie. It can
// be opened with the same purpose only. The error is ErrNoLinkKeys.
func (s *Sealer) Seal(purpose string, plaintext []byte) (string, error) {
	keys := s.Keys()
	if keys == nil {
		return "", ErrNoLinkKeys
	}
	key := keys.current()
	return base64.RawURLEncoding.EncodeToString(key.sealing().Seal(key.id[:], nil, plaintext, []byte(purpose))), nil
}

// Open returns the plaintext for a result of Seal. The error is ErrNotSealed or
// ErrNoLinkKeys.
func (s *Sealer) Open(purpose, sealed string) ([]byte, error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(sealed)
	if err != nil || len(raw) <= linkIDSize {
		return nil, ErrNotSealed
	}
	key, err := findLinkKey([linkIDSize]byte(raw), s.Keys, s.Reload)
	if err != nil {
		return nil, err
	}
	if key == nil {
		return nil, ErrNotSealed
	}
	plaintext, err := key.sealing().Open(nil, nil, raw[linkIDSize:], []byte(purpose))
	if err != nil {
		return nil, ErrNotSealed
	}
	return plaintext, nil
}

// newSealing derives the sealing key from the secret of a link key, since an HMAC and a
// cipher should not share a key. Nonces are random, which is safe for four billion
// texts a key, and a key seals for a day.
func newSealing(secret [linkSecretSize]byte) cipher.AEAD {
	derived, err := hkdf.Key(sha256.New, secret[:], nil, "terraform registry seal", 32)
	if err != nil {
		panic(err) // only if more is derived than the hash allows
	}
	block, err := aes.NewCipher(derived)
	if err != nil {
		panic(err) // only for a key of another length
	}
	sealing, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err) // only for another cipher
	}
	return sealing
}
