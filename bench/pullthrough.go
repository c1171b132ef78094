package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/caddy-terraform/caddy-terraform-registry/bench/internal/load"
	"github.com/caddy-terraform/caddy-terraform-registry/bench/internal/server"
	"github.com/caddy-terraform/caddy-terraform-registry/bench/internal/tree"
)

// A pulledTree is one that an upstream has filled with some of what its origin
// has.
type pulledTree struct {
	*tree.Tree
	whole, part tree.Provider // all of its releases, and half of each
	offered     int           // versions of part at the origin
	big         tree.Big
	file        string // of big
}

func diskOfUpstream(s *settings) int64 {
	const perPackage = 10_000
	return int64(s.archive) + int64(s.packages.values[0])*perPackage
}

// pull makes a tree, and that of the origin of some of its providers.
func (l *lab) pull(ctx context.Context, root, published string) (t pulledTree, err error) {
	const held = 10 // versions
	progress("making a tree of %d packages and a file of %s", l.packages.values[0], bytesText(float64(l.archive)))
	if t.Tree, err = tree.Make(ctx, root, l.packages.values[0], l.publisher); err != nil {
		return t, err
	}
	t.big = bigProvider(tree.Noise, int64(l.archive))
	hostname, namespace := t.big.Hostname, t.big.Namespace
	t.whole = tree.Signed(hostname, namespace, "whole", held)
	t.part = tree.Signed(hostname, namespace, "part", held).Holding(t.whole.Platforms() / 2)
	// One version that is not held shows that it was asked for the list.
	t.offered = held + 1
	for _, w := range []struct {
		provider tree.Provider
		root     string
	}{
		{t.whole, root}, {t.part, root},
		{ownOf(t.whole), published}, {tree.Signed("", namespace, t.part.Type, t.offered), published},
	} {
		if err := w.provider.Write(w.root, l.publisher); err != nil {
			return t, err
		}
	}
	t.Providers = append(t.Providers, t.whole, t.part, t.big.Provider)
	t.file, err = t.big.Write(root, t.big.Versions[0])
	return t, err
}

// measureUpstream asks one process that serves a tree twice: as it is, and with
// an upstream for what is not there.
func measureUpstream(ctx context.Context, l *lab) (results []result, err error) {
	root, published := l.path("pulled"), l.path("origin")
	defer os.RemoveAll(root)
	defer os.RemoveAll(published)
	t, err := l.pull(ctx, root, published)
	if err != nil {
		return nil, err
	}
	err = l.whileOrigin(ctx, published, []tree.Provider{ownOf(t.whole)}, func(o *origin) error {
		plain, mirror := l.registry("plain", root, ""), l.mirror("mirror", root, "", t.big.Hostname, o)
		return while(ctx, l.pinned("upstream", plain, mirror), func(p *server.Process) error {
			if _, err := indexed(ctx, p, plain.Name, t.Providers); err != nil {
				return err
			}
			client, err := l.client(ctx)
			if err != nil {
				return err
			}
			defer client.Close()
			results, err = l.compareWithPlain(ctx, p, client, t)
			return err
		})
	})
	return results, err
}

