package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/bench/internal/load"
	"github.com/caddy-terraform/caddy-terraform-registry/bench/internal/server"
	"github.com/caddy-terraform/caddy-terraform-registry/bench/internal/tree"
)

// measureLarge watches the memory of a registry that has nothing in its tree,
// and then while a large package appears there, is read, and is downloaded.
func measureLarge(ctx context.Context, l *lab) ([]result, error) {
	root, aside := l.path("large"), l.path("aside")
	defer os.RemoveAll(root)
	defer os.RemoveAll(aside)
	if err := tree.Empty(root); err != nil {
		return nil, err
	}
	big := bigProvider(tree.Program, int64(l.large))
	progress("making a package of %s", bytesText(float64(l.large)))
	file, err := big.Write(aside, big.Versions[0])
	if err != nil {
		return nil, err
	}
	m := largeMeasurement{lab: l, name: "large", root: root, file: file, provider: big, site: l.registry("site", root, "1s")}
	m.appearing, m.appear = "indexing", m.index
	return m.measure(ctx, bytesText(float64(l.large))+" zip indexed and served")
}

// measure makes the rows.
func (m *largeMeasurement) measure(ctx context.Context, what string) (_ []result, err error) {
	if m.length, m.digest, err = digestFile(m.file); err != nil {
		return nil, err
	}
	for round := range m.heavyRounds {
		progress("%s: round %d of %d", m.name, round+1, m.heavyRounds)
		if err := m.round(ctx); err != nil {
			return nil, err
		}
	}
	const against = "the same process idle, its peak too"
	return []result{
		{
			what: what + ", peak heap above idle", against: against,
			goal: goal{atMost: 32e6}, text: bytesText, values: differences(m.heap.busy, m.heap.idle),
			details: []string{
				"idle: " + bytesText(median(m.heap.idle)) + ", of which " + bytesText(median(m.live)) + " after garbage collection",
				m.appearing + ": " + bytesText(median(m.heap.appearing)),
				"serving over HTTP and TLS: " + bytesText(median(m.heap.serving)),
			},
		},
		{
			what: what + ", peak RSS above idle", against: against,
			text: bytesText, values: differences(m.rss.busy, m.rss.idle),
			details: []string{"idle: " + bytesText(median(m.rss.idle)), "busy: " + bytesText(median(m.rss.busy))},
		},
	}, nil
}

// A phase is what a server is watched during.
type phase func(context.Context, *server.Process) error

// A largeMeasurement is one large package and what it has cost.
type largeMeasurement struct {
	*lab
	name       string
	root, file string // the tree, and the package, which is elsewhere
	provider   tree.Big
	site       server.Site
	length     int64
	digest     string

	// How the package comes into the tree, up to when it has been read there.
	appearing string
	appear    phase

	live      []float64
	heap, rss peaks
}

// peaks of the phases, one of each round.
type peaks struct{ idle, appearing, serving, busy []float64 }

func (m *largeMeasurement) round(ctx context.Context) error {
	dir := m.provider.Dir(m.root)
	defer os.RemoveAll(dir)
	secure := m.site
	secure.Name, secure.TLS = "site-tls", true
	o := m.server(m.name, m.site, secure)
	defer os.RemoveAll(o.Dir) // what it remembers
	return while(ctx, o, func(p *server.Process) error {
		if _, _, err := p.Await(ctx, "site", "/.well-known/terraform.json", ok); err != nil {
			return err
		}
		live, err := p.LiveHeap(ctx)
		if err != nil {
			return err
		}
		m.live = append(m.live, float64(live))
		idle, err := m.watch(ctx, p, m.idle)
		if err != nil {
			return err
		}
		idleRSS, err := p.PeakRSS()
		if err != nil {
			return err
		}
		appearing, err := m.watch(ctx, p, m.appear)
		if err != nil {
			return err
		}
		serving, err := m.watch(ctx, p, m.download)
		if err != nil {
			return err
		}
		rss, err := p.PeakRSS()
		if err != nil {
			return err
		}
		m.heap.add(idle, appearing, serving, max(appearing, serving))
		m.rss.add(float64(idleRSS), 0, 0, float64(rss))
		return nil
	})
}

func (k *peaks) add(idle, appearing, serving, busy float64) {
	k.idle, k.appearing = append(k.idle, idle), append(k.appearing, appearing)
	k.serving, k.busy = append(k.serving, serving), append(k.busy, busy)
}

// sampling is the time between two looks at the heap, which are the same in
// all phases and cost a little themselves.
const sampling = 10 * time.Millisecond

// watch is the largest heap during a phase.
func (m *largeMeasurement) watch(ctx context.Context, p *server.Process, during phase) (float64, error) {
	done := make(chan error, 1)
	go func() { done <- during(ctx, p) }()
	var peak int64
	for {
		select {
		case err := <-done:
			return float64(peak), err
		case <-time.After(sampling):
			bytes, err := p.Heap(ctx)
			if err != nil {
				return 0, err
			}
			peak = max(peak, bytes)
		}
	}
}

// idle is a phase in which nothing happens but rescans. It begins with what
// the start has left collected, and that memory not counted.
func (m *largeMeasurement) idle(ctx context.Context, p *server.Process) error {
	if err := p.ForgetPeak(); err != nil {
		return err
	}
	select {
	case <-time.After(max(2*m.slice, time.Second)):
	case <-ctx.Done():
	}
	return ctx.Err()
}

func (m *largeMeasurement) index(ctx context.Context, p *server.Process) error {
	dir := m.provider.Dir(m.root)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	// A second name for the file, which is the same in every round.
	name := filepath.Join(dir, filepath.Base(m.file))
	if err := os.Link(m.file, name+".tmp"); err != nil {
		return err
	}
	if err := os.Rename(name+".tmp", name); err != nil {
		return err
	}
	_, err := indexed(ctx, p, "site", []tree.Provider{m.provider.Provider})
	return err
}

// download fetches the whole package over HTTP and over TLS.
func (m *largeMeasurement) download(ctx context.Context, p *server.Process) error {
	client, err := m.client(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	for _, tls := range []bool{false, true} {
		j := load.Job{
			Protocol: load.HTTP, Address: p.Address(siteName("site", tls)), Host: server.Host,
			Path: mirrorPath(m.provider.Provider, filepath.Base(m.file)), Connections: 1,
			Duration: 100 * time.Millisecond, // beyond the first download, which is compared as a whole
			Length:   m.length, SHA256: m.digest, Server: p.PID(),
		}
		if tls {
			j.Protocol, j.CA = load.HTTPS, m.certificate.File
		}
		if _, err := client.Run(j); err != nil {
			return fmt.Errorf("downloading: %w", err)
		}
	}
	return nil
}
