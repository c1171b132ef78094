package publish

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// Unfinished releases are looked at between these intervals.
const (
	shortInterval = time.Minute
	longInterval  = time.Hour
)

// Run completes releases that a crash has interrupted, and drops releases that were
// never finished, from time to time until ctx ends.
func (p *Publisher) Run(ctx context.Context) {
	interval := min(max(p.options.Staging/24, shortInterval), longInterval)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			p.tidy(ctx)
			timer.Reset(interval)
		}
	}
}

// tidy looks at all stages.
func (p *Publisher) tidy(ctx context.Context) {
	files, err := p.open()
	if err != nil {
		return // which is logged
	}
	for _, part := range []tree.Part{files.Providers, files.Modules} {
		part.RemoveTemporaries(ctx, stagingPath(), 0)
		defer part.RemoveIfEmpty(stagingPath())
	}
	entries, err := p.stages(files.Providers)
	if err != nil {
		p.unavailable("looking at what is staged", err)
		return
	}
	for _, e := range entries {
		s, ok := parseStage(files.Providers, e.Name)
		if !ok || !e.IsDir() || ctx.Err() != nil {
			continue
		}
		err := p.tidyStage(ctx, files, s)
		p.measure(s, "", 0)
		if err != nil && p.options.Logger != nil {
			p.options.Logger.Warn("an unfinished release cannot be completed", "address", s.address.String(), "version", s.version, "error", err.Error())
		}
	}
}

func (p *Publisher) tidyStage(ctx context.Context, files tree.Tree, s stage) error {
	unlock, err := p.lock(ctx, s.part, s.lockName())
	if err != nil {
		return err
	}
	defer unlock()
	present, err := p.presentRelease(files, s.address, s.version)
	if err != nil {
		return err
	}
	c, err := s.read()
	if err != nil {
		return err
	}
	done, err := p.finish(ctx, files, c, present)
	var bad *Refusal
	switch {
	case err != nil && !errors.As(err, &bad):
		return err
	case done:
		return s.removeAll()
	case !c.empty() && p.options.Now().Sub(c.last) < p.options.Staging:
		return nil
	}
	// A failure may come after the release has reached the tree.
	if present, err = p.presentRelease(files, s.address, s.version); err != nil {
		return err
	}
	if p.options.Logger != nil && !c.empty() {
		what := "dropped an unfinished release"
		if present.exists {
			what = "dropped documentation that cannot be published"
		}
		p.options.Logger.LogAttrs(ctx, slog.LevelInfo, what,
			slog.String("address", s.address.String()), slog.String("version", s.version))
	}
	return c.drop(ctx, present)
}

// finish puts what is staged into the tree, and reports whether it was complete: a whole
// release, or documentation of a published one, whose other files never change. A Refusal
// means that the files have to change first.
func (p *Publisher) finish(ctx context.Context, files tree.Tree, c *staged, present *presentRelease) (done bool, err error) {
	if present.exists {
		err = p.installDocs(ctx, c.stage, present.folder)
	} else {
		if err := p.settleSignature(ctx, files, c, present); err != nil || c.checksums == nil || len(c.missing()) > 0 {
			return false, err
		}
		err = p.publish(ctx, files, c, present)
	}
	p.changed(c.address) // even a failure may have changed files
	return err == nil, err
}

// changed tells the index to look at the folders of an address, and at the keys, which
// count for its releases. The folder of a hosted address may lie below one of the
// registry's hostnames.
func (p *Publisher) changed(a address.Address) (c index.Change) {
	x := p.options.Index()
	if x == nil {
		return c
	}
	folders := []string{tree.ReportedKeys, tree.ReportedFolder(a)}
	if a.Hostname == "" {
		for _, hostname := range p.options.Hostnames {
			folders = append(folders, tree.ReportedFolder(a.WithHostname(hostname)))
		}
	}
	return x.Changed(folders...)
}
