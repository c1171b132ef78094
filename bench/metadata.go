package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/bench/internal/load"
	"github.com/caddy-terraform/caddy-terraform-registry/bench/internal/server"
)

const (
	respondName = "Caddy `respond`, same body and headers"
	fileName    = "Caddy `file_server`, the static file"
)

// measureMetadata asks one process for each document over plain HTTP: the
// registry on one port, and on others Caddy's handlers with nothing else to
// do. `respond` has a port for each document, so it need not even look at the
// path.
func measureMetadata(ctx context.Context, l *lab) ([]result, error) {
	t, err := l.tree(ctx, l.packages.values[0])
	if err != nil {
		return nil, err
	}
	documents := documentsOf(t)
	if err := l.askFor(ctx, t, documents); err != nil {
		return nil, err
	}
	sites := []server.Site{
		l.registry("registry", t.Root, ""),
		{Name: "file", Handler: server.FileServer(l.path("static"))},
	}
	for _, d := range documents {
		if err := d.writeFile(l.path("static")); err != nil {
			return nil, err
		}
		sites = append(sites, d.respond("respond "+d.name, false), d.plain("plain "+d.name))
	}
	var results []result
	err = while(ctx, l.pinned("documents", sites...), func(p *server.Process) error {
		if _, err := indexed(ctx, p, "registry", t.Providers); err != nil {
			return err
		}
		client, err := l.client(ctx)
		if err != nil {
			return err
		}
		defer client.Close()
		for _, d := range documents {
			rows, err := l.compareDocument(ctx, p, client, d)
			if err != nil {
				return err
			}
			results = append(results, rows...)
		}
		return nil
	})
	return results, err
}

// compareDocument makes the two rows of a document.
func (l *lab) compareDocument(ctx context.Context, p *server.Process, client *load.Client, d document) ([]result, error) {
	if err := d.sameHeader(ctx, p); err != nil {
		return nil, err
	}
	ours := &contender{name: "registry", job: d.job(l, p, load.HTTP, "registry", d.path, d.answer.Body)}
	respond := &contender{name: "respond", job: d.job(l, p, load.HTTP, "respond "+d.name, d.path, d.answer.Body)}
	plain := &contender{name: "respond without braces", job: d.job(l, p, load.HTTP, "plain "+d.name, d.path, d.plainBody())}
	file := &contender{name: "file_server", job: d.job(l, p, load.HTTP, "file", d.filePath(), d.answer.Body)}
	if err := compete(ctx, d.name, l.rounds, client, ours, respond, plain, file); err != nil {
		return nil, err
	}
	if err := l.profileContender(ctx, p, client, "metadata-"+strings.ReplaceAll(d.name, " ", "-"), ours); err != nil {
		return nil, err
	}
	what := fmt.Sprintf("%s, %d bytes, requests/s", d.name, len(d.answer.Body))
	return []result{
		{
			what: what, against: respondName, goal: goal{atLeast: 1},
			values: rateRatios(ours, respond),
			details: []string{
				ours.rateDetail(), respond.rateDetail(), cpuDetail(ours, respond),
				fmt.Sprintf("against `respond` with as many bytes and no braces, where it finds no placeholders to look up: %.2f",
					median(rateRatios(ours, plain))),
			},
		},
		{
			what: what, against: fileName, goal: goal{atLeast: 2.5},
			values: rateRatios(ours, file),
			details: []string{
				file.rateDetail(), cpuDetail(ours, file),
				fmt.Sprintf("of which Caddy itself leaves room for: `respond` without braces against `file_server`: %.2f",
					median(rateRatios(plain, file))),
			},
		},
	}, nil
}

// sameHeader makes sure that `respond` answers with the registry's header. The
// client compares the bodies.
func (d document) sameHeader(ctx context.Context, p *server.Process) error {
	theirs, err := p.Get(ctx, "respond "+d.name, d.path)
	if err != nil {
		return err
	}
	for name, values := range d.header() {
		if !slices.Equal(theirs.Header[name], values) {
			return fmt.Errorf("%s: `respond` has %s %q, the registry %q", d.path, name, theirs.Header[name], values)
		}
	}
	return nil
}
