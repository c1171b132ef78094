package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/bench/internal/server"
	"github.com/caddy-terraform/caddy-terraform-registry/bench/internal/tree"
)

// measureWarm starts the registry again on trees that it has read before.
func measureWarm(ctx context.Context, l *lab) ([]result, error) {
	var results []result
	for _, packages := range l.packages.values {
		t, err := l.tree(ctx, packages)
		if err != nil {
			return results, err
		}
		w := warmStart{lab: l, tree: t, path: versionsPath(t.Own())}
		rows, err := w.measure(ctx)
		results = append(results, rows...)
		if err != nil {
			return results, err
		}
		row, err := l.measureRescan(ctx, t)
		if err != nil {
			return results, err
		}
		results = append(results, row)
	}
	return results, nil
}

// A warmStart is measured from two points on: from the start of the process,
// and from when Caddy begins to load the configuration. What lies between is
// Caddy's, and the same whatever it serves; `respond` alone shows it.
type warmStart struct {
	*lab
	tree *tree.Tree
	path string
	body []byte // of the right answer

	find          []float64
	ours, respond starts
}

// starts are times to the first right answer, in seconds.
type starts struct{ process, loading []float64 }

func (w *warmStart) measure(ctx context.Context) ([]result, error) {
	name := fmt.Sprint("warm", w.tree.Packages)
	registry := w.server(name, w.registry("site", w.tree.Root, ""))
	err := while(ctx, registry, func(p *server.Process) error {
		if _, err := indexed(ctx, p, "site", w.tree.Providers); err != nil {
			return err
		}
		answer, err := p.Get(ctx, "site", w.path)
		if err != nil {
			return err
		}
		w.body = answer.Body
		return nil
	})
	if err != nil {
		return nil, err
	}
	respond := w.server(name+"-respond", server.Site{Name: "site", Handler: server.Respond(w.body, nil)})
	err = alternate(ctx, fmt.Sprintf("warm start, %d packages", w.tree.Packages), w.rounds,
		func() error {
			seconds, err := find(ctx, w.tree.Root)
			w.find = append(w.find, seconds)
			return err
		},
		func() error { return w.start(ctx, respond, &w.respond) },
		func() error { return w.start(ctx, registry, &w.ours) })
	if err == nil && w.profile != "" {
		err = while(ctx, registry, func(p *server.Process) error {
			return w.profileOf(ctx, p, name, func() error {
				_, err := indexed(ctx, p, "site", w.tree.Providers)
				return err
			})
		})
	}
	if err != nil {
		return nil, err
	}
	return w.results(), nil
}

// start measures one start.
func (w *warmStart) start(ctx context.Context, o server.Options, s *starts) error {
	return while(ctx, o, func(p *server.Process) error {
		ctx, cancel := context.WithTimeout(ctx, indexPatience)
		defer cancel()
		_, at, err := p.Await(ctx, "site", w.path, func(a *server.Answer) bool { return ok(a) && bytes.Equal(a.Body, w.body) })
		if err != nil {
			return err
		}
		loading, known := p.Loading()
		if !known {
			return errors.New("the log does not say when the configuration was loaded")
		}
		s.process = append(s.process, at.Sub(p.Started()).Seconds())
		s.loading = append(s.loading, at.Sub(loading).Seconds())
		return nil
	})
}

func (w *warmStart) results() []result {
	what := fmt.Sprintf("warm start, %d packages, to the first answer", w.tree.Packages)
	const against = "`find ROOT -type f -printf '%s %T@\\n'`"
	row := func(from string, goal goal, values []float64, details ...string) result {
		return result{what: what + ", " + from, against: against, goal: goal, values: ratios(values, w.find), details: details}
	}
	times := func(name string, seconds []float64) string { return name + ": " + secondsText(median(seconds)) }
	return []result{
		row("from when Caddy loads its configuration", goal{atMost: 2}, w.ours.loading,
			times("registry", w.ours.loading), times("Caddy with `respond` alone", w.respond.loading), times("find", w.find)),
		row("from the start of the process", goal{}, w.ours.process,
			times("registry", w.ours.process), times("Caddy with `respond` alone", w.respond.process)),
		row("what the registry adds to Caddy's own start", goal{}, differences(w.ours.process, w.respond.process),
			times("difference", differences(w.ours.process, w.respond.process))),
	}
}

// measureRescan has the registry look at an unchanged tree again and again.
func (l *lab) measureRescan(ctx context.Context, t *tree.Tree) (result, error) {
	const patience = time.Minute
	r := result{
		what:    fmt.Sprintf("rescan, %d packages, nothing changed", t.Packages),
		against: "`find`, the same",
	}
	name := fmt.Sprint("warm", t.Packages)
	progress("rescan, %d packages", t.Packages)
	err := while(ctx, l.server(name, l.registry("site", t.Root, "1s")), func(p *server.Process) error {
		if _, err := indexed(ctx, p, "site", t.Providers); err != nil {
			return err
		}
		if err := l.profileOf(ctx, p, "rescan", func() error { return nil }); err != nil {
			return err
		}
		first := len(p.Scans()) + 1 // one may be under way
		deadline := time.Now().Add(patience)
		for len(p.Scans()) < first+l.rounds && time.Now().Before(deadline) {
			select {
			case <-time.After(server.Poll):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		scans := p.Scans()
		if len(scans) <= first {
			r.problem = "the log says nothing of scans"
			return nil
		}
		var found, took []float64
		for _, scan := range scans[first:] {
			seconds, err := find(ctx, t.Root)
			if err != nil {
				return err
			}
			found, took = append(found, seconds), append(took, scan.Seconds())
		}
		r.values = ratios(took, found)
		r.details = []string{"scan: " + secondsText(median(took)), "find: " + secondsText(median(found))}
		return nil
	})
	return r, err
}
