package index

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index/keys"
	"github.com/caddy-terraform/caddy-terraform-registry/index/report"
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
	// being written. It may be nil.
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

// Stats counts the work of an Index since it was created.
type Stats struct {
	Scans, Failed  uint64        // Scans includes those that failed
	Read, Recalled uint64        // archives read, and known from the memo
	Verified       uint64        // signatures verified, not counting those known from the memo
	LastScan       time.Duration // how long it took
}

// Stats returns the counts of the index.
func (x *Index) Stats() Stats {
	x.counting.Lock()
	defer x.counting.Unlock()
	s := x.stats
	s.Verified = x.scanner.memo.Verified.Load()
	return s
}

// count adds a scan. The snapshot is nil if the scan failed.
func (x *Index) count(s *Snapshot, took time.Duration) {
	x.counting.Lock()
	defer x.counting.Unlock()
	x.stats.Scans++
	x.stats.LastScan = took
	if s == nil {
		x.stats.Failed++
		return
	}
	x.stats.Read += uint64(s.Read)
	x.stats.Recalled += uint64(s.Recalled)
}

// Observe replaces the observer. It may be nil.
func (x *Index) Observe(o *Observer) { x.observer.Store(o) }

// maxLogged is how many changes of a kind a scan logs one by one. A whole tree may
// be copied in at once.
const maxLogged = 20

// report logs a scan in one line, then the changes, and calls the observer.
func (x *Index) report(before, now *Snapshot, took time.Duration) {
	x.log(slog.LevelInfo, "scanned",
		"offered", now.Totals.Versions(),
		"withheld", now.Totals.Problems(),
		"ignored", now.Totals.Ignored,
		"read", now.Read,
		"duration", took)
	was, is := x.unreported.reports(before, now)
	if before != nil {
		x.reportOffers(was, is)
		x.reportMetadata(before, now)
	}
	changed := x.reportKeys(before, now)
	problems := x.reportWithheld(now, was, is)
	x.reportIgnored(was, is)
	rewritten := x.reportChanged(before, now)
	o := x.observer.Load()
	if o != nil && o.Offered != nil {
		o.Offered(now, x.unreported.addresses(before))
	}
	if o != nil && o.Scanned != nil {
		o.Scanned(before, now, took)
	}
	if o != nil && o.KeysChanged != nil {
		for _, c := range changed {
			o.KeysChanged(c)
		}
	}
	if o != nil && o.Withheld != nil {
		for _, p := range problems {
			o.Withheld(p)
		}
	}
	if o != nil && o.Rewritten != nil {
		for _, c := range rewritten {
			o.Rewritten(c)
		}
	}
}

// reportOffers logs the versions that clients can install now and could not before, and vice
// versa.
func (x *Index) reportOffers(was, is *Report) {
	added, removed := report.Changes(was.Offered, is.Offered)
	for _, change := range []struct {
		what   string
		offers []Offer
	}{{"now offered", added}, {"no longer offered", removed}} {
		limited(x, slog.LevelInfo, change.what, change.offers, func(o Offer) {
			message := change.what + " " + o.Address + " " + o.Version
			fields := []any{"kind", o.Kind, "address", o.Address, "version", o.Version}
			if len(o.Platforms) > 0 {
				platforms := strings.Join(o.Platforms, " ")
				message += " " + platforms
				fields = append(fields, "platforms", platforms)
			}
			x.log(slog.LevelInfo, message, fields...)
		})
	}
}

// reportMetadata logs which registry.hcl files have changed.
func (x *Index) reportMetadata(before, now *Snapshot) {
	changed := changedMetadata(before, now, &x.unreported)
	slices.SortFunc(changed, func(a, b address.Address) int { return strings.Compare(a.String(), b.String()) })
	limited(x, slog.LevelInfo, "metadata changed", changed, func(a address.Address) {
		fields := []any{"address", a.String()}
		if m := now.Metadata(PlaceOf(a)); m != nil {
			fields = append(fields, "deprecated", versionsOf(m.Deprecated), "withdrawn", versionsOf(m.Withdrawn))
		}
		x.log(slog.LevelInfo, "metadata of "+a.String()+" changed", fields...)
	})
}