func (l *lab) compareWithPlain(ctx context.Context, p *server.Process, client *load.Client, t pulledTree) ([]result, error) {
	held := t.part.Platforms() / 2
	var results []result
	for _, c := range []struct {
		document
		what  string
		check func(plain, mirror *server.Answer) error
	}{
		{
			document{name: "mirror index.json", path: mirrorPath(t.part, "index.json")}, "its origin has one version more",
			func(_, mirror *server.Answer) error { return joined(offers(mirror, t.offered), mirror) },
		},
		{
			document{name: "mirror VERSION.json", path: mirrorPath(t.whole, t.whole.Versions[0]+".json")}, "all packages held",
			func(plain, mirror *server.Answer) error { return joined(bytes.Equal(plain.Body, mirror.Body), mirror) },
		},
		{
			document{name: "mirror VERSION.json", path: mirrorPath(t.part, t.part.Versions[0]+".json")},
			fmt.Sprintf("%d of %d packages held", held, t.part.Platforms()),
			func(_, mirror *server.Answer) error {
				all, err := archivesIn(mirror)
				return joined(err == nil && len(all) == t.part.Platforms() && all.read() == held, mirror)
			},
		},
	} {
		row, err := l.compareWithUpstream(ctx, p, client, c.document, c.check)
		if err != nil {
			return results, err
		}
		row.what = fmt.Sprintf("%s with an upstream, %s, requests/s", c.name, c.what)
		results = append(results, row)
	}
	row, err := l.compareArchives(ctx, p, client, t)
	return append(results, row), err
}

// joined is the error of an answer that does not say what can be had.
func joined(as bool, a *server.Answer) error {
	if as {
		return nil
	}
	return fmt.Errorf("the mirror does not join what it holds with what it can get: %d: %s", a.Status, a.Body)
}

// compareWithUpstream makes the row of a document. Both have answered before.
func (l *lab) compareWithUpstream(ctx context.Context, p *server.Process, client *load.Client, d document, check func(plain, mirror *server.Answer) error) (r result, err error) {
	plain, err := p.Get(ctx, "plain", d.path)
	if err != nil {
		return r, err
	}
	mirror, err := p.Get(ctx, "mirror", d.path)
	if err != nil {
		return r, err
	}
	if err := check(plain, mirror); err != nil {
		return r, fmt.Errorf("%s: %w", d.path, err)
	}
	d.answer = mirror
	ours := &contender{name: "with an upstream", job: d.job(l, p, load.HTTP, "mirror", d.path, mirror.Body)}
	theirs := &contender{name: "without", job: d.job(l, p, load.HTTP, "plain", d.path, plain.Body)}
	if err := compete(ctx, "upstream "+d.name, l.rounds, client, ours, theirs); err != nil {
		return r, err
	}
	r = againstPlain(rateRatios(ours, theirs), ours.rateDetail(), theirs.rateDetail(), cpuDetail(ours, theirs),
		fmt.Sprintf("bytes of the body: %d with an upstream, %d without", len(mirror.Body), len(plain.Body)))
	return r, l.profileContender(ctx, p, client, "upstream-"+filepath.Base(filepath.Dir(d.path))+"-"+filepath.Base(d.path), ours)
}

// compareArchives makes the row of a file that is held.
func (l *lab) compareArchives(ctx context.Context, p *server.Process, client *load.Client, t pulledTree) (r result, err error) {
	job := load.Job{
		Protocol: load.HTTP, Host: server.Host, Path: mirrorPath(t.big.Provider, filepath.Base(t.file)),
		Connections: 1, Warmup: l.slice / 4, Duration: l.slice, Server: p.PID(),
	}
	if job.Length, job.SHA256, err = digestFile(t.file); err != nil {
		return r, err
	}
	ours, theirs := &contender{name: "with an upstream", job: job}, &contender{name: "without", job: job}
	ours.job.Address, theirs.job.Address = p.Address("mirror"), p.Address("plain")
	if err := compete(ctx, "upstream archive", l.rounds, client, ours, theirs); err != nil {
		return r, err
	}
	r = againstPlain(ratios(ours.each(load.Result.Throughput), theirs.each(load.Result.Throughput)), ours.throughputDetail(), theirs.throughputDetail())
	r.what = fmt.Sprintf("archive throughput with an upstream, %s", bytesText(float64(l.archive)))
	return r, nil
}

// againstPlain is a row but for its name. What the origin is not asked for
// should cost nothing; the rest is room for noise.
func againstPlain(values []float64, details ...string) result {
	return result{against: "the same tree without", goal: goal{atLeast: 0.95}, values: values, details: details}
}
