package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/caddy-terraform/caddy-terraform-registry/bench/internal/server"
	"github.com/caddy-terraform/caddy-terraform-registry/bench/internal/tree"
)

// coldPackage is the size of the packages of cold.
const coldPackage = 32e6

// measureCold has the registry read packages that it has not seen before, on
// all cores, and the system's own tools, on one.
func measureCold(ctx context.Context, l *lab) ([]result, error) {
	var results []result
	for _, kind := range []struct {
		content tree.Content
		name    string
		goal    goal
	}{
		{tree.Program, "zips of programs", goal{atMost: 0.6}},
		{tree.Noise, "zips that nothing can be saved in", goal{}},
	} {
		r, err := l.measureColdOf(ctx, kind.content)
		if err != nil {
			return results, err
		}
		r.what = fmt.Sprintf("cold index, %s of %s", bytesText(float64(l.cold)), kind.name)
		r.goal = kind.goal
		results = append(results, r)
	}
	return results, nil
}

func (l *lab) measureColdOf(ctx context.Context, content tree.Content) (r result, err error) {
	root := l.path("cold")
	defer os.RemoveAll(root)
	count := max(int(float64(l.cold)/coldPackage), 2)
	big := bigProvider(content, int64(l.cold)/int64(count))
	big.Versions = nil
	var files []string
	progress("making %d packages", count)
	for i := range count {
		version := fmt.Sprintf("1.%d.0", i)
		file, err := big.Write(root, version)
		if err != nil {
			return r, err
		}
		big.Versions = append(big.Versions, version)
		files = append(files, file)
	}
	const script = `for f; do sha256sum "$f" && unzip -p "$f" | sha256sum || exit 1; done`
	tools, where := l.pinning.oneCore(append([]string{"sh", "-c", script, "sh"}, files...)...)
	r.against = "`sha256sum` and `unzip -p | sha256sum`, " + where

	var ours, fromStart, theirs []float64
	o := l.server("cold", l.registry("site", root, ""))
	defer os.RemoveAll(o.Dir)
	err = alternate(ctx, "cold index", l.heavyRounds,
		func() error {
			seconds, err := timeCommand(ctx, tools...)
			theirs = append(theirs, seconds)
			return err
		},
		func() error {
			if err := os.RemoveAll(o.Dir); err != nil { // what it remembers
				return err
			}
			return while(ctx, o, func(p *server.Process) error {
				at, err := indexed(ctx, p, "site", []tree.Provider{big.Provider})
				if err != nil {
					return err
				}
				loading, known := p.Loading()
				if !known {
					return errors.New("the log does not say when the configuration was loaded")
				}
				ours = append(ours, at.Sub(loading).Seconds())
				fromStart = append(fromStart, at.Sub(p.Started()).Seconds())
				return nil
			})
		})
	if err == nil && l.profile != "" {
		err = errors.Join(os.RemoveAll(o.Dir), while(ctx, o, func(p *server.Process) error {
			if _, _, err := p.Await(ctx, "site", "/.well-known/terraform.json", ok); err != nil {
				return err
			}
			return l.profileOf(ctx, p, fmt.Sprintf("cold-%d", content), func() error {
				_, err := indexed(ctx, p, "site", []tree.Provider{big.Provider})
				return err
			})
		}))
	}
	if err != nil {
		return r, err
	}
	sums, err := timeCommand(ctx, append([]string{"sha256sum"}, files...)...)
	if err != nil {
		return r, err
	}
	r.values = ratios(ours, theirs)
	r.details = []string{
		"registry, all cores, to when the last package is offered: " + secondsText(median(ours)),
		"the same from the start of the process: " + secondsText(median(fromStart)),
		"tools, " + where + ": " + secondsText(median(theirs)),
		"`sha256sum` alone, which not everywhere uses the instructions that Go uses: " + bytesText(float64(l.cold)/sums) + "/s",
	}
	return r, nil
}
