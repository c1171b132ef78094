package access

import (
	"bufio"
	"bytes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"strconv"
	"sync"
	"time"
)

const (
	linkSecretSize = 32
	linkIDSize     = 4

	// linkFormat begins everything that is signed, so that no signature of another
	// format is accepted for this one. Format 1 signed a name of the registry and the
	// path of the URL.
	linkFormat = 2
)

// A linkSignature is the ID of a key and the HMAC. Its length encodes to base64 without
// bits left over, so a signature has only one spelling.
type linkSignature [linkIDSize + sha256.Size]byte

// A LinkKey signs links and verifies them. It is safe for concurrent use.
type LinkKey struct {
	id     [linkIDSize]byte
	secret func() [linkSecretSize]byte // a function, so that formatting the key does not reveal it
	states sync.Pool                   // of *linkState: keying an HMAC takes as long as signing

	sealing func() cipher.AEAD // see Sealer; made when it is first needed
}

// generateLinkKey returns a new random key.
func generateLinkKey() *LinkKey {
	var secret [linkSecretSize]byte
	rand.Read(secret[:]) // never fails
	return newLinkKey(secret)
}

func newLinkKey(secret [linkSecretSize]byte) *LinkKey {
	k := &LinkKey{secret: func() [linkSecretSize]byte { return secret }}
	// The ID is derived from the secret, so that it needs no bookkeeping. It does not
	// reveal the secret.
	sum := sha256.Sum256(append([]byte("terraform registry link key\x00"), secret[:]...))
	copy(k.id[:], sum[:])
	k.sealing = sync.OnceValue(func() cipher.AEAD { return newSealing(secret) })
	k.states.New = func() any {
		mac := hmac.New(sha256.New, secret[:])
		mac.Reset() // caches the keyed state
		return &linkState{mac: mac, writer: bufio.NewWriterSize(mac, 256)}
	}
	return k
}

// name identifies the key in logs. It is not secret: every link contains it.
func (k *LinkKey) name() string { return hex.EncodeToString(k.id[:]) }

// A linkState is a keyed HMAC with a buffer, through which strings of any length are
// written without allocating.
type linkState struct {
	mac    hash.Hash
	writer *bufio.Writer
	number []byte
	sum    []byte
}

// sign computes the signature. It is unambiguous as long as tree and file have no
// NUL in them, which Links.Verify checks.
func (k *LinkKey) sign(files, file string, expiry int64) (s linkSignature) {
	state := k.states.Get().(*linkState)
	state.mac.Reset()
	state.writer.WriteByte(linkFormat)
	state.writer.WriteString(files)
	state.writer.WriteByte(0)
	state.writer.WriteString(file)
	state.writer.WriteByte(0)
	state.number = strconv.AppendInt(state.number[:0], expiry, 10)
	state.writer.Write(state.number)
	state.writer.Flush()
	state.sum = state.mac.Sum(state.sum[:0])
	copy(s[:], k.id[:])
	copy(s[linkIDSize:], state.sum)
	k.states.Put(state)
	return s
}

// LinkKeys are the current key, which signs, and the previous one, whose links stay
// valid. They are immutable.
type LinkKeys struct {
	keys    []*LinkKey // the current one first
	rotated time.Time  // when the current key took over
}

// NewLinkKeys returns keys with one new key.
func NewLinkKeys(now time.Time) *LinkKeys {
	return &LinkKeys{keys: []*LinkKey{generateLinkKey()}, rotated: wholeSeconds(now)}
}

// rotate returns keys with a new current key. The old current key becomes the previous
// one, and older keys are dropped.
func (k *LinkKeys) rotate(now time.Time) *LinkKeys {
	return &LinkKeys{keys: []*LinkKey{generateLinkKey(), k.current()}, rotated: wholeSeconds(now)}
}

// wholeSeconds returns the precision of times in the document.
func wholeSeconds(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }

