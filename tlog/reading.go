package tlog

import (
	"context"

	sumdb "golang.org/x/mod/sumdb/tlog"
)

// OpenToRead reads a log that others add to, and changes nothing in it. Entries that are not
// signed yet count. The log must be closed, and nothing can be added to it.
func OpenToRead(ctx context.Context, o Options) (*Log, error) {
	o.Store, o.Anchor, o.Signers = unchanged{o.Store}, unchangedAnchor{o.Anchor}, nil
	return new(Opening).Open(ctx, o)
}

// showUnsigned makes the head of a log that is only read have all entries of the edge.
func (l *Log) showUnsigned(ctx context.Context, e *edge) error {
	root, err := sumdb.TreeHash(e.size, l.files.hashes(ctx, e))
	if err != nil {
		return err
	}
	l.head.Store(&Head{Checkpoint: Checkpoint{Origin: l.options.Origin, Size: e.size, Root: root}, edge: e})
	return nil
}

// An unchanged store takes no changes, and does not say so: full tiles are written by those who
// add to the log.
type unchanged struct{ Store }

func (unchanged) Create(context.Context, string, []byte) error  { return nil }
func (unchanged) Replace(context.Context, string, []byte) error { return nil }
func (unchanged) Remove(context.Context, string) error          { return nil }

type unchangedAnchor struct{ Anchor }

func (unchangedAnchor) Store(context.Context, []byte) error { return nil }
