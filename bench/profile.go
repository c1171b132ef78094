package main

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/bench/internal/load"
	"github.com/caddy-terraform/caddy-terraform-registry/bench/internal/server"
)

// profileSeconds is how long a profile is taken for.
const profileSeconds = 5

// profileOf writes the CPU profile of a server while it does something, which is not
// done at all if nobody wants profiles.
func (l *lab) profileOf(ctx context.Context, p *server.Process, name string, something func() error) error {
	if l.profile == "" {
		return nil
	}
	progress("profile of %s", name)
	if err := os.MkdirAll(l.profile, 0o755); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- something() }()
	profile, err := p.Profile(ctx, profileSeconds)
	if failed := <-done; failed != nil {
		return failed
	}
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(l.profile, name+".pprof"), profile, 0o644)
}

// profileContender writes the profile of a server that is asked once more.
func (l *lab) profileContender(ctx context.Context, p *server.Process, client *load.Client, name string, c *contender) error {
	return l.profileOf(ctx, p, name, func() error {
		job := c.job
		job.Duration = profileSeconds * time.Second
		_, err := client.Run(job)
		return err
	})
}
