package tlog

import (
	"context"
	"slices"
	"time"

	"golang.org/x/mod/sumdb/note"
)

// MaxKeys is how many keys may sign a log at a time. Readers keep no more.
const MaxKeys = 8

// Keys sign a log at one time. While keys rotate there are several.
type Keys struct {
	// Signers sign checkpoints, the newest key first. Without one, the log is only read.
	Signers []note.Signer

	// Verifiers are of all keys that may have signed the checkpoints in the Store and the
	// Anchor, also of keys that do not sign any more.
	Verifiers []note.Verifier

	// Public are the keys that sign, as others know them, the newest first.
	Public []PublicKey
}

// A PublicKey is a key by which others know a log.
type PublicKey struct {
	Line  string    // ORIGIN+HASH+KEY
	Until time.Time // when it ceases to sign; zero: it is the newest key
}

// haveSigned reports whether a checkpoint has the signatures of all keys that sign now.
func (k *Keys) haveSigned(checkpoint []byte) bool {
	for _, signer := range k.Signers {
		own := slices.IndexFunc(k.Verifiers, func(v note.Verifier) bool { return v.KeyHash() == signer.KeyHash() })
		if own < 0 {
			return false
		}
		if _, err := note.Open(checkpoint, note.VerifierList(k.Verifiers[own])); err != nil {
			return false
		}
	}
	return true
}

// rotate takes over the keys that sign now.
func (l *Log) rotate(ctx context.Context) error {
	if l.options.Rotated == nil {
		return nil
	}
	ctx, cancel := limited(ctx)
	defer cancel()
	keys, err := l.options.Rotated(ctx, *l.keys.Load())
	if err != nil {
		return err
	}
	l.keys.Store(&keys)
	return nil
}

// Public returns the keys by which others know the log, the newest first.
func (l *Log) Public() []PublicKey { return l.keys.Load().Public }
