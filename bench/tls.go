package main

import (
	"context"
	"fmt"

	"github.com/caddy-terraform/caddy-terraform-registry/bench/internal/load"
	"github.com/caddy-terraform/caddy-terraform-registry/bench/internal/server"
)

// measureTLS is measureMetadata for one document over TLS, which costs every
// contender the same. Of HTTP/2 the client is the slower side, so there the
// server's CPU time is compared.
func measureTLS(ctx context.Context, l *lab) ([]result, error) {
	t, err := l.tree(ctx, l.packages.values[0])
	if err != nil {
		return nil, err
	}
	documents := documentsOf(t)[1:2]
	if err := l.askFor(ctx, t, documents); err != nil {
		return nil, err
	}
	d := documents[0]
	if err := d.writeFile(l.path("static")); err != nil {
		return nil, err
	}
	registry := l.registry("registry", t.Root, "")
	secure := registry
	secure.Name, secure.TLS = "registry-tls", true
	sites := []server.Site{
		registry, secure, d.respond("respond", true),
		{Name: "file", TLS: true, Handler: server.FileServer(l.path("static"))},
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
		for _, protocol := range []load.Protocol{load.HTTPS, load.H2} {
			rows, err := l.compareOverTLS(ctx, p, client, d, protocol)
			if err != nil {
				return err
			}
			results = append(results, rows...)
		}
		return nil
	})
	return results, err
}

func (l *lab) compareOverTLS(ctx context.Context, p *server.Process, client *load.Client, d document, protocol load.Protocol) ([]result, error) {
	ours := &contender{name: "registry", job: d.job(l, p, protocol, "registry-tls", d.path, d.answer.Body)}
	respond := &contender{name: "respond", job: d.job(l, p, protocol, "respond", d.path, d.answer.Body)}
	file := &contender{name: "file_server", job: d.job(l, p, protocol, "file", d.filePath(), d.answer.Body)}
	if err := compete(ctx, d.name+" over "+string(protocol), l.rounds, client, ours, respond, file); err != nil {
		return nil, err
	}
	if err := l.profileContender(ctx, p, client, "tls-"+string(protocol), ours); err != nil {
		return nil, err
	}
	what, number := fmt.Sprintf("%s over TLS with HTTP/1.1, requests/s", d.name), load.Result.Rate
	if protocol == load.H2 {
		what = fmt.Sprintf("%s over TLS with HTTP/2, requests in a second of the server's CPU time", d.name)
		number = func(r load.Result) float64 { return float64(r.Answers) / r.Server.Seconds() }
	}
	return []result{
		{
			what: what, against: respondName,
			values:  ratios(ours.each(number), respond.each(number)),
			details: []string{ours.rateDetail(), respond.rateDetail()},
		},
		{
			what: what, against: fileName,
			values:  ratios(ours.each(number), file.each(number)),
			details: []string{file.rateDetail()},
		},
	}, nil
}
