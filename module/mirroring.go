package module

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/fill"
)

// A mirroring is one run of the mirror command.
type mirroring struct {
	wanted
	filler      *fill.Filler
	platforms   []address.Platform
	thisMachine bool   // nobody named platforms
	into        string // the folder of the providers
	workers     int
	dry, json   bool
	bar         *progressBar

	began    time.Time
	done     atomic.Int64 // packages
	received atomic.Int64 // bytes
	sized    atomic.Int64 // packages of which it is known how much of them comes in
	expected atomic.Int64 // bytes of those
}

// A chosen release is one to be mirrored.
type chosen struct {
	address address.Address
	version string
	locks   []*upstream.Locked // that name it
	asked   []string           // who wants it
}

// An outcome is what came of a package, or of a provider of which no version
// could be chosen.
type outcome struct {
	what  string // ADDRESS VERSION PLATFORM, separated by tabs
	size  int64
	added bool // in a dry run, it would be
	err   error
	asked []string // by whom
}

// run fetches what is wanted. What fails does not stop the rest; when ctx ends
// nothing more is begun.
func (m *mirroring) run(ctx context.Context) *mirrorResult {
	m.began = time.Now()
	result := &mirrorResult{mirroring: m}
	releases, failed := m.choose(ctx)
	result.outcomes = failed
	packages := make([]outcome, len(releases)*len(m.platforms))
	inParallel(m.workers, len(packages), func(i int) {
		r, p := releases[i/len(m.platforms)], m.platforms[i%len(m.platforms)]
		packages[i] = m.fill(ctx, r, p, len(packages))
	})
	result.outcomes = append(result.outcomes, packages...)
	if ctx.Err() != nil {
		// What was cut off or not begun has not failed.
		result.interrupted = true
		result.outcomes = slices.DeleteFunc(result.outcomes, func(o outcome) bool { return errors.Is(o.err, context.Canceled) })
	}
	return result
}

// choose finds the versions that are wanted, each once.
func (m *mirroring) choose(ctx context.Context) (releases []*chosen, failed []outcome) {
	type release struct {
		address.Address
		version string
	}
	versions, errs := make([]string, len(m.wants)), make([]error, len(m.wants))
	inParallel(m.workers, len(m.wants), func(i int) { versions[i], errs[i] = m.version(ctx, m.wants[i]) })
	seen := make(map[release]*chosen)
	for i, w := range m.wants {
		if errs[i] != nil {
			failed = append(failed, outcome{what: w.Requirement.String(), err: errs[i]})
			continue
		}
		id := release{w.Address, versions[i]}
		r := seen[id]
		if r == nil {
			r = &chosen{address: w.Address, version: versions[i]}
			seen[id] = r
			releases = append(releases, r)
		}
		r.asked = append(r.asked, w.From...)
		if w.locked != nil {
			r.locks = append(r.locks, w.locked)
		}
	}
	slices.SortStableFunc(releases, func(a, b *chosen) int { return strings.Compare(a.address.String(), b.address.String()) })
	return releases, failed
}

// version is the one that a client would choose. A locked one needs no asking.
func (m *mirroring) version(ctx context.Context, w want) (string, error) {
	if w.locked != nil {
		return w.locked.Version, nil
	}
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	offering, err := m.filler.Versions(ctx, w.Address)
	if err != nil {
		return "", fmt.Errorf("%w (for %s)", err, strings.Join(w.From, ", "))
	}
	versions := make([]string, len(offering.Versions))
	for i, v := range offering.Versions {
		versions[i] = v.Version
	}
	return w.Select(versions)
}

// fill fetches a package unless it is there.
func (m *mirroring) fill(ctx context.Context, r *chosen, p address.Platform, of int) outcome {
	o := outcome{what: fmt.Sprintf("%s\t%s\t%s", r.address, r.version, p), asked: r.asked}
	if o.err = ctx.Err(); o.err == nil {
		o.size, o.added, o.err = m.fetch(ctx, r, p, of)
	}
	m.done.Add(1)
	m.draw(of)
	return o
}

// A coming package is one as the progress bar counts it.
type coming struct {
	m              *mirroring
	received, size int64
	sized          bool
}

func (c *coming) heard(received, size int64) {
	c.m.received.Add(received - c.received)
	c.received = received
	if size > 0 && !c.sized {
		c.sized = true
		c.m.sized.Add(1)
	}
	if c.sized {
		c.m.expected.Add(max(size, received) - c.size)
		c.size = max(size, received)
	}
}

// ended settles how much came in: nothing of a package that was there already.
func (c *coming) ended() {
	if !c.sized {
		c.m.sized.Add(1)
	}
	c.m.expected.Add(c.received - c.size)
}

func (m *mirroring) fetch(ctx context.Context, r *chosen, p address.Platform, of int) (size int64, added bool, err error) {
	release, err := m.filler.ReleaseFor(ctx, r.address, r.version, p)
	if err != nil {
		return 0, false, err
	}
	k, ok := release.Package(p)
	if !ok {
		return 0, false, fmt.Errorf("the release has no package for %s, only for %s", p, platformsOf(release))
	}
	for _, l := range r.locks {
		if err := l.CheckRelease(release, p); err != nil {
			return 0, false, err
		}
	}
	c := &coming{m: m}
	filled, err := m.filler.FillWatched(context.WithoutCancel(ctx), r.address, k.Name, func(received, size int64) {
		c.heard(received, size)
		m.draw(of)
	})
	c.ended()
	switch {
	case errors.Is(err, fill.ErrWouldFill):
		return 0, true, nil
	case err != nil:
		return 0, false, err
	}
	for _, l := range r.locks {
		if err := l.CheckPackage(filled.SHA256, filled.H1, p); err != nil {
			return 0, false, fmt.Errorf("%w. It is in the tree now, as its publisher released it", err)
		}
	}
	return filled.Size, c.received > 0, nil
}

func platformsOf(r *upstream.Release) string {
	names := make([]string, len(r.Packages))
	for i, p := range r.Packages {
		names[i] = p.Platform.String()
	}
	return cmp.Or(strings.Join(names, ", "), "none")
}

func (m *mirroring) draw(of int) {
	done := m.done.Load()
	m.bar.line(done >= int64(of), func(now time.Time) string { return m.progress(now, done, int64(of)) })
}

// progress is how far it is, how much there is in all, and how long the rest takes.
// Packages that have not begun are taken to be as large as the others are on
// average.
func (m *mirroring) progress(now time.Time, done, of int64) string {
	received, total, about := m.received.Load(), m.expected.Load(), ""
	sized := m.sized.Load()
	rate := int64(float64(received) / max(now.Sub(m.began).Seconds(), 0.001))
	text := fmt.Sprintf("%s %d of %d, %s", cells(done, of), done, of, humanize.Bytes(uint64(received)))
	if sized > 0 {
		if sized < of {
			total, about = total/sized*of, "about "
		}
		total = max(total, received)
		text += fmt.Sprintf(" of %s%s", about, humanize.Bytes(uint64(total)))
	}
	text += fmt.Sprintf(", %s/s", humanize.Bytes(uint64(rate)))
	if sized > 0 && rate > 0 {
		text += fmt.Sprintf(", %s left", time.Duration((total-received)/rate)*time.Second)
	}
	return text
}

// inParallel calls do for every number below n, by so many workers.
func inParallel(workers, n int, do func(int)) {
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(workers, n) {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	all.Wait()
}
