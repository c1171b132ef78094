package main

import (
	"context"
	"fmt"
	"os"

	"github.com/caddy-terraform/caddy-terraform-registry/bench/internal/server"
	"github.com/caddy-terraform/caddy-terraform-registry/bench/internal/tree"
)

// measureFill has a mirror that holds nothing fetch a package, and curl fetch
// it without a mirror.
func measureFill(ctx context.Context, l *lab) ([]result, error) {
	published := l.path("origin")
	defer os.RemoveAll(published)
	release, err := l.release(published, l.archive)
	if err != nil {
		return nil, err
	}
	var results []result
	for _, rate := range []float64{0, gigabit} {
		f := coldFill{lab: l, release: release, root: l.path("fill"), rate: rate}
		if err := f.measure(ctx, published); err != nil {
			return nil, err
		}
		results = append(results, f.results()...)
	}
	return results, nil
}

// measure has both of them fetch it in turns.
func (f *coldFill) measure(ctx context.Context, published string) error {
	l := f.lab
	defer os.RemoveAll(f.root)
	return l.whileOrigin(ctx, published, []tree.Provider{ownOf(f.release.Provider)}, func(o *origin) (err error) {
		if f.rate > 0 {
			slow, url, err := newSlowLine(o.url, f.rate)
			if err != nil {
				return err
			}
			defer slow.Close()
			o = &origin{o.Process, url}
		}
		if f.link, err = l.link(ctx, o, f.release); err != nil {
			return err
		}
		f.origin = o
		if err := alternate(ctx, "cold fill", l.rounds,
			func() error { return f.fetch(ctx) },
			func() error { return f.fill(ctx) }); err != nil || l.profile == "" {
			return err
		}
		return f.onMirror(ctx, func(ctx context.Context, p *server.Process) error {
			return l.profileOf(ctx, p, "fill", func() error {
				_, err := f.download(ctx, f.packageOn(p))
				return err
			})
		})
	})
}

// A coldFill is one package, fetched over and over into nothing.
type coldFill struct {
	*lab
	*origin
	release bigRelease
	link    string  // to the origin's file
	root    string  // of the mirror
	rate    float64 // of the line to the origin, bytes a second; zero: the loopback interface as it is

	direct, mirrored []downloaded
}

// A downloaded file, and how long it took then to have it on the disk.
type downloaded struct {
	transfer
	sync float64
}

// fetch downloads from the origin.
func (f *coldFill) fetch(ctx context.Context) error {
	t, err := f.download(ctx, f.link)
	f.direct = append(f.direct, t)
	return err
}

// fill downloads from a mirror. The first byte comes when the mirror has the
// last, and has verified them all.
func (f *coldFill) fill(ctx context.Context) error {
	return f.onMirror(ctx, func(ctx context.Context, p *server.Process) error {
		t, err := f.download(ctx, f.packageOn(p))
		f.mirrored = append(f.mirrored, t)
		return err
	})
}

func (f *coldFill) packageOn(p *server.Process) string {
	return "http://" + p.Address("site") + f.release.path()
}

// onMirror starts a mirror that has nothing and knows nothing but the release.
func (f *coldFill) onMirror(ctx context.Context, do phase) error {
	o := f.server("fill", f.mirror("site", f.root, "", f.release.Hostname, f.origin))
	for _, dir := range []string{f.root, o.Dir} {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	if err := tree.Empty(f.root); err != nil {
		return err
	}
	return while(ctx, o, func(p *server.Process) error {
		if _, _, err := p.Await(ctx, "site", "/.well-known/terraform.json", ok); err != nil {
			return err
		}
		if err := f.release.ask(ctx, p, "site"); err != nil {
			return err
		}
		return do(ctx, p)
	})
}

// download makes sure that it was the package, and then leaves nothing behind
// that is still to get to the disk.
func (f *coldFill) download(ctx context.Context, url string) (d downloaded, err error) {
	file := f.path("fetched")
	defer os.Remove(file)
	if d.transfer, err = f.curl(ctx, url, file); err != nil {
		return d, err
	}
	if d.sync, err = timeCommand(ctx, "sync", file); err != nil {
		return d, err
	}
	_, digest, err := digestFile(file)
	if err == nil && digest != f.release.digest {
		err = fmt.Errorf("%s is not the package that was published", url)
	}
	return d, err
}

func (f *coldFill) results() []result {
	const against = "`curl` from the origin"
	each := func(downloads []downloaded, seconds func(downloaded) float64) (all []float64) {
		for _, d := range downloads {
			all = append(all, seconds(d))
		}
		return all
	}
	first := func(d downloaded) float64 { return d.first }
	total := func(d downloaded) float64 { return d.total }
	sync := func(d downloaded) float64 { return d.sync }
	what := fmt.Sprintf("cold fill of %s, ", bytesText(float64(f.archive)))
	if f.rate > 0 {
		what = fmt.Sprintf("cold fill of %s over a line of 1 Gbit/s, ", bytesText(float64(f.archive)))
	}
	fetched := each(f.direct, total)
	text := func(name string, seconds []float64) string { return name + ": " + secondsText(median(seconds)) }
	return []result{
		{
			what: what + "to the first byte for the client", against: against, goal: goal{atMost: 1.15},
			values: ratios(each(f.mirrored, first), fetched),
			details: []string{
				text("mirror, all of it verified and on the disk", each(f.mirrored, first)),
				text("`curl`, over HTTP/"+f.direct[0].protocol+" and into a file", fetched),
				text("`sync` of that file, which the mirror has in its time", each(f.direct, sync)),
			},
		},
		{
			what: what + "to the last byte for the client", against: against,
			values:  ratios(each(f.mirrored, total), fetched),
			details: []string{text("from the mirror", each(f.mirrored, total))},
		},
	}
}
