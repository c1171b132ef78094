package access

import (
	"crypto/subtle"
	"encoding/binary"
	"fmt"
	"time"
)

// Tokens are the tokens of a file at one moment. They do not change.
type Tokens struct {
	tokens   []token
	byPrefix map[uint64][]int
}

// A token is one line of the file.
type token struct {
	TokenEntry
	digest tokenDigest
	line   int
}

func (d *tokenDigest) prefix() uint64 { return binary.BigEndian.Uint64(d[:]) }

func newTokens(tokens []token) *Tokens {
	t := &Tokens{tokens: tokens, byPrefix: make(map[uint64][]int, len(tokens))}
	for i := range tokens {
		prefix := tokens[i].digest.prefix()
		t.byPrefix[prefix] = append(t.byPrefix[prefix], i)
	}
	return t
}

// Find tells whose token it is. The error is ErrTokenUnknown, or wraps
// ErrTokenExpired and says which one has expired.
//
// How long it takes does not help in guessing. Only digests are compared, never
// secrets: a first part of the digest, by the map, leads to its token, and the
// whole digest is compared in constant time. Whoever could measure the map would
// learn a part of a digest, and from a digest there is no way back to a secret
// that nobody can guess.
func (t *Tokens) Find(secret string, now time.Time) (Subject, error) {
	digest := digestToken(secret)
	found := -1
	for _, i := range t.byPrefix[digest.prefix()] {
		found = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(digest[:], t.tokens[i].digest[:]), i, found)
	}
	if found < 0 {
		return Subject{}, ErrTokenUnknown
	}
	entry := &t.tokens[found].TokenEntry
	if entry.Expired(now) {
		return Subject{}, fmt.Errorf("%w: %s, at %s", ErrTokenExpired, entry.Name, entry.Expires.Format(time.RFC3339))
	}
	return Subject{ID: entry.Name, Groups: entry.Groups}, nil
}

// Entries lists the tokens in the order of the file.
func (t *Tokens) Entries() []TokenEntry {
	entries := make([]TokenEntry, len(t.tokens))
	for i := range t.tokens {
		entries[i] = t.tokens[i].TokenEntry
	}
	return entries
}
