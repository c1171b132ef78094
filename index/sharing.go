package index

import (
	"log/slog"
	"slices"
	"time"

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
	records := s.sharing.Load(s.ctx)
	if len(records) == 0 {
		return unread
	}
	known := make(map[*job]bool)
	for _, a := range unread {
		path := a.ReportPath()
		d, ok := records[path]
		if !ok || d.Stamp != a.Stamp || a.finished || a.isOutdated(d) {
			continue
		}
		delete(records, path)
		d.Earlier = s.earlier(a, d, s.now)
		s.memo.Adopt(&a.Location, d)
		a.apply(readResult{record: d})
		known[a] = true
	}
	s.sharing.Keep(records)
	for _, l := range listings {
		all := len(l.walker.unread)
		l.walker.unread = slices.DeleteFunc(l.walker.unread, func(a *job) bool { return known[a] })
		l.walker.recalled += all - len(l.walker.unread)
	}
	return slices.DeleteFunc(unread, func(a *job) bool { return known[a] })
}

// share stores the results of this instance for the other instances, and then announces the
// folders it has changed, so that they do not look for digests that are not there yet. It
// returns immediately: no scan waits for a storage.
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

// closePatience is how long Close waits for a slow storage.
const closePatience = 2 * time.Second

// finishSharing shares the results and announces the changes since the last scan, so that a
// restart loses neither.
func (x *Index) finishSharing() {
	defer x.stopSharing()
	x.prepare.Do(func() {}) // sharing that has not begun does not begin any more
	x.takeChanged()
	x.share(x.takeUnread())
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

// takeChanged returns what may have changed since the last scan, and the last Change. The
// folders that Changed was called with wait until their archives have been read.
func (x *Index) takeChanged() (changed stale, last Change) {
	x.announcing.Lock()
	defer x.announcing.Unlock()
	changed, x.stale = x.stale, make(stale)
	x.unread, x.unannounced = append(x.unread, x.unannounced...), nil
	return changed, x.changes
}

// shareRead shares the results, and announces the changes whose archives have been read.
func (x *Index) shareRead() {
	if _, current := x.queue.IsRead(); current {
		x.share(x.takeUnread())
		return
	}
	x.share(nil)
}

// takeUnread returns the folders that have not been announced yet.
func (x *Index) takeUnread() (folders [][]string) {
	x.announcing.Lock()
	defer x.announcing.Unlock()
	folders, x.unread = x.unread, nil
	return folders
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
	for path, d := range x.scanner.sharing.Load(x.ctx) {
		x.scanner.memo.Adopt(tree.LocationOf(path), d)
	}
}
