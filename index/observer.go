package index

import (
	"context"
	"log/slog"
	"time"
)

// An Observer hears of what an Index does. An Index may outlive the
// configuration that made it, so its observer can be exchanged.
type Observer struct {
	// Logger hears of scans, and of each thing withheld once. May be nil.
	Logger *slog.Logger

	// Scanned is called after each scan that succeeded, with the snapshot
	// before it, which is nil at first. May be nil.
	Scanned func(before, now *Snapshot, took time.Duration)
}

// Stats counts what an Index has done since it was made.
type Stats struct {
	Scans, Failed  uint64
	Read, Recalled uint64 // archives
	LastScan       time.Duration
}

// Stats tells what the index has done.
func (x *Index) Stats() Stats {
	x.counting.Lock()
	defer x.counting.Unlock()
	return x.stats
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

// report tells of a scan: in one line, and each thing withheld once.
func (x *Index) report(before, now *Snapshot, took time.Duration) {
	x.log(slog.LevelInfo, "scanned",
		"offered", len(now.Report.Offered),
		"withheld", len(now.Report.Withheld),
		"ignored", now.Report.IgnoredTotal,
		"read", now.Read,
		"duration", took)
	for _, p := range now.NewlyWithheld(before) {
		x.log(slog.LevelWarn, "withheld", "path", p.Path, "reason", string(p.Reason), "detail", p.Detail)
	}
	if o := x.observer.Load(); o != nil && o.Scanned != nil {
		o.Scanned(before, now, took)
	}
}

// progressEvery is how often a long scan says how far it is.
const progressEvery = 10 * time.Second

// advance hears of every archive that has been read.
func (x *Index) advance(p Progress) {
	if known := x.progress.Load(); known == nil || p.Done > known.Done {
		x.progress.Store(&p)
	}
	now := time.Now()
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
