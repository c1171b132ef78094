package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
)

// A transfer is what curl says of one.
type transfer struct {
	first, total float64 // seconds until the first byte, and until the last
	protocol     string
}

// curl downloads into a file, from this machine only. What is configured for
// the user, and proxies, do not count.
func (l *lab) curl(ctx context.Context, url, file string) (t transfer, err error) {
	c := exec.CommandContext(ctx, "curl", "--disable", "--noproxy", "*", "--silent", "--show-error", "--fail",
		"--cacert", l.certificate.File, "--output", file,
		"--write-out", "%{time_starttransfer} %{time_total} %{http_version}", url)
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		return t, fmt.Errorf("curl %s: %w", url, err)
	}
	return parseTransfer(string(out))
}

func parseTransfer(s string) (t transfer, err error) {
	if _, err := fmt.Sscan(s, &t.first, &t.total, &t.protocol); err != nil {
		return t, fmt.Errorf("curl says %q: %w", s, err)
	}
	return t, nil
}
