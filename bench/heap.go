package main

import (
	"context"
	"fmt"

	"github.com/caddy-terraform/caddy-terraform-registry/bench/internal/server"
	"github.com/caddy-terraform/caddy-terraform-registry/bench/internal/tree"
)

// measureHeap compares what stays in memory with that of the same process
// when there is nothing in its tree.
func measureHeap(ctx context.Context, l *lab) ([]result, error) {
	empty := l.path("empty")
	if err := tree.Empty(empty); err != nil {
		return nil, err
	}
	var results []result
	for _, packages := range l.packages.values {
		t, err := l.tree(ctx, packages)
		if err != nil {
			return results, err
		}
		full := l.server(fmt.Sprint("warm", packages), l.registry("site", t.Root, ""))
		none := l.server("empty", l.registry("site", empty, ""))
		var with, without []float64
		err = alternate(ctx, fmt.Sprintf("heap, %d packages", packages), l.rounds,
			func() error { return l.liveHeap(ctx, full, t.Providers, &with) },
			func() error { return l.liveHeap(ctx, none, nil, &without) })
		if err != nil {
			return results, err
		}
		var each []float64
		for _, bytes := range differences(with, without) {
			each = append(each, bytes/float64(packages))
		}
		results = append(results, result{
			what: fmt.Sprintf("heap for %d packages, after garbage collection", packages), against: "one package's share",
			goal: goal{atMost: 4000}, text: bytesText, values: each,
			details: []string{
				"with the tree: " + bytesText(median(with)),
				"with an empty tree: " + bytesText(median(without)),
			},
		})
	}
	return results, nil
}

// liveHeap adds the heap of a process that has read its tree.
func (l *lab) liveHeap(ctx context.Context, o server.Options, providers []tree.Provider, sizes *[]float64) error {
	return while(ctx, o, func(p *server.Process) error {
		if _, _, err := p.Await(ctx, "site", "/.well-known/terraform.json", ok); err != nil {
			return err
		}
		if _, err := indexed(ctx, p, "site", providers); err != nil {
			return err
		}
		bytes, err := p.LiveHeap(ctx)
		*sizes = append(*sizes, float64(bytes))
		return err
	})
}
