package index

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"
)

// An Observer hears of what an Index does. An Index may outlive the
// configuration that made it, so its observer can be exchanged.
type Observer struct {
	// Logger hears of scans and of what has changed since the one before. May be
	// nil.
	Logger *slog.Logger

	// Scanned is called after each scan that succeeded, with the snapshot
	// before it, which is nil at first. May be nil.
	Scanned func(before, now *Snapshot, took time.Duration)

	// Withheld is called after that for each thing that was not withheld before,
	// and not for what may still be written. May be nil.
	Withheld func(Problem)
}

// Stats counts what an Index has done since it was made.
type Stats struct {
	Scans, Failed  uint64
	Read, Recalled uint64 // archives
	Verified       uint64 // signatures that were not remembered
	LastScan       time.Duration
}

// Stats tells what the index has done.
func (x *Index) Stats() Stats {
	x.counting.Lock()
	defer x.counting.Unlock()
	s := x.stats
	s.Verified = x.scanner.memo.verified.Load()
	return s
}

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

// Observe directs what the index has to tell; nil is nobody.
func (x *Index) Observe(o *Observer) { x.observer.Store(o) }

// maxLogged is how many things of a kind a scan logs one by one. A tree can be
// copied in as a whole.
const maxLogged = 20

// report tells of a scan: in one line, then what has changed.
func (x *Index) report(before, now *Snapshot, took time.Duration) {
	x.log(slog.LevelInfo, "scanned",
		"offered", len(now.Report.Offered),
		"withheld", len(now.Report.Withheld),
		"ignored", now.Report.IgnoredTotal,
		"read", now.Read,
		"duration", took)
	if before != nil {
		x.reportOffers(before, now)
	}
	problems := x.reportWithheld(before, now)
	x.reportIgnored(before, now)
	o := x.observer.Load()
	if o != nil && o.Scanned != nil {
		o.Scanned(before, now, took)
	}
	if o != nil && o.Withheld != nil {
		for _, p := range problems {
			o.Withheld(p)
		}
	}
}

// reportOffers tells what clients can install now and could not before, and the
// other way round.
func (x *Index) reportOffers(before, now *Snapshot) {
	added, removed := offerChanges(before.Report.Offered, now.Report.Offered)
	for _, of := range []struct {
		what   string
		offers []Offer
	}{{"now offered", added}, {"no longer offered", removed}} {
		limited(x, slog.LevelInfo, of.what, of.offers, func(o Offer) {
			message := of.what + " " + o.Address + " " + o.Version
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

// reportWithheld logs each thing withheld once, and returns those that are new.
// What may still be written is a problem only if it stays as it is.
func (x *Index) reportWithheld(before, now *Snapshot) (problems []Problem) {
	known := x.unfinished
	x.unfinished = make(map[string]bool)
	fresh := now.newlyWithheld(before)
	for _, p := range now.Report.Withheld {
		isNew := len(fresh) > 0 && fresh[0] == p // they are in the order of the report
		if isNew {
			fresh = fresh[1:]
		}
		switch {
		case !isNew && !known[p.Path]:
		case !now.beingWritten(p, x.options.now()):
			problems = append(problems, p)
		default:
			x.unfinished[p.Path] = true
			if !known[p.Path] {
				x.log(slog.LevelInfo, "still being written", "path", p.Path)
			}
		}
	}
	limited(x, slog.LevelWarn, "withheld", problems, func(p Problem) {
		fields := []any{"path", p.Path}
		if p.Version != "" {
			fields = append(fields, "version", p.Version)
		}
		x.log(slog.LevelWarn, "withheld", append(fields, "reason", string(p.Reason), "detail", p.Detail)...)
	})
	return problems
}

// reportIgnored tells of files that the tree has no use for. Temporary names
// come and go with every copy.
func (x *Index) reportIgnored(before, now *Snapshot) {
	known := make(map[string]bool)
	if before != nil {
		for _, p := range before.Report.Ignored {
			known[p.Path] = true
		}
	}
	var ignored []Problem
	for _, p := range now.Report.Ignored {
		if p.Reason != Temporary && !known[p.Path] {
			ignored = append(ignored, p)
		}
	}
	limited(x, slog.LevelInfo, "ignored", ignored, func(p Problem) {
		x.log(slog.LevelInfo, "ignored", "path", p.Path, "detail", p.Detail)
	})
}

// limited logs the first of many things and the number of the others.
func limited[T any](x *Index, level slog.Level, what string, all []T, log func(T)) {
	for _, one := range all[:min(len(all), maxLogged)] {
		log(one)
	}
	if more := len(all) - maxLogged; more > 0 {
		x.log(level, fmt.Sprintf("%s: and %d more", what, more), "more", more)
	}
}

// progressEvery is how often a long scan says how far it is.
const progressEvery = 10 * time.Second

// advance hears of every archive that has been read.
func (x *Index) advance(p Progress) {
	if known := x.progress.Load(); known == nil || p.Done > known.Done {
		x.progress.Store(&p)
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