// changedMetadata returns the addresses whose metadata differs between two snapshots.
func changedMetadata(before, now *Snapshot, d *difference) (changed []address.Address) {
	compare := func(e, other *entry) {
		if e.metadata.File != nil && !e.metadata.File.Equal(other.metadataOrZero().File) {
			changed = append(changed, e.folder.Address)
		}
	}
	for a := range d.groups {
		for _, e := range now.groups[a].allOffered() {
			compare(e, before.groups[a].at(e.folder.Address.Hostname))
		}
		for _, e := range before.groups[a].allOffered() {
			if other := now.groups[a].at(e.folder.Address.Hostname); other.metadataOrZero().File == nil {
				compare(e, other)
			}
		}
	}
	return changed
}

// versionsOf lists the versions that notices are about.
func versionsOf(notices []registryhcl.Notice) string {
	texts := make([]string, len(notices))
	for i, n := range notices {
		texts[i] = n.Versions.String()
	}
	return strings.Join(texts, "; ")
}

// unreadMessage is logged for a file or folder that could not be read. Its earlier results
// are not withheld.
const unreadMessage = "could not be read, it is tried again"

// reportWithheld logs each problem once, and returns the new problems. A file that may still
// be being written is a problem only if it stays in this state. A file that cannot be read
// at the moment is no problem.
func (x *Index) reportWithheld(now *Snapshot, was, is *Report) (problems []Problem) {
	known, before := x.unfinished, make(map[Problem]bool, len(was.Withheld))
	x.unfinished = maps.Clone(known)
	for _, p := range was.Withheld {
		before[p] = true
		delete(x.unfinished, p.Path)
	}
	var unread []Problem
	for _, p := range is.Withheld {
		isNew := !before[p]
		switch {
		case !isNew && !known[p.Path]:
		case p.Passes():
			unread = append(unread, p)
		case !now.beingWritten(p, x.options.now()):
			problems = append(problems, p)
		default:
			if x.unfinished == nil {
				x.unfinished = make(map[string]bool)
			}
			x.unfinished[p.Path] = true
			if !known[p.Path] {
				x.log(slog.LevelInfo, "still being written", "path", p.Path)
			}
		}
	}
	limited(x, slog.LevelWarn, unreadMessage, unread, func(p Problem) {
		x.log(slog.LevelWarn, unreadMessage, "path", p.Path, "error", p.Detail)
	})
	limited(x, slog.LevelWarn, "withheld", problems, func(p Problem) {
		fields := []any{"path", p.Path}
		if p.Version != "" {
			fields = append(fields, "version", p.Version)
		}
		x.log(slog.LevelWarn, "withheld", append(fields, "reason", string(p.Reason), "detail", p.Detail)...)
	})
	return problems
}

// reportIgnored logs files that do not belong in the tree, except temporary files, which
// come and go with every copy.
func (x *Index) reportIgnored(was, is *Report) {
	known := make(map[string]bool)
	for _, p := range was.Ignored {
		known[p.Path] = true
	}
	var ignored []Problem
	for _, p := range is.Ignored {
		if p.Reason != tree.Temporary && !known[p.Path] {
			ignored = append(ignored, p)
		}
	}
	limited(x, slog.LevelInfo, "ignored", ignored, func(p Problem) {
		x.log(slog.LevelInfo, "ignored", "path", p.Path, "detail", p.Detail)
	})
}

// limited logs the first maxLogged items and the number of the others.
func limited[T any](x *Index, level slog.Level, what string, all []T, log func(T)) {
	for _, item := range all[:min(len(all), maxLogged)] {
		log(item)
	}
	if more := len(all) - maxLogged; more > 0 {
		x.log(level, fmt.Sprintf("%s: and %d more", what, more), "more", more)
	}
}

// progressEvery is how often a long scan logs its progress.
const progressEvery = 10 * time.Second

// advance is called for every archive after it has been read.
func (x *Index) advance(p Progress) {
	if x.scanner.once {
		if x.options.Progress != nil {
			x.options.Progress(p)
		}
		return
	}
	now := x.options.now()
	last := x.logged.Load()
	if now.Sub(p.Began) < progressEvery || now.UnixNano()-last < int64(progressEvery) || !x.logged.CompareAndSwap(last, now.UnixNano()) {
		return
	}
	x.log(slog.LevelInfo, "reading archives",
		"done", p.Done, "total", p.Total,
		"bytes", p.DoneBytes, "total_bytes", p.TotalBytes,
		"bytes_per_second", p.Rate(now), "remaining", p.Remaining(now))
}

func (x *Index) log(level slog.Level, message string, fields ...any) {
	if o := x.observer.Load(); o != nil && o.Logger != nil {
		o.Logger.Log(context.Background(), level, message, fields...)
	}
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
