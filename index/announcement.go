package index

import (
	"slices"
	"time"

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
	x.announcing.Lock()
	defer x.announcing.Unlock()
	if x.sharingEnded {
		return
	}
	x.sharings.Go(func() {
		stored := sharing != nil && sharing.Store(x.sharingCtx)
		for _, folders := range changed {
			if o := x.observer.Load(); o != nil && o.Changed != nil {
				o.Changed(folders)
			}
		}
		if stored && x.ctx.Err() == nil {
			sharing.Tidy(x.sharingCtx)
		}
	})
}

// shareRead shares the results, and announces the folders whose archives have been read.
func (x *Index) shareRead() { x.share(x.takeRead(x.scanner.last)) }

// takeChanged returns what may have changed since the last scan, the last Change, and the
// number of calls of Changed until now.
func (x *Index) takeChanged() (changed stale, last Change, calls int) {
	x.announcing.Lock()
	defer x.announcing.Unlock()
	changed, x.stale = x.stale, make(stale)
	return changed, x.changes, len(x.unscanned)
}

// hasScanned notes that a scan has seen the folders of so many calls of Changed.
func (x *Index) hasScanned(calls int) {
	x.announcing.Lock()
	defer x.announcing.Unlock()
	x.unannounced = append(x.unannounced, x.unscanned[:calls]...)
	x.unscanned = slices.Clone(x.unscanned[calls:])
}

// takeRead returns the folders that a scan has seen and whose archives have been read, for
// each call of Changed.
func (x *Index) takeRead(s *Snapshot) (folders [][]string) {
	_, current := x.queue.IsRead()
	x.announcing.Lock()
	defer x.announcing.Unlock()
	x.unannounced = slices.DeleteFunc(x.unannounced, func(changed []string) bool {
		isUnread := len(changed) == 0 && !current || slices.ContainsFunc(changed, s.isUnread)
		if !isUnread {
			folders = append(folders, changed)
		}
		return !isUnread
	})
	return folders
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

// closePatience is how long Close waits for a slow storage.
const closePatience = 2 * time.Second

// finishSharing shares the results and announces all changes that have not been announced,
// so that a restart loses neither.
func (x *Index) finishSharing() {
	defer x.stopSharing()
	x.prepare.Do(func() {}) // sharing that has not begun does not begin any more
	x.announcing.Lock()
	folders := slices.Concat(x.unannounced, x.unscanned)
	x.unannounced, x.unscanned = nil, nil
	x.announcing.Unlock()
	x.share(folders)
	x.announcing.Lock()
	x.sharingEnded = true
	x.announcing.Unlock()
	finished := make(chan struct{})
	go func() {
		x.sharings.Wait()
		close(finished)
	}()
	select {
	case <-finished:
	case <-time.After(closePatience):
	}
}
