package tlog

import "context"

// OpenToRead reads a log that others add to, and changes nothing in it. Entries that are not
// signed yet count. The log must be closed, and nothing can be added to it.
func OpenToRead(ctx context.Context, o Options) (*Log, error) {
	o.Store, o.Anchor, o.Signers = unchanged{o.Store}, unchangedAnchor{o.Anchor}, nil
	return new(Opening).Open(ctx, o)
}

// An unchanged store takes no changes, and does not say so: full tiles are written by those who
// add to the log.
type unchanged struct{ Store }

func (unchanged) Create(context.Context, string, []byte) error  { return nil }
func (unchanged) Replace(context.Context, string, []byte) error { return nil }
func (unchanged) Remove(context.Context, string) error          { return nil }

type unchangedAnchor struct{ Anchor }

func (unchangedAnchor) Store(context.Context, []byte) error { return nil }
