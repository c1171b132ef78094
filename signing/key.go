package signing

import (
	"bytes"
	"crypto"
	"errors"
	"fmt"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
)

// ErrClock means that the key is dated in the future, so this machine's clock is wrong.
// The key itself is valid.
var ErrClock = errors.New("the clock of this machine is wrong")

// A Key is a private key that signs SHA256SUMS documents. It does not change,
// and is safe for concurrent use.
type Key struct {
	public  PublicKey
	private *packet.PrivateKey // the primary key, or the sub-key that signs
	packets []byte             // the whole key, not encrypted
}

// ReadKey reads a file with one private key in ASCII armor, as written by gpg --armor
// --export-secret-keys. The passphrase is ignored if the key has none. The error is
// ErrClock if the key would be usable at another time.
func ReadKey(armored []byte, passphrase string) (*Key, error) {
	return readKey(armored, passphrase, time.Now())
}

func readKey(armored []byte, passphrase string, now time.Time) (*Key, error) {
	locked, err := onlyPrivateKey(armored)
	if err != nil {
		return nil, fmt.Errorf("signing key: %w", err)
	}
	u, err := unlock(locked, passphrase)
	if err != nil {
		return nil, fmt.Errorf("signing key: %w", err)
	}
	m, err := newMember(u.public, new(int))
	if err != nil {
		return nil, fmt.Errorf("signing key: %w", err)
	}
	fail := func(err error) (*Key, error) { return nil, fmt.Errorf("signing key %s: %w", m.public.ID, err) }
	signer, err := u.signingKey(m, now)
	if err != nil {
		return fail(err)
	}
	key := &Key{private: signer, packets: u.packets}
	// If the private numbers do not belong to the public ones, fail here and not on a
	// user's machine.
	signature, err := key.Sign(nil)
	if err != nil {
		return fail(err)
	}
	ring := &Keyring{members: []member{m}, now: func() time.Time { return now }}
	if key.public, err = ring.Verify(nil, signature); err != nil {
		return fail(fmt.Errorf("clients would refuse what it signs: %w", err))
	}
	return key, nil
}

// PublicKey returns the key with which clients verify the signatures.
func (k *Key) PublicKey() PublicKey { return k.public }

// Sign returns a binary detached signature of document. The signature depends on key
// and document alone, so that all instances with this key serve the same bytes. It is
// dated to the creation of the key, and lacks the library's random salt.
func (k *Key) Sign(document []byte) ([]byte, error) {
	made := &packet.Signature{
		Version:      k.private.Version,
		SigType:      packet.SigTypeBinary,
		PubKeyAlgo:   k.private.PubKeyAlgo,
		Hash:         crypto.SHA512,
		CreationTime: k.private.CreationTime,
		IssuerKeyId:  &k.private.KeyId,
	}
	config := unsalted()
	digest, err := made.PrepareSign(config)
	if err != nil {
		return nil, fmt.Errorf("signing: %w", err)
	}
	digest.Write(document)
	if err := made.Sign(digest, k.private, config); err != nil {
		return nil, fmt.Errorf("signing: %w", err)
	}
	var signature bytes.Buffer
	if err := made.Serialize(&signature); err != nil {
		return nil, fmt.Errorf("signing: %w", err)
	}
	return signature.Bytes(), nil
}

func unsalted() *packet.Config {
	return &packet.Config{NonDeterministicSignaturesViaNotation: packet.BoolPointer(false)}
}

// Armor returns the private key in ASCII armor and without a passphrase, for storage
// that is itself protected. ReadKey reads it back.
func (k *Key) Armor() ([]byte, error) {
	return enarmor(openpgp.PrivateKeyType, k.packets)
}

// onlyPrivateKey returns the private key of a file that has only one.
func onlyPrivateKey(armored []byte) ([]*packet.OpaquePacket, error) {
	if len(armored) > maxSize {
		return nil, fmt.Errorf("the file is larger than %d bytes: keep only the key in it", maxSize)
	}
	var found []block
	for _, b := range blocks(armored) {
		if b.label == openpgp.PrivateKeyType {
			found = append(found, b)
		}
	}
	if len(found) == 0 {
		return nil, noBlock(openpgp.PrivateKeyType)
	}
	keys, err := found[0].keys()
	if err != nil {
		return nil, err
	}
	if len(found) > 1 || len(keys) > 1 {
		return nil, errors.New("there are several private keys in the file: leave one")
	}
	return keys[0], nil
}

