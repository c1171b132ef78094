package access

import (
	"bufio"
	"bytes"
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

	// linkFormat begins everything that is signed, so that the signature of
	// another format, or of anything else, is never taken for one of this. Format 1
	// signed a name of the registry and the path of the URL.
	linkFormat = 2
)

// A linkSignature is what a link carries: the ID of its key, and the HMAC. It
// has a length that base64 encodes without bits left over, so a signature has
// one spelling only.
type linkSignature [linkIDSize + sha256.Size]byte

// A LinkKey signs links and verifies them. It is safe for concurrent use.
type LinkKey struct {
	id     [linkIDSize]byte
	secret func() [linkSecretSize]byte // in a function, which nothing prints
	states sync.Pool                   // of *linkState: keying an HMAC takes as long as signing
}

// NewLinkKey returns a new random key.
func NewLinkKey() *LinkKey {
	var secret [linkSecretSize]byte
	rand.Read(secret[:]) // which never fails
	return newLinkKey(secret)
}

func newLinkKey(secret [linkSecretSize]byte) *LinkKey {
	k := &LinkKey{secret: func() [linkSecretSize]byte { return secret }}
	// Derived from the key, the ID needs no bookkeeping. It tells nothing of it.
	sum := sha256.Sum256(append([]byte("terraform registry link key\x00"), secret[:]...))
	copy(k.id[:], sum[:])
	k.states.New = func() any {
		mac := hmac.New(sha256.New, secret[:])
		mac.Reset() // it remembers its keyed state from here on
		return &linkState{mac: mac, writer: bufio.NewWriterSize(mac, 256)}
	}
	return k
}

// ID names the key in logs. It is no secret: every link has it.
func (k *LinkKey) ID() string { return hex.EncodeToString(k.id[:]) }

// A linkState is an HMAC that has its key, and a buffer to write strings
// through, however long they are.
type linkState struct {
	mac    hash.Hash
	writer *bufio.Writer
	number []byte
	sum    []byte
}

// sign computes the signature. What is signed reads in one way only as long as
// tree and file have no NUL in them, which Verify sees to.
func (k *LinkKey) sign(tree, file string, expiry int64) (s linkSignature) {
	state := k.states.Get().(*linkState)
	state.mac.Reset()
	state.writer.WriteByte(linkFormat)
	state.writer.WriteString(tree)
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

// LinkKeys are the keys of a registry's links: the current one, which signs,
// and the previous one, so that the links which it has signed stay good. They
// are immutable.
type LinkKeys struct {
	keys    []*LinkKey // the current one first
	rotated time.Time
}

// NewLinkKeys returns a set of one new key.
func NewLinkKeys(now time.Time) *LinkKeys {
	return &LinkKeys{keys: []*LinkKey{NewLinkKey()}, rotated: wholeSeconds(now)}
}

// Rotate returns a set with a new current key. The one that was current is the
// previous one then, and older ones are dropped.
func (k *LinkKeys) Rotate(now time.Time) *LinkKeys {
	return &LinkKeys{keys: []*LinkKey{NewLinkKey(), k.Current()}, rotated: wholeSeconds(now)}
}

// wholeSeconds is what the document keeps of a time.
func wholeSeconds(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }

// Current returns the key that signs.
func (k *LinkKeys) Current() *LinkKey { return k.keys[0] }

// Rotated is when the current key took over.
func (k *LinkKeys) Rotated() time.Time { return k.rotated }

// verify tells whether one of the keys has signed that, and whether there is
// the key at all that is said to have.
func (k *LinkKeys) verify(s *linkSignature, tree, file string, expiry int64) (genuine, known bool) {
	for _, key := range k.keys {
		if [linkIDSize]byte(s[:linkIDSize]) != key.id {
			continue // an ID is public, so this may take as long as it takes
		}
		known = true
		want := key.sign(tree, file, expiry)
		if hmac.Equal(s[:], want[:]) {
			return true, true
		}
	}
	return false, known
}

// linkKeysVersion is that of the document, which instances of different
// releases share.
const linkKeysVersion = 1

type linkKeysDocument struct {
	Version int      `json:"version"`
	Rotated string   `json:"rotated"`
	Keys    []string `json:"keys"` // the current one first
}

// Encode returns the document that DecodeLinkKeys reads. It has the keys in it.
func (k *LinkKeys) Encode() []byte {
	d := linkKeysDocument{Version: linkKeysVersion, Rotated: k.rotated.Format(time.RFC3339)}
	for _, key := range k.keys {
		secret := key.secret()
		d.Keys = append(d.Keys, base64.RawURLEncoding.EncodeToString(secret[:]))
	}
	document, _ := json.Marshal(d) // strings always encode
	return append(document, '\n')
}

// DecodeLinkKeys reads a set of keys. Its errors quote nothing of the document,
// as that could be a key.
func DecodeLinkKeys(document []byte) (*LinkKeys, error) {
	// The version goes first, as a later one may have members unknown here.
	var v struct {
		Version int `json:"version"`
	}
	if json.Unmarshal(document, &v) != nil {
		return nil, errors.New("it is not the JSON of a set of link keys")
	}
	if v.Version != linkKeysVersion {
		return nil, fmt.Errorf("its version is %d: this release knows %d only", v.Version, linkKeysVersion)
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
		return nil, fmt.Errorf("it has %d keys: one or two are right", len(d.Keys))
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
