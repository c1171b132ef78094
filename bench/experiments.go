package main

import (
	"context"
	"fmt"
	"os"
	"slices"
)

// An experiment measures one or several rows of the table.
type experiment struct {
	name, about string

	// disk is the space that it needs for a while.
	disk func(*settings) int64

	measure func(context.Context, *lab) ([]result, error)
}

// experiments are all of them, in the order of the table.
func experiments() []experiment {
	none := func(*settings) int64 { return 0 }
	return []experiment{
		{"metadata", "metadata requests/s", none, measureMetadata},
		{"tls", "metadata requests/s over TLS", none, measureTLS},
		{"private", "metadata requests/s, private", none, measurePrivate},
		{"upstream", "throughput of a mirror with an upstream", diskOfUpstream, measureUpstream},
		{"archive", "archive throughput", func(s *settings) int64 { return int64(s.archive) }, measureArchive},
		{"fleet", "a fleet of clients", none, measureFleet},
		{"warm", "warm start to the first answer", none, measureWarm},
		{"cold", "cold index", func(s *settings) int64 { return 2 * int64(s.cold) }, measureCold},
		{"heap", "heap for each package", none, measureHeap},
		{"publish", "file renamed in → served", none, measurePublish},
		{"large", "a large zip indexed and served", func(s *settings) int64 { return int64(s.large) }, measureLarge},
		{"fill", "cold fill", func(s *settings) int64 { return 3 * int64(s.archive) }, measureFill},
		{"largefill", "a large zip filled and served", func(s *settings) int64 { return 2 * int64(s.large) }, measureLargeFill},
	}
}

func names() []string {
	var names []string
	for _, e := range experiments() {
		names = append(names, e.name)
	}
	return names
}

func parseRow(name string) (string, error) {
	if !slices.Contains(names(), name) {
		return "", fmt.Errorf("there is no row %q", name)
	}
	return name, nil
}

// selected are the experiments that the flags ask for.
func (s *settings) selected() []experiment {
	return slices.DeleteFunc(experiments(), func(e experiment) bool { return !slices.Contains(s.rows.values, e.name) })
}

// alternate takes each measurement once a round, the other way round every
// second time, so that none profits from its place.
func alternate(ctx context.Context, name string, rounds int, measurements ...func() error) error {
	for round := range rounds {
		progress("%s: round %d of %d", name, round+1, rounds)
		for _, measure := range measurements {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := measure(); err != nil {
				return err
			}
		}
		slices.Reverse(measurements)
	}
	return nil
}

// progress tells whoever waits what is going on.
func progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}
