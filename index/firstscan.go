package index

import (
	"context"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index/sharded"
)

// The first scan of a large tree takes seconds, and a client gives an attempt ten (checklist 25). So
// an address that is requested meanwhile is listed before others, and is offered at once if nothing
// else has to be known for that.

// SnapshotOf returns the latest snapshot. It waits for the first one, but only until what is offered
// at a place is known: then it returns a snapshot of nothing else. It returns nil if ctx ends before.
func (x *Index) SnapshotOf(ctx context.Context, p Place) *Snapshot {
	if s := x.Snapshot(); s != nil {
		return s
	}
	select {
	case <-ctx.Done():
	case <-x.scanner.walked:
		if first := x.scanner.first.Load(); first != nil {
			if s := first.snapshotOf(ctx, p); s != nil {
				return s
			}
		}
		select {
		case <-x.ready:
		case <-ctx.Done():
		}
	}
	return x.Snapshot()
}

// snapshotOf waits until the folders of a place have been listed, and not for others, which the user
// may not read. It returns nil if they depend on the rest of the scan, or if ctx or the scan ends.
func (l *listingRun) snapshotOf(ctx context.Context, p Place) *Snapshot {
	key, n := p.WithHostname(""), l.newSnapshot(l.keys)
	var entries []*entry
	for _, i := range l.numbers[key] {
		if a := l.folders[i].Address; a != p.Address && !(p.Merged && a == key) {
			continue
		}
		if !l.run.Await(ctx, i) || l.entries[i] == nil {
			return nil
		}
		if entries = append(entries, l.entries[i]); l.entries[i].unknown {
			n.unknown = append(n.unknown, l.folders[i])
		}
	}
	if l.ctx.Err() != nil { // a scan that is given up takes folders for empty
		return nil
	}
	for _, v := range l.way {
		for _, w := range v.way {
			if w.unknown {
				n.unknown = append(n.unknown, w.folder)
			}
		}
	}
	n.groups = new(sharded.Map[address.Address, *group])
	n.put(key, (*group)(nil).withEntries(entries, l.latestLedger()))
	return n
}
