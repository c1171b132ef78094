package index

import (
	"context"
	"log/slog"
	"slices"

	"github.com/caddy-terraform/caddy-terraform-registry/index/layout"
	"github.com/caddy-terraform/caddy-terraform-registry/index/memo"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// recallShared copies the results of other instances for archives that would have to be
// read. It returns the archives that are left to be read.
func (s *scan) recallShared(listings []*listing) (unread []*job) {
	for _, l := range listings {
		unread = append(unread, l.walker.unread...)
	}
	if s.sharing == nil || len(unread) == 0 {
		return unread
	}
	wanted, known := make(map[string]*job), make(map[*job]bool)
	for _, a := range unread {
		wanted[a.ReportPath()] = a
	}
	s.sharing.Load(s.ctx, func(path string, d memo.Record) (taken bool) {
		a := wanted[path]
		if known[a] { // another instance has read it too
			return true
		}
		if a == nil || d.Stamp != a.Stamp || a.finished || d.IsOutdated(a.Address.IsModule()) {
			return false
		}
		d.Earlier = s.earlier(a, d, s.now)
		s.memo.Adopt(&a.Location, d)
		if a.IsQueued() { // it may be being read
			return true
		}
		a.recallModule(d)
		a.apply(readResult{record: d})
		a.listing, known[a] = nil, true
		return true
	})
	for _, l := range listings {
		all := len(l.walker.unread)
		l.walker.unread = slices.DeleteFunc(l.walker.unread, func(a *job) bool { return known[a] })
		l.walker.recalled += all - len(l.walker.unread)
	}
	return slices.DeleteFunc(unread, func(a *job) bool { return known[a] })
}

// startSharing begins to share the memo, if there is a Shared memo.
func (x *Index) startSharing(recalled bool) {
	if x.options.Shared == nil {
		return
	}
	x.scanner.sharing = memo.NewSharing(&x.scanner.memo, x.options.Shared, func(message, reason string) {
		x.log(slog.LevelWarn, message, "reason", reason)
	})
	if x.scanner.memo.StartLearning(); recalled {
		return
	}
	// The records include the contents of small documents.
	x.scanner.sharing.Load(x.ctx, func(path string, d memo.Record) (taken bool) {
		x.scanner.memo.AdoptNewer(tree.LocationOf(path), d)
		return true
	})
}

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
			return slices.ContainsFunc(s.group(f.Address).entries, (*entry).isUnread)
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
