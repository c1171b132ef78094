package index

import (
	"context"
	"runtime"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/index/keys"
	"github.com/caddy-terraform/caddy-terraform-registry/index/memo"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// Options say which tree an Index scans, and by which rules.
type Options struct {
	// Open opens the tree. It is called for every scan, so that a root
	// replaced by a rename or a symlink swap is seen.
	Open func() (tree.Tree, error)

	// Listed opens a tree in a Bucket instead of Open. The folders passed to Changed and
	// Refresh are listed again; Rescan and the periodic scan list everything again.
	Listed ListedTree

	// Signer signs the releases that publishers did not sign. Nil: only the
	// mirror offers them.
	Signer Signer

	// RequireSignatures withholds releases their publisher did not sign.
	RequireSignatures bool

	// IgnoreMetadata ignores registry.hcl files, so that withdrawn versions are found like
	// all others.
	IgnoreMetadata bool

	// Rescan is the time between two scans. Zero: the tree is scanned only on request, or
	// when something changes.
	Rescan time.Duration

	// Watch starts a scan when files change, if the tree is on the local disk.
	Watch bool

	// Paths are where the tree begins on the local disk. Watch also notices when one of them
	// becomes another directory, by a symlink or a rename.
	Paths []string

	// Store keeps the memo of digests across restarts. Nil: nothing is kept.
	// Identity names the tree in it.
	Store    memo.Store
	Identity string

	// Shared has the digests that instances with the same tree share. Nil: nothing is
	// shared.
	Shared memo.Shared

	// KeyCopies keep copies of keys files, for when the files are gone. Nil: there are no
	// copies, and a namespace whose keys file is gone has no keys.
	KeyCopies keys.Copies

	// Ledger is what Scan compares versions with; nil: they are not compared. For an Index,
	// see SetLedger.
	Ledger Ledger

	// Digests have packages that were read outside of scans. Nil: Scan has none; an Index
	// has its own.
	Digests *Digests

	// Workers is how many archives are read at once. Zero: one per core.
	Workers int

	// Progress is called by Scan after each archive, from several goroutines. It may be nil.
	// An Index has its own.
	Progress func(Progress)

	// Now is the clock. Nil: time.Now.
	Now func() time.Time
}

// A ListedTree is a tree of a listing that is kept from one scan to the next. After Forget of
// some folders, Open lists these again, and after Forget of none everything.
type ListedTree interface {
	Open(ctx context.Context) (tree.Tree, error)
	Forget(folders ...string)
}

func (o Options) open(ctx context.Context) (tree.Tree, error) {
	if o.Listed != nil {
		return o.Listed.Open(ctx)
	}
	return o.Open()
}

func (o Options) now() time.Time {
	if o.Now != nil {
		return o.Now()
	}
	return time.Now()
}

// workers returns how many archives are read, or folders walked, at once.
func (o Options) workers() int {
	if o.Workers > 0 {
		return o.Workers
	}
	return runtime.GOMAXPROCS(0)
}
