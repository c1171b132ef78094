package index

import (
	"cmp"
	"io/fs"
	"log/slog"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index/keys"
	"github.com/caddy-terraform/caddy-terraform-registry/index/offer"
	"github.com/caddy-terraform/caddy-terraform-registry/index/report"
	"github.com/caddy-terraform/caddy-terraform-registry/index/scanlog"
	"github.com/caddy-terraform/caddy-terraform-registry/registryhcl"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// An Observer is notified of an Index's scans. An Index may outlive the configuration that
// created it, so its observer can be replaced.
type Observer struct {
	// Logger logs scans, and changes since the previous scan. It may be nil.
	Logger *slog.Logger

	// Offered is called before Scanned with the addresses, without HOSTNAME, of which something
	// differs since the last call for any observer; nil: since the first scan. It may be nil.
	Offered func(now *Snapshot, changed []address.Address)

	// Scanned is called after each successful scan. before is the previous snapshot, nil
	// after the first scan. Scanned may be nil.
	Scanned func(before, now *Snapshot, took time.Duration)

	// Withheld is called after Scanned for each new problem, unless the file may still be
	// being written, or waits until it is on record. It may be nil.
	Withheld func(Problem)

	// KeysChanged is called after Scanned for each keys file that has changed. It may be
	// nil.
	KeysChanged func(keys.Change)

	// Rewritten is called after Scanned for each file whose bytes have changed since it was
	// first offered, once in the life of an Index. It may be nil.
	Rewritten func(ChangedVersion)

	// Changed is called with the folders in which this process has changed files, so that
	// other instances can be told. It may be nil.
	Changed func(folders []string)
}

// Stats returns the counts of the index.
func (x *Index) Stats() Stats {
	s := x.counts.Stats()
	s.Verified = x.scanner.memo.Verified.Load()
	return s
}

// Observe replaces the observer. It may be nil.
func (x *Index) Observe(o *Observer) { x.observer.Store(o) }

// report logs a scan in one line, then the changes, and calls the observer. Where the tree is scanned
// every few seconds, the line of a scan that found nothing new is for debugging.
func (x *Index) report(before, now *Snapshot, took time.Duration) {
	level := slog.LevelInfo
	isNews := before == nil || now.Read+len(x.unreported.groups) > 0
	if !isNews && x.untilRescan(x.scanner.watch.IsBlind()) < x.options.Rescan {
		level = slog.LevelDebug
	}
	x.log(level, "scanned",
		"offered", now.Totals.Versions(),
		"withheld", now.Totals.Problems(),
		"ignored", now.Totals.Ignored,
		"read", now.Read,
		"duration", took)
	was, is := x.unreported.reports(before, now)
	log, rewritten := x.scanLog(), now.Changed
	if before != nil {
		rewritten = offer.NewlyChanged(before.Changed, now.Changed)
	}
	var changed []keys.Change
	if before != nil {
		log.Offers(was, is)
		log.Metadata(changedMetadata(before, now, &x.unreported), func(a address.Address) *registryhcl.File { return now.Metadata(PlaceOf(a)) })
		changed = keys.Changes(before.keys, now.keys)
	}
	log.Keys(changed)
	problems := x.reportWithheld(now, was, is)
	log.Ignored(was, is)
	log.Rewritten(rewritten)
	o := cmp.Or(x.observer.Load(), new(Observer))
	if o.Offered != nil {
		o.Offered(now, x.unreported.addresses(before))
	}
	if o.Scanned != nil {
		o.Scanned(before, now, took)
	}
	callEach(o.KeysChanged, changed)
	callEach(o.Withheld, problems)
	callEach(o.Rewritten, rewritten)
}

// callEach calls a function of an observer, which may be nil, with each of these.
func callEach[T any](call func(T), all []T) {
	if call == nil {
		return
	}
	for _, one := range all {
		call(one)
	}
}

// changedMetadata returns the addresses whose metadata differs between two snapshots.
func changedMetadata(before, now *Snapshot, d *difference) (changed []address.Address) {
	compare := func(e, other *entry) {
		if e.metadata.File != nil && !e.metadata.File.Equal(other.orEmpty().metadata.File) {
			changed = append(changed, e.folder.Address)
		}
	}
	for a := range d.groups {
		for _, e := range now.group(a).offered {
			compare(e, before.group(a).entry(e.folder.Address.Hostname))
		}
		for _, e := range before.group(a).offered {
			if other := now.group(a).entry(e.folder.Address.Hostname); other.orEmpty().metadata.File == nil {
				compare(e, other)
			}
		}
	}
	return changed
}

// reportWithheld logs each problem once, and returns the new problems.
func (x *Index) reportWithheld(now *Snapshot, was, is *Report) (problems []Problem) {
	mayPass := func(p Problem) bool { return now.beingWritten(p, x.options.now()) }
	var unread, began []Problem
	x.unfinished, problems, unread, began = x.unfinished.Next(was.Withheld, is.Withheld, mayPass)
	for _, p := range began {
		x.log(slog.LevelInfo, "still being written", "path", p.Path)
	}
	log := x.scanLog()
	problems = log.Waiting(problems)
	log.Unread(unread)
	log.Withheld(problems)
	return problems
}

// advance is called for every archive after it has been read.
func (x *Index) advance(p Progress) {
	if x.scanner.once {
		if x.options.Progress != nil {
			x.options.Progress(p)
		}
		return
	}
	x.logged.Write(x.scanLog(), p, x.options.now())
}

// scanLog returns the log of the observer.
func (x *Index) scanLog() scanlog.Log {
	return scanlog.Log{Logger: cmp.Or(x.observer.Load(), new(Observer)).Logger}
}

func (x *Index) log(level slog.Level, message string, fields ...any) {
	x.scanLog().Write(level, message, fields...)
}

// beingWritten reports whether a problem of the report may pass by itself.
func (s *Snapshot) beingWritten(p Problem, now time.Time) bool {
	info, err := s.stat(p.Path)
	if err != nil {
		return p.Reason == tree.BeingWritten
	}
	return report.MayPass(p.Reason, info.ModTime(), now)
}

// unfinished reports whether an archive that cannot be offered may be a new one that is
// being written over another: it is shorter at first.
func (a *job) unfinished(now time.Time) bool {
	return !a.pending && a.Bad != nil && report.MayPass(a.Bad.Reason, time.Unix(0, a.Stamp.ModTime), now)
}

// stat returns the information about a file by its path in the report.
func (s *Snapshot) stat(report string) (fs.FileInfo, error) {
	part, name, ok := s.tree.Reported(report)
	if !ok {
		return nil, fs.ErrNotExist
	}
	return part.Lookup(name)
}
