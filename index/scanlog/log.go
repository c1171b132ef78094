package scanlog

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index/keys"
	"github.com/caddy-terraform/caddy-terraform-registry/index/offer"
	"github.com/caddy-terraform/caddy-terraform-registry/index/queue"
	"github.com/caddy-terraform/caddy-terraform-registry/index/report"
	"github.com/caddy-terraform/caddy-terraform-registry/registryhcl"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// A Log is where the lines go. Without a Logger they go nowhere.
type Log struct{ Logger *slog.Logger }

// Write writes one line.
func (l Log) Write(level slog.Level, message string, fields ...any) {
	if l.Logger != nil {
		l.Logger.Log(context.Background(), level, message, fields...)
	}
}

// maxLines is how many changes of a kind are written one by one. A whole tree may be copied
// in at once.
const maxLines = 20

// limited writes the first maxLines items and the number of the others.
func limited[T any](l Log, level slog.Level, what string, all []T, write func(T)) {
	for _, item := range all[:min(len(all), maxLines)] {
		write(item)
	}
	if more := len(all) - maxLines; more > 0 {
		l.Write(level, fmt.Sprintf("%s: and %d more", what, more), "more", more)
	}
}

// Offers writes which versions clients can install now and could not before, and vice versa.
func (l Log) Offers(was, is *report.Report) {
	added, removed := report.Changes(was.Offered, is.Offered)
	for _, change := range []struct {
		what   string
		offers []report.Offer
	}{{"now offered", added}, {"no longer offered", removed}} {
		limited(l, slog.LevelInfo, change.what, change.offers, func(o report.Offer) {
			message := change.what + " " + o.Address + " " + o.Version
			fields := []any{"kind", o.Kind, "address", o.Address, "version", o.Version}
			if len(o.Platforms) > 0 {
				platforms := strings.Join(o.Platforms, " ")
				message += " " + platforms
				fields = append(fields, "platforms", platforms)
			}
			l.Write(slog.LevelInfo, message, fields...)
		})
	}
}

// Metadata writes the addresses whose registry.hcl has changed. current returns the present
// file of an address, or nil.
func (l Log) Metadata(changed []address.Address, current func(address.Address) *registryhcl.File) {
	slices.SortFunc(changed, func(a, b address.Address) int { return strings.Compare(a.String(), b.String()) })
	limited(l, slog.LevelInfo, "metadata changed", changed, func(a address.Address) {
		fields := []any{"address", a.String()}
		if m := current(a); m != nil {
			fields = append(fields, "deprecated", versionsOf(m.Deprecated), "withdrawn", versionsOf(m.Withdrawn))
		}
		l.Write(slog.LevelInfo, "metadata of "+a.String()+" changed", fields...)
	})
}

// versionsOf lists the versions that notices are about.
func versionsOf(notices []registryhcl.Notice) string {
	texts := make([]string, len(notices))
	for i, n := range notices {
		texts[i] = n.Versions.String()
	}
	return strings.Join(texts, "; ")
}

// Keys writes each change of a keys file: such a file decides who signs for a namespace.
func (l Log) Keys(changes []keys.Change) {
	limited(l, slog.LevelWarn, "keys changed", changes, func(c keys.Change) {
		level, what := slog.LevelWarn, "has other keys now"
		switch {
		case c.Missing:
			what = "is gone"
		case c.Appeared:
			level, what = slog.LevelInfo, "has appeared"
		}
		file := c.File()
		l.Write(level, file+" "+what, "path", file, "before", strings.Join(c.Before, " "), "keys", strings.Join(c.Now, " "))
	})
}

// Withheld writes problems.
func (l Log) Withheld(problems []report.Problem) {
	limited(l, slog.LevelWarn, "withheld", problems, func(p report.Problem) {
		fields := []any{"path", p.Path}
		if p.Version != "" {
			fields = append(fields, "version", p.Version)
		}
		l.Write(slog.LevelWarn, "withheld", append(fields, "reason", string(p.Reason), "detail", p.Detail)...)
	})
}

// Waiting writes which files are not offered before they are on record, and returns the other
// problems. Usually it takes a second, and is no problem of a version.
func (l Log) Waiting(all []report.Problem) (problems []report.Problem) {
	const message = "not offered before it is on record"
	var waiting []report.Problem
	for _, p := range all {
		if p.Reason == tree.NotOnRecord {
			waiting = append(waiting, p)
		} else {
			problems = append(problems, p)
		}
	}
	limited(l, slog.LevelInfo, message, waiting, func(p report.Problem) {
		l.Write(slog.LevelInfo, message, "path", p.Path, "version", p.Version)
	})
	return problems
}

// Unread writes which files and folders could not be read. Their earlier results are not
// withheld.
func (l Log) Unread(problems []report.Problem) {
	const message = "could not be read, it is tried again"
	limited(l, slog.LevelWarn, message, problems, func(p report.Problem) {
		l.Write(slog.LevelWarn, message, "path", p.Path, "error", p.Detail)
	})
}

// Ignored writes which files do not belong in the tree and were not there before. Files with
// temporary names are left out: they come and go with every copy.
func (l Log) Ignored(was, is *report.Report) {
	known := make(map[string]bool)
	for _, p := range was.Ignored {
		known[p.Path] = true
	}
	var ignored []report.Problem
	for _, p := range is.Ignored {
		if p.Reason != tree.Temporary && !known[p.Path] {
			ignored = append(ignored, p)
		}
	}
	limited(l, slog.LevelInfo, "ignored", ignored, func(p report.Problem) {
		l.Write(slog.LevelInfo, "ignored", "path", p.Path, "detail", p.Detail)
	})
}

// Rewritten writes which versions have other bytes than they were first offered with.
func (l Log) Rewritten(changed []offer.ChangedVersion) {
	const message = "the bytes of an offered version have changed"
	limited(l, slog.LevelWarn, message, changed, func(c offer.ChangedVersion) {
		fields := []any{"path", c.Path, "address", c.Address.String(), "version", c.Version}
		if c.Platform != "" {
			fields = append(fields, "platform", c.Platform)
		}
		l.Write(slog.LevelWarn, message, append(fields, "was", c.Was, "is", c.Is)...)
	})
}

// progressEvery is how often the progress of a long scan is written.
const progressEvery = 10 * time.Second

// A Progress remembers when the progress of reading was written last. The zero value has not
// written any.
type Progress struct{ last atomic.Int64 }

// Write writes the progress if that is due.
func (l *Progress) Write(log Log, p queue.Progress, now time.Time) {
	last := l.last.Load()
	if now.Sub(p.Began) < progressEvery || now.UnixNano()-last < int64(progressEvery) || !l.last.CompareAndSwap(last, now.UnixNano()) {
		return
	}
	log.Write(slog.LevelInfo, "reading archives",
		"done", p.Done, "total", p.Total,
		"bytes", p.DoneBytes, "total_bytes", p.TotalBytes,
		"bytes_per_second", p.Rate(now), "remaining", p.Remaining(now))
}
