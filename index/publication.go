package index

import (
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/index/changes"
	"github.com/caddy-terraform/caddy-terraform-registry/index/report"
)

// A snapshot is published at the end of each scan, and again when archives have been read.

// begin notes when the work began that the observer is told of next.
func (x *Index) begin(now time.Time) {
	if x.began.IsZero() {
		x.began = now
	}
}

// commit publishes a snapshot with the archives that have been read.
func (x *Index) commit() {
	x.scanning.Lock()
	defer x.scanning.Unlock()
	if x.ctx.Err() == nil {
		x.commitRead()
		x.shareRead()
	}
}

func (x *Index) commitRead() {
	done := x.queue.TakeFinished()
	if len(done) == 0 {
		x.queue.Update(nil, nil, false)
		return
	}
	listings := make(map[*listing]bool)
	for _, f := range done {
		f.Archive.apply(f.Result)
		listings[f.Archive.listing] = true
		if !f.Archive.Background {
			x.begin(time.Now())
			x.read++
		}
	}
	delete(listings, nil) // the results of other instances came first
	before := x.scanner.last
	x.publish(before, x.scanner.complete(x.ctx, slices.Collect(maps.Keys(listings))), done)
}

// publish publishes a snapshot. The archives that it lacks are queued. The observer is told
// of changes when their archives have been read, and of the first scan when all have been.
// read are the archives that have been read for it.
func (x *Index) publish(before, s *Snapshot, read []finished) {
	s.Read = x.read
	x.unreported.add(s.differs)
	replaced := x.snapshot.Swap(s)
	if replaced == nil {
		close(x.ready)
	}
	added, dropped, left := unread(before, s)
	x.queue.Update(added, dropped, before == nil)
	if replaced != nil { // wake the requests that wait for the next one
		close(replaced.later)
	}
	x.saving.Changed() // a crash does not lose the new records
	idle, current := x.queue.IsRead()
	x.logFaults(s, idle)
	archives := slices.DeleteFunc(slices.Clone(read), func(f finished) bool { return f.Archive.Background })
	isChange := left == 0 && before != nil
	if len(read) > 0 {
		isChange = slices.ContainsFunc(archives, func(f finished) bool { return !f.Archive.IsFirst() })
	}
	isNews := len(read) == 0 || len(archives) > 0 // and not only from the background
	if isNews && (idle || current && isChange) {
		took := time.Since(x.began)
		x.counts.Succeeded(took, s.Read, s.Recalled)
		x.report(x.reported, s, took)
		x.reported, x.unreported, x.began, x.read = s, newDifference(), time.Time{}, 0
		if !idle { // the remaining reading has begun already
			x.began = time.Now()
		}
	}
	if x.scanner.once {
		return
	}
	x.scanAgain(s.unreadable())
	again := s.newlyChosen(before)
	maps.Copy(again, s.untitled())
	if len(again) > 0 {
		x.request(again)
	}
	switch {
	case len(s.young) > 0:
		x.scanYoungLater(young)
	case len(x.unfinished) > 0:
		x.scanYoungLater(report.CopyRest)
	}
}

// newlyChosen returns folders that were not offered before, since another folder with the
// same address was. Keys are copied for the folders that are offered only.
func (s *Snapshot) newlyChosen(before *Snapshot) changes.Paths {
	chosen := make(changes.Paths)
	for a := range s.differs.groups {
		for _, e := range s.group(a).offered {
			g, report := before.group(a), e.folder.Report
			if last := g.entry(e.folder.Address.Hostname); g.entryOf(report) != nil && last.folder.Report != report {
				chosen[report] = true
			}
		}
	}
	return chosen
}

// unread returns the archives that are to be read for a snapshot and were not for the one
// before, which may be nil, and the other way round. left counts the unread archives of all
// addresses that differ.
func unread(before, now *Snapshot) (added, dropped []*job, left int) {
	archives := func(g *group, each func(*job)) {
		if g == nil {
			return
		}
		for _, e := range g.offered {
			if e.listing != nil {
				for _, a := range e.listing.walker.unread {
					each(a)
				}
			}
		}
	}
	known := make(map[*job]bool)
	if before != nil {
		for a := range now.differs.groups {
			archives(before.groups.Get(a), func(a *job) { known[a] = true })
		}
	}
	for a := range now.differs.groups {
		archives(now.groups.Get(a), func(a *job) {
			if !a.finished && !a.Background {
				left++
			}
			if !a.finished && (!known[a] || !a.IsQueued()) { // the same listing may have further ones
				added = append(added, a)
			}
			delete(known, a)
		})
	}
	for a := range known {
		dropped = append(dropped, a)
	}
	return added, dropped, left
}

// logFaults logs that archives or copies of keys could not be read. all reports whether
// everything has been read that could be.
func (x *Index) logFaults(s *Snapshot, all bool) {
	switch {
	case s.failed != "":
		x.logFailure(slog.LevelWarn, "some archives could not be read, they are tried again", s.failed)
	case s.keysFailed != "":
		x.logFailure(slog.LevelWarn, "the copies of keys cannot be read or written, they are tried again", s.keysFailed)
	case all:
		x.failing = ""
	}
}

// logFailure logs why a scan failed, once until a scan succeeds or fails for another reason:
// scans are repeated for as long as a store is down.
func (x *Index) logFailure(level slog.Level, message, reason string) {
	if failing := message + reason; failing != x.failing {
		x.failing = failing
		x.log(level, message, "error", reason)
	}
}
