package index

import (
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/index/changes"
	"github.com/caddy-terraform/caddy-terraform-registry/index/watch"
)

// Scans follow each other for as long as the Index lives: when something has changed, after some
// time, and soon if something could not be read or may still change.

// A scan that fails as a whole, because the root is gone, is repeated earlier than the next
// one is due.
const (
	firstRetry = time.Second
	lastRetry  = 30 * time.Second
)

// young is the time until the next scan if files were too young to be remembered or offered:
// slightly more than module folders must stay unchanged.
const young = folderRest + 50*time.Millisecond

func (x *Index) run() {
	for {
		_, _ = x.scan(x.ctx, nil, false) // the error has been logged
		w, scanned := x.watcher()
		var tick <-chan time.Time
		if x.options.Rescan > 0 { // however many folders are scanned meanwhile
			tick = time.After(time.Until(scanned.Add(x.untilRescan(w.IsBlind()))))
		}
		select {
		case <-x.ctx.Done():
			return
		case <-tick:
			x.Refresh()
		case <-x.hints:
		case <-w.Changes():
			w.Settle(x.ctx, x.hints)
			x.request(w.Take())
		}
	}
}

// untilRescan returns the time until everything is scanned again. blind reports whether some
// changes raise no events. A volume that is mounted raises none either, and its mount point is empty
// until then.
func (x *Index) untilRescan(blind bool) time.Duration {
	latest := x.Snapshot()
	isEmpty := latest != nil && latest.isEmpty()
	if !x.options.Watch || !blind && !isEmpty {
		return x.options.Rescan
	}
	return min(watch.PollAfter(time.Duration(x.took.Load())), x.options.Rescan)
}

// watcher returns the Watcher, and when a scan of everything has ended last.
func (x *Index) watcher() (w *watch.Watcher, scanned time.Time) {
	x.scanning.Lock()
	defer x.scanning.Unlock()
	return x.scanner.watch, x.scanned
}

// startWatching tries to watch the tree, before each scan until it succeeds: a system may
// have reached its limits only for a while. It reports whether it has begun to.
func (x *Index) startWatching() (started bool) {
	if !x.options.Watch || x.scanner.watch != nil {
		return false
	}
	w, err := x.watch(x.ctx, x.warnPolling)
	if err == nil {
		x.scanner.watch, x.polling = w, ""
		return true
	}
	if reason := err.Error(); reason != x.polling {
		x.polling = reason
		x.warnPolling(err)
	}
	return false
}

func (x *Index) warnPolling(err error) {
	x.log(slog.LevelWarn, "changes are not noticed at once, but when the tree is scanned again", "reason", err.Error(), "rescan", x.options.Rescan)
}

// scanYoungLater has a scan of the files follow that are too young, or may still be written. If one
// will follow already, it follows at the earlier of both times: a new folder does not wait as long
// as a file that is copied slowly.
func (x *Index) scanYoungLater(after time.Duration) {
	at := time.Now().Add(after)
	switch {
	case x.youngScan == nil:
		x.youngScan, x.youngScanAt = time.AfterFunc(after, x.scanYoung), at
	case at.Before(x.youngScanAt): // so the timer has not ended
		x.youngScan.Reset(after)
		x.youngScanAt = at
	}
}

// scanYoung requests the scan that scanYoungLater has announced.
func (x *Index) scanYoung() {
	x.scanning.Lock()
	defer x.scanning.Unlock()
	x.youngScan = nil
	x.request(changes.Only(slices.Concat(x.scanner.last.young, slices.Collect(maps.Keys(x.unfinished)))))
}

// stopYoungScan ends the timer of an Index that is being closed. A scan that has begun ends first;
// none begins afterwards, so there will be no other timer.
func (x *Index) stopYoungScan() {
	x.scanning.Lock()
	defer x.scanning.Unlock()
	if x.youngScan != nil {
		x.youngScan.Stop()
	}
}

// scanAgain has a scan of what could not be read follow, earlier than the next one is due.
func (x *Index) scanAgain(unreadable changes.Paths) {
	switch {
	case len(unreadable) == 0:
		x.retry = firstRetry
	case x.retrying != nil:
		maps.Copy(x.retrying, unreadable)
	default:
		x.retrying = maps.Clone(unreadable)
		time.AfterFunc(x.retry, func() {
			x.scanning.Lock()
			defer x.scanning.Unlock()
			x.request(x.retrying)
			x.retrying = nil
		})
		x.retry = min(2*x.retry, lastRetry)
	}
}

// unreadable returns what could not be read, and may be readable a moment later.
func (s *Snapshot) unreadable() changes.Paths {
	if s.keysFailed != "" { // releases of the namespace may wait for it
		return changes.Everything()
	}
	return changes.Only(s.faulty)
}
