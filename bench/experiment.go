package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
)

// An experiment declares rows of the table. It starts the processes that run during the
// measurements, and leaves stopping them to lab.cleanup. With -against it is called for
// each of the two subjects, and has to return the same rows.
type experiment struct {
	name string
	rows func(context.Context, *lab, subject) ([]row, error)
}

// experiments returns all of them, in the order of the table.
func experiments() []experiment {
	return []experiment{
		{"metadata", metadata},
		{"private", private},
		{"archive", archive},
		{"usage", counting},
		{"fleet", fleet},
		{"saturated", saturated},
		{"warm", warmStart},
		{"rescan", rescan},
		{"cold", coldIndex},
		{"first", askedForFirst},
		{"heap", heap},
		{"publish", renamedIn},
		{"change", folderChanges},
		{"million", million},
		{"record", recording},
		{"append", appending},
		{"lookup", lookup},
		{"verify", verifying},
		{"upload", uploading},
		{"large", largePackage},
		{"fill", pullThrough},
		{"init", installing},
		{"pages", modulePages},
		{"search", searching},
	}
}

func experimentNames() []string {
	var names []string
	for _, e := range experiments() {
		names = append(names, e.name)
	}
	return names
}

// A measurement returns the cost of something as a number, so less is better.
type measurement func(context.Context) (float64, error)

// A row is a row of the table. Without a reference its goal bounds the cost itself,
// otherwise the ratio of the two costs.
type row struct {
	what      string
	unit      string // "s" or "B"; empty: a number
	goal      goal
	slowness  int // rounds are divided by it, but for the fewest; 0 is 1
	rounds    int // at most; 0: as many as others
	cost      measurement
	against   string
	reference measurement // nil with against set: not on this machine
}

// A goal bounds a median from one side; the zero value bounds nothing.
type goal struct {
	// atLeast bounds how much cheaper the registry is than the reference: the ratio of
	// their answers in the same CPU time.
	atLeast float64

	// atMost bounds the cost, or its ratio to the reference's.
	atMost float64
}

// run declares an experiment's rows and measures them one after the other.
func (l *lab) run(ctx context.Context, e experiment) (results []result, err error) {
	defer func() {
		for _, f := range slices.Backward(l.cleanups) {
			err = errors.Join(err, f())
		}
		for dir := range l.made {
			err = errors.Join(err, os.RemoveAll(dir))
		}
		l.cleanups = nil
		clear(l.made)
	}()
	progress("== %s", e.name)
	rows, err := e.rows(ctx, l, l.subject)
	if err != nil {
		return nil, err
	}
	if l.other.binary != "" {
		others, err := e.rows(ctx, l, l.other)
		if err != nil {
			return nil, fmt.Errorf("the other binary: %w", err)
		}
		for i := range rows {
			rows[i].goal, rows[i].against, rows[i].reference = goal{}, "the other binary", others[i].cost
		}
	}
	for _, r := range rows {
		result, err := l.measure(ctx, r)
		if err != nil {
			return results, fmt.Errorf("%s: %w", r.what, err)
		}
		results = append(results, result)
	}
	return results, nil
}

// fewestRounds is how many pairs of measurements a row has at least, unless -rounds is less.
const fewestRounds = 7

// measure takes pairs of measurements, in the other order every second time, so that a
// disturbance affects both and neither profits from its position.
func (l *lab) measure(ctx context.Context, r row) (result, error) {
	rounds := max(l.rounds/max(r.slowness, 1), min(l.rounds, fewestRounds))
	if r.rounds > 0 {
		rounds = min(rounds, r.rounds)
	}
	all := result{row: r}
	order := []func() error{
		func() error { return sample(ctx, r.cost, &all.costs) },
		func() error { return sample(ctx, r.reference, &all.references) },
	}
	for round := range rounds {
		progress("%s: round %d of %d", r.what, round+1, rounds)
		for _, measure := range order {
			if err := measure(); err != nil {
				return all, err
			}
		}
		slices.Reverse(order)
	}
	return all, nil
}

func sample(ctx context.Context, m measurement, values *[]float64) error {
	if m == nil {
		return nil
	}
	value, err := m(ctx)
	*values = append(*values, value)
	return errors.Join(err, ctx.Err())
}

// A recorded measures several things at once, and keeps them for the rows that follow the
// measuring row.
type recorded[T any] struct {
	take func(context.Context) (T, error)
	all  []T
}

// measuring returns a measurement that is recorded. It returns nil for a nil recorded.
func (r *recorded[T]) measuring(value func(T) float64) measurement {
	if r == nil {
		return nil
	}
	return func(ctx context.Context) (float64, error) {
		x, err := r.take(ctx)
		if err != nil {
			return 0, err
		}
		r.all = append(r.all, x)
		return value(x), nil
	}
}

// recorded returns the measurements so far, one after the other.
func (r *recorded[T]) recorded(value func(T) float64) measurement {
	if r == nil {
		return nil
	}
	next := 0
	return func(context.Context) (float64, error) {
		next++
		return value(r.all[next-1]), nil
	}
}
