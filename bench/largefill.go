package main

import (
	"context"
	"fmt"
	"os"

	"github.com/caddy-terraform/caddy-terraform-registry/bench/internal/server"
	"github.com/caddy-terraform/caddy-terraform-registry/bench/internal/tree"
)

// measureLargeFill watches the memory of a mirror that holds nothing while a
// client asks it for a large package.
func measureLargeFill(ctx context.Context, l *lab) (results []result, err error) {
	root, published := l.path("large"), l.path("origin")
	defer os.RemoveAll(root)
	defer os.RemoveAll(published)
	if err := tree.Empty(root); err != nil {
		return nil, err
	}
	release, err := l.release(published, l.large)
	if err != nil {
		return nil, err
	}
	err = l.whileOrigin(ctx, published, []tree.Provider{ownOf(release.Provider)}, func(o *origin) error {
		m := largeMeasurement{
			lab: l, name: "largefill", root: root, file: release.file, provider: release.Big,
			site: l.mirror("site", root, "1s", release.Hostname, o),
		}
		m.appearing = "filling and indexing"
		m.appear = func(ctx context.Context, p *server.Process) error { return m.fill(ctx, p, release) }
		results, err = m.measure(ctx, bytesText(float64(l.large))+" zip filled and served")
		return err
	})
	return results, err
}

// fill has the package come in, and waits until it has been read.
func (m *largeMeasurement) fill(ctx context.Context, p *server.Process, r bigRelease) error {
	if err := r.ask(ctx, p, m.site.Name); err != nil {
		return err
	}
	if _, err := m.curl(ctx, "http://"+p.Address(m.site.Name)+r.path(), os.DevNull); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, indexPatience)
	defer cancel()
	_, _, err := p.Await(ctx, m.site.Name, mirrorPath(r.Provider, r.Versions[0]+".json"), func(a *server.Answer) bool {
		found, err := archivesIn(a)
		return err == nil && found.read() == 1
	})
	if err != nil {
		return fmt.Errorf("what was filled: %w", err)
	}
	return nil
}
