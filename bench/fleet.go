package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/bench/internal/load"
	"github.com/caddy-terraform/caddy-terraform-registry/bench/internal/server"
	"github.com/caddy-terraform/caddy-terraform-registry/bench/internal/tree"
)

// fleetPackage is the size of what each client of a fleet downloads.
const fleetPackage = 10e6

// measureFleet has many clients ask at once for what an `init` asks for. What
// is compared is the server's CPU time: what the clients need is the same for
// all, and more.
func measureFleet(ctx context.Context, l *lab) ([]result, error) {
	root, static := l.path("fleet"), l.path("fleet-static")
	defer os.RemoveAll(root)
	defer os.RemoveAll(static)
	big := bigProvider(tree.Noise, fleetPackage)
	file, err := big.Write(root, big.Versions[0])
	if err != nil {
		return nil, err
	}
	requests, err := l.fleetRequests(ctx, root, static, big, file)
	if err != nil {
		return nil, err
	}
	plain := l.registry("registry", root, "")
	secure := plain
	secure.Name, secure.TLS = "registry-tls", true
	sites := []server.Site{plain, secure, {Name: "file", TLS: true, Handler: server.FileServer(static)}}
	nginx, err := server.StartNginx(ctx, l.path("nginx"), static, l.certificate)
	if errors.Is(err, server.ErrNoNginx) {
		progress("%v: the registry is compared with Caddy alone", err)
	} else if err != nil {
		return nil, err
	}
	var results []result
	err = while(ctx, l.server("fleet", sites...), func(p *server.Process) error {
		if _, err := indexed(ctx, p, plain.Name, []tree.Provider{big.Provider}); err != nil {
			return err
		}
		client, err := l.client(ctx)
		if err != nil {
			return err
		}
		defer client.Close()
		job := load.Job{Host: server.Host, CA: l.certificate.File, Connections: l.fleet, Requests: requests, Duration: time.Minute}
		pair := func(name, address string, pid int) fleetPair {
			job.Address, job.Server = address, pid
			http1, http2 := job, job
			http1.Protocol, http2.Protocol = load.HTTPS, load.H2
			return fleetPair{
				http1: &contender{name: name + ", HTTP/1.1", job: http1},
				http2: &contender{name: name + ", HTTP/2", job: http2},
			}
		}
		ours, files := pair("registry", p.Address(secure.Name), p.PID()), pair("file_server", p.Address("file"), p.PID())
		contenders := []*contender{ours.http1, ours.http2, files.http1, files.http2}
		var theirs *fleetPair
		if nginx != nil {
			pair := pair("nginx "+nginx.Version, nginx.Address, nginx.PID())
			theirs = &pair
			contenders = append(contenders, pair.http1, pair.http2)
		}
		if err := compete(ctx, "fleet", l.rounds, client, contenders...); err != nil {
			return err
		}
		for _, c := range []*contender{ours.http1, ours.http2} {
			if err := l.profileContender(ctx, p, client, "fleet-"+string(c.job.Protocol), c); err != nil {
				return err
			}
		}
		results = fleetResults(l.fleet, ours, files, theirs)
		return nil
	})
	if nginx != nil {
		err = errors.Join(err, nginx.Stop())
	}
	return results, err
}

// A fleetPair is a server that is asked over both versions of HTTP.
type fleetPair struct{ http1, http2 *contender }

// fleetRequests asks the registry for what clients ask for, and puts it into a
// folder of static files at the same paths.
func (l *lab) fleetRequests(ctx context.Context, root, static string, big tree.Big, file string) ([]load.Request, error) {
	documents := []document{
		{name: "discovery", path: "/.well-known/terraform.json"},
		{name: "mirror index.json", path: mirrorPath(big.Provider, "index.json")},
		{name: "mirror VERSION.json", path: mirrorPath(big.Provider, big.Versions[0]+".json")},
	}
	if err := l.askFor(ctx, &tree.Tree{Root: root, Providers: []tree.Provider{big.Provider}}, documents); err != nil {
		return nil, err
	}
	var requests []load.Request
	for _, d := range documents {
		if err := d.writeFile(static); err != nil {
			return nil, err
		}
		requests = append(requests, load.Request{Path: d.path, Length: int64(len(d.answer.Body)), SHA256: load.Digest(d.answer.Body)})
	}
	length, digest, err := digestFile(file)
	if err != nil {
		return nil, err
	}
	download := mirrorPath(big.Provider, filepath.Base(file))
	if err := os.Link(file, filepath.Join(static, filepath.FromSlash(download))); err != nil {
		return nil, err
	}
	return append(requests, load.Request{Path: download, Length: length, SHA256: digest}), nil
}

// fleetResults compares what waves of clients cost. nginx is nil where there is
// none.
func fleetResults(clients int, ours, files fleetPair, nginx *fleetPair) []result {
	what := fmt.Sprintf("a fleet of %d clients at once over TLS, %s each, CPU time of the server, ", clients, bytesText(fleetPackage))
	seconds := func(r load.Result) float64 { return r.Server.Seconds() }
	row := func(protocol, against string, goal goal, ours, theirs *contender) result {
		return result{
			what: what + protocol, against: against, goal: goal,
			values:  ratios(ours.each(seconds), theirs.each(seconds)),
			details: []string{ours.fleetDetail(), theirs.fleetDetail()},
		}
	}
	nginxRow := func(protocol, theirProtocol string, goal goal, ours *contender, theirs func(fleetPair) *contender) result {
		against := "nginx, static files, " + theirProtocol
		if nginx == nil {
			return result{what: what + protocol, against: against, goal: goal, problem: server.ErrNoNginx.Error()}
		}
		return row(protocol, against, goal, ours, theirs(*nginx))
	}
	http1 := func(p fleetPair) *contender { return p.http1 }
	http2 := func(p fleetPair) *contender { return p.http2 }
	return []result{
		nginxRow("HTTP/1.1", "HTTP/2", goal{atMost: 0.8}, ours.http1, http2),
		nginxRow("HTTP/1.1", "HTTP/1.1", goal{}, ours.http1, http1),
		nginxRow("HTTP/2", "HTTP/2", goal{}, ours.http2, http2),
		row("HTTP/1.1", "Caddy `file_server`, HTTP/1.1", goal{}, ours.http1, files.http1),
		row("HTTP/2", "Caddy `file_server`, HTTP/2", goal{}, ours.http2, files.http2),
		row("HTTP/1.1", "the same over HTTP/2", goal{}, ours.http1, ours.http2),
	}
}
