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
// under an address, with and without any HOSTNAME, is known: then it returns a snapshot of nothing
// else. It returns nil if ctx ends before.
func (x *Index) SnapshotOf(ctx context.Context, a address.Address) *Snapshot {
	if s := x.Snapshot(); s != nil {
		return s
	}
	select {
	case <-ctx.Done():
	case <-x.scanner.walked:
		if first := x.scanner.first.Load(); first != nil {
			if s := first.snapshotOf(ctx, a); s != nil {
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

// snapshotOf waits until the folders of an address have been listed, under any HOSTNAME. It returns
// nil if what they offer depends on the rest of the scan, or if ctx or the scan ends before.
func (l *listingRun) snapshotOf(ctx context.Context, a address.Address) *Snapshot {
	key, n := a.WithHostname(""), l.newSnapshot(l.keys)
	var entries []*entry
	for _, i := range l.numbers[key] {
		if !l.run.Await(ctx, i) || l.entries[i] == nil {
			return nil
		}
		e := l.entries[i]
		if entries = append(entries, e); e.unknown {
			n.unknown = append(n.unknown, e.folder.Folder)
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
