package index

import (
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/signing"
)

// Options say what an Index looks at and how it judges it.
type Options struct {
	// Open opens the tree. It is called for every scan, so that a root
	// replaced by a rename or a symlink swap is seen.
	Open func() (Tree, error)

	// Signer signs what publishers did not. Nil: such releases are offered
	// by the mirror only.
	Signer Signer

	// RequireSignatures withholds releases their publisher did not sign.
	RequireSignatures bool

	// Rescan is the time between two scans. Zero: only when asked, or when
	// something changes.
	Rescan time.Duration

	// Watch has a change scanned at once, where the tree is on the local disk.
	Watch bool

	// Paths are where the tree begins on the local disk. With Watch they may
	// become other directories, by a symlink that is pointed elsewhere or one
	// that is made anew, which is noticed too.
	Paths []string

	// Store keeps across restarts what reading archives gave. Nil: nothing is
	// kept. Identity names the tree in it.
	Store    Store
	Identity string

	// Workers is how many archives are read at once. Zero: one a core.
	Workers int

	// Progress hears of every archive that has been read, from several
	// goroutines. May be nil. An Index has its own.
	Progress func(Progress)

	// Now is the clock. Nil: time.Now.
	Now func() time.Time
}

func (o Options) now() time.Time {
	if o.Now != nil {
		return o.Now()
	}
	return time.Now()
}

// A Signer signs the SHA256SUMS documents of releases that their publishers did
// not sign; usually it is a *signing.Key.
type Signer interface {
	// PublicKey is the key clients verify the signatures with.
	PublicKey() signing.PublicKey

	// Sign returns a binary detached signature over document. The same document
	// always gives the same bytes, on every instance that holds the key.
	Sign(document []byte) ([]byte, error)
}