// unlocked is a decrypted private key.
type unlocked struct {
	packets []byte                        // the whole key
	public  []*packet.OpaquePacket        // the public half of the key
	private map[string]*packet.PrivateKey // the primary key and the sub-keys, by fingerprint
}

// unlock decrypts a private key. It parses each part only once, because parsing is
// slow: the library checks the numbers of an RSA key.
func unlock(locked []*packet.OpaquePacket, passphrase string) (*unlocked, error) {
	u := &unlocked{private: make(map[string]*packet.PrivateKey)}
	var all bytes.Buffer
	for _, p := range locked {
		if p.Tag != tagPrivateKey && p.Tag != tagPrivateSubkey {
			u.public = append(u.public, p)
			if err := p.Serialize(&all); err != nil {
				return nil, err
			}
			continue
		}
		parsed, err := p.Parse()
		if err != nil {
			return nil, fmt.Errorf("it cannot be read, use an RSA or Ed25519 key that is not on a smart card: %w", err)
		}
		key, ok := parsed.(*packet.PrivateKey)
		if !ok {
			return nil, errors.New("it cannot be read: export it again")
		}
		if key.Encrypted && passphrase == "" {
			return nil, fmt.Errorf("key %s has a passphrase: configure it with the key", key.KeyIdString())
		}
		if key.Encrypted {
			if err := key.Decrypt([]byte(passphrase)); err != nil {
				return nil, fmt.Errorf("the passphrase of key %s is a different one: %w", key.KeyIdString(), err)
			}
		}
		if err := key.Serialize(&all); err != nil {
			return nil, err
		}
		var half bytes.Buffer
		if err := key.PublicKey.Serialize(&half); err != nil {
			return nil, err
		}
		p, err = packet.NewOpaqueReader(&half).Next()
		if err != nil {
			return nil, err
		}
		u.public = append(u.public, p)
		u.private[string(key.Fingerprint)] = key
	}
	u.packets = all.Bytes()
	return u, nil
}

// signingKey returns the part of a key that signs, as gpg selects it: the newest
// sub-key that may sign, or else the primary key.
func (u *unlocked) signingKey(m member, now time.Time) (*packet.PrivateKey, error) {
	if made := newestPart(m.read()[0]); made.Unix() > now.Unix() {
		return nil, fmt.Errorf("%w: the key was made at %s, and the clock says %s: set the clock", ErrClock, inUTC(made), inUTC(now))
	}
	if expires := m.public.Expires; !expires.IsZero() && !expires.After(now) {
		return nil, fmt.Errorf("it expired %s: extend it with gpg --quick-set-expire and export it again", expires.Format(time.RFC3339))
	}
	chosen, ok := m.read()[0].SigningKey(now)
	if !ok {
		return nil, errors.New("no part of it may sign now, for it is revoked, expired or not marked for signing: use another key")
	}
	key := u.private[string(chosen.PublicKey.Fingerprint)]
	if key == nil || key.Dummy() {
		return nil, fmt.Errorf("the private part of %s, which signs, is not in the file: export it from where it is", chosen.PublicKey.KeyIdString())
	}
	switch key.PubKeyAlgo {
	case packet.PubKeyAlgoRSA, packet.PubKeyAlgoRSASignOnly:
		if bits, err := key.BitLength(); err != nil || bits < 2048 {
			return nil, fmt.Errorf("it is an RSA key of %d bits: use one of 2048 bits or more", bits)
		}
	case packet.PubKeyAlgoEdDSA, packet.PubKeyAlgoEd25519, packet.PubKeyAlgoEd448:
	default:
		return nil, errors.New("it cannot give the same signature twice, which instances that share a key must: use an RSA or Ed25519 key")
	}
	return key, nil
}

// newestPart returns the creation time of the newest part of a key that concerns
// signing. A clock before that time is wrong. Signing with an older part instead would
// make other signatures than the instances whose clocks are right.
func newestPart(entity *openpgp.Entity) time.Time {
	newest := entity.PrimaryKey.CreationTime
	consider := func(made time.Time) {
		if made.After(newest) {
			newest = made
		}
	}
	if self, _ := entity.PrimarySelfSignature(); self != nil {
		consider(self.CreationTime)
	}
	for _, sub := range entity.Subkeys {
		if sub.Sig.FlagsValid && sub.Sig.FlagSign {
			consider(sub.PublicKey.CreationTime)
			consider(sub.Sig.CreationTime)
		}
	}
	return newest
}

func inUTC(t time.Time) string { return t.UTC().Format(time.RFC3339) }
