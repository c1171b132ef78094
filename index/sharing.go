package index

import (
	"log/slog"
	"slices"

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