func (k *LinkKeys) current() *LinkKey { return k.keys[0] }

// findLinkKey returns the key with an ID among the loaded keys; nil: the registry has none. If it is not
// among them, another instance may just have made it, so they are reloaded, unless reload is nil.
// The error is ErrNoLinkKeys: the registry may have the key, and it cannot be loaded. IDs are public.
func findLinkKey(id [linkIDSize]byte, loaded func() *LinkKeys, reload func() bool) (*LinkKey, error) {
	keys, current := loaded(), true
	key := keys.find(id)
	if key == nil && reload != nil {
		current = reload()
		keys = loaded()
		key = keys.find(id)
	}
	if key == nil && (keys == nil || !current) {
		return nil, ErrNoLinkKeys
	}
	return key, nil
}

func (k *LinkKeys) find(id [linkIDSize]byte) *LinkKey {
	if k == nil {
		return nil
	}
	for _, key := range k.keys {
		if key.id == id {
			return key
		}
	}
	return nil
}

// linkKeysVersion is the version of the document, which instances of different
// releases share.
const linkKeysVersion = 1

// errLaterLinkKeys is wrapped by the error for a document that a later release has
// written. Such a document is not damaged, unlike other documents that cannot be read.
var errLaterLinkKeys = errors.New("a later release wrote it")

type linkKeysDocument struct {
	Version int      `json:"version"`
	Rotated string   `json:"rotated"`
	Keys    []string `json:"keys"` // the current one first
}

// encode returns the document that decodeLinkKeys reads. It contains the secrets.
func (k *LinkKeys) encode() []byte {
	d := linkKeysDocument{Version: linkKeysVersion, Rotated: k.rotated.Format(time.RFC3339)}
	for _, key := range k.keys {
		secret := key.secret()
		d.Keys = append(d.Keys, base64.RawURLEncoding.EncodeToString(secret[:]))
	}
	document, _ := json.Marshal(d) // never fails for strings
	return append(document, '\n')
}

// decodeLinkKeys reads a document. Its errors do not quote the document, since it
// contains keys.
func decodeLinkKeys(document []byte) (*LinkKeys, error) {
	// The version is checked first: a later one may have members unknown here.
	var v struct {
		Version int `json:"version"`
	}
	if json.Unmarshal(document, &v) != nil {
		return nil, errors.New("it is not the JSON of a set of link keys")
	}
	if v.Version > linkKeysVersion {
		return nil, fmt.Errorf("%w, in version %d, and this release knows %d only: upgrade this instance", errLaterLinkKeys, v.Version, linkKeysVersion)
	}
	if v.Version != linkKeysVersion {
		return nil, fmt.Errorf("its version is %d", v.Version)
	}
	var d linkKeysDocument
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.DisallowUnknownFields()
	if decoder.Decode(&d) != nil {
		return nil, errors.New("it has members that a set of link keys does not have")
	}
	rotated, err := time.Parse(time.RFC3339, d.Rotated)
	if year := rotated.UTC().Year(); err != nil || year < 1970 || year > 9999 {
		return nil, errors.New("it does not say when the keys were rotated")
	}
	if len(d.Keys) != 1 && len(d.Keys) != 2 {
		return nil, fmt.Errorf("it has %d keys instead of one or two", len(d.Keys))
	}
	k := &LinkKeys{rotated: wholeSeconds(rotated)}
	for i, text := range d.Keys {
		secret, err := base64.RawURLEncoding.Strict().DecodeString(text)
		if err != nil || len(secret) != linkSecretSize {
			return nil, fmt.Errorf("key %d is not %d bytes in base64", i+1, linkSecretSize)
		}
		k.keys = append(k.keys, newLinkKey([linkSecretSize]byte(secret)))
	}
	if len(k.keys) == 2 && k.keys[0].secret() == k.keys[1].secret() {
		return nil, errors.New("its two keys are the same")
	}
	return k, nil
}
