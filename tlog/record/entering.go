package record

import (
	"context"
	"slices"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog"
)

// beginPatience is how long a log waits for folders and files that cannot be read before it
// counts as begun. Versions in them that become readable later are entered as offered. It
// begins anew whenever fewer packages are unread than ever before: the first read of a large
// tree may take many hours.
const beginPatience = time.Hour

// enter adds what is pending.
func (r *Recorder) enter(ctx context.Context, l *tlog.Log, s *index.Snapshot) (err error) {
	defer r.waiting()
	r.waiting()
	if !r.begun {
		if r.begun, err = l.Begun(ctx); err != nil {
			return err
		}
	}
	event := tlog.Offered
	if !r.begun {
		event = tlog.Found
	}
	e := &entering{Recorder: r, log: l, snapshot: s, event: event, rested: r.resting.next(time.Now())}
	for a := range r.pending {
		e.look(a)
		if len(e.leaves) >= chunk {
			if err := e.add(ctx); err != nil {
				return err
			}
		}
	}
	if err := e.add(ctx); err != nil {
		return err
	}
	r.resting = e.rested
	// Folders that rest all the time, such as one in which something works, do not keep the log from
	// beginning: what could be entered has been.
	if !r.begun && (len(r.pending) == 0 && s.Complete() || time.Since(r.began) >= beginPatience) {
		if err := l.SetBegun(ctx); err != nil {
			return err
		}
		r.begun = true
	}
	return nil
}

// entering collects leaves.
type entering struct {
	*Recorder
	log      *tlog.Log
	snapshot *index.Snapshot
	event    tlog.Event // of what is new
	rested   resting
	leaves   []tlog.Leaf
	done     []address.Address // pending no longer when the leaves have been added
}

// look collects the leaves of an address that the log has not.
func (e *entering) look(a address.Address) {
	rests := false
	for folder := range e.snapshot.Folders(a) {
		all, changes := leavesOf(e.snapshot, folder, e.options.Hostnames, e.event)
		news, rest := e.rested.split(e.log.News(all), changes)
		rests = rests || rest
		e.date(folder, news)
		for _, leaf := range news {
			if leaf.Event == tlog.Restored && !e.isRestored(leaf) {
				rests = true
				continue
			}
			e.leaves = append(e.leaves, leaf)
		}
		e.withdrawn.note(all, news)
	}
	if !rests {
		e.done = append(e.done, a)
	}
}

// date adds when packages were published at their origin. An origin is not believed about the
// future.
func (e *entering) date(folder address.Address, news []tlog.Leaf) {
	mirrored := func(l tlog.Leaf) bool { return l.Address.Hostname != "" && l.Event.HasPackage() }
	if e.options.Dates == nil || !slices.ContainsFunc(news, mirrored) {
		return
	}
	dates, now := e.options.Dates(folder), time.Now()
	for i, l := range news {
		if at := dates[l.Version]; mirrored(l) && at.Before(now) {
			news[i].Origin = at
		}
	}
}

// isRestored reports whether a version that the log has as withdrawn is offered again. A
// snapshot that is older than the withdrawal, which another instance may have entered, does
// not say so.
func (e *entering) isRestored(leaf tlog.Leaf) bool {
	at := e.log.WithdrawnAt(leaf.Address, leaf.Version)
	return e.withdrawn[version{leaf.Address, leaf.Version}] || e.snapshot.Taken.After(at.Add(time.Second))
}

// Withdrawn versions that snapshots of this process had, and that are not restored yet.
type withdrawn map[version]bool

type version struct {
	address address.Address
	version string
}

// note adds the versions that a snapshot has as withdrawn, and drops the versions that are
// restored on record: they are in all leaves, and not in the news.
func (w withdrawn) note(all, news []tlog.Leaf) {
	for _, leaf := range all {
		switch v := (version{leaf.Address, leaf.Version}); leaf.Event {
		case tlog.Withdrawn:
			w[v] = true
		case tlog.Restored:
			if w[v] && !slices.ContainsFunc(news, func(n tlog.Leaf) bool { return n.Event == leaf.Event && n.Version == leaf.Version }) {
				delete(w, v)
			}
		}
	}
}

func (e *entering) add(ctx context.Context) error {
	if err := e.log.Append(ctx, e.leaves...); err != nil {
		return err
	}
	for _, a := range e.done {
		delete(e.pending, a)
	}
	e.leaves, e.done = nil, nil
	e.waiting()
	e.wakeWaiting()
	return nil
}

func (r *Recorder) waiting() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state.Waiting = len(r.pending)
}
