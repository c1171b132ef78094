package index

import (
	"context"
	"slices"

	"github.com/caddy-terraform/caddy-terraform-registry/index/layout"
)

// Other instances are told of the folders that this process has changed. They are told of a
// folder when its archives have been read, and when the results are where they look for
// them: they need not read the archives again.

// share stores the results of this instance for the other instances, and then announces the
// folders it has changed. It returns immediately: no scan waits for a storage.
func (x *Index) share(changed [][]string) {
	sharing := x.scanner.sharing
	if sharing == nil && len(changed) == 0 {
		return
	}
	x.background.Go(func(ctx context.Context) {
		stored := sharing != nil && sharing.Store(ctx)
		for _, folders := range changed {
			if o := x.observer.Load(); o != nil && o.Changed != nil {
				o.Changed(folders)
			}
		}
		if stored && x.ctx.Err() == nil {
			sharing.Tidy(ctx)
		}
	})
}

// shareRead shares the results, and announces the folders whose archives have been read.
func (x *Index) shareRead() {
	_, current := x.queue.IsRead()
	x.share(x.changes.TakeRead(func(folders []string) bool {
		return len(folders) == 0 && !current || slices.ContainsFunc(folders, x.scanner.last.isUnread)
	}))
}

// isUnread reports whether archives in the folder of an address, by its path in the report,
// are still to be read.
func (s *Snapshot) isUnread(report string) bool {
	for _, root := range []layout.Folder{layout.Providers(s.tree), layout.Modules(s.tree)} {
		if f, ok := root.FolderOf(report); ok {
			return slices.ContainsFunc(s.group(f.Address).all(), (*entry).isUnread)
		}
	}
	return false
}

// isUnread reports whether archives of an entry are still to be read.
func (e *entry) isUnread() bool {
	return e.listing != nil && slices.ContainsFunc(e.listing.walker.unread, func(a *job) bool { return !a.finished && !a.Background })
}

// Flush shares the results, and waits until the folders whose archives have been read are announced.
// It waits for a slow storage only for a moment. Scans go on.
func (x *Index) Flush() {
	select {
	case <-x.ready: // sharing has begun, if there is any
		if sharing := x.scanner.sharing; sharing != nil {
			x.background.Go(func(ctx context.Context) { sharing.Store(ctx) })
		}
	default:
	}
	x.background.Wait()
}

// finishSharing shares the results and announces all changes that have not been announced,
// so that a restart loses neither.
func (x *Index) finishSharing() {
	x.prepare.Do(func() {}) // sharing that has not begun does not begin any more
	x.share(x.changes.End())
	x.background.End()
}
