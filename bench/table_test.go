package main

import (
	"context"
	"io"
	"slices"
	"testing"
	"time"
)

func TestCells(t *testing.T) {
	for _, c := range []struct {
		result result
		want   []string
	}{
		{
			result{row{what: "speed", unit: "s", goal: goal{atLeast: 1}, against: "x"}, []float64{1, 1, 1}, []float64{1.5, 0.9, 1.1}},
			[]string{"speed", "1 s", "x: 1.1 s", "≥ 1.00", "1.10", "0.90 – 1.50 (3)", "yes, 2 of 3"},
		},
		{
			result{row{what: "cost", unit: "s", goal: goal{atMost: 2}, against: "x"}, []float64{0.003, 0.001}, []float64{0.001, 0.001}},
			[]string{"cost", "2 ms", "x: 1 ms", "≤ 2.00", "2.00", "1.00 – 3.00 (2)", "yes, 1 of 2"},
		},
		{
			result{row: row{what: "size", unit: "B", goal: goal{atMost: 1000}}, costs: []float64{2500}},
			[]string{"size", "2.5 kB", "–", "≤ 1 kB", "2.5 kB", "2.5 kB – 2.5 kB (1)", "no"},
		},
		{
			result{row: row{what: "fleet", unit: "s", goal: goal{atMost: 1}, against: "x"}, costs: []float64{2}},
			[]string{"fleet", "2 s", "x: not on this machine", "≤ 1.00", "–", "–", "–"},
		},
		{
			result{row{what: "other", unit: "s", against: "x"}, []float64{1}, []float64{2}},
			[]string{"other", "1 s", "x: 2 s", "–", "0.50", "0.50 – 0.50 (1)", "–"},
		},
	} {
		if got := c.result.cells(); !slices.Equal(got, c.want) {
			t.Errorf("the cells are %q, want %q", got, c.want)
		}
	}
}

// With -against the reference of every row is the same row of the other binary.
func TestAgainst(t *testing.T) {
	var order []string
	e := experiment{"example", func(_ context.Context, _ *lab, s subject) ([]row, error) {
		return []row{{what: "cost", goal: goal{atLeast: 1}, against: "a tool", cost: func(context.Context) (float64, error) {
			order = append(order, s.name)
			return float64(len(s.name)), nil
		}}}, nil
	}}
	l := &lab{options: &options{rounds: 2}, subject: subject{name: "registry"}, other: subject{name: "other", binary: "caddy"}}
	results, err := l.run(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"registry", "other", "other", "registry"}; !slices.Equal(order, want) {
		t.Errorf("the order is %q, want %q", order, want)
	}
	if got := results[0].values(); !slices.Equal(got, []float64{8.0 / 5, 8.0 / 5}) {
		t.Errorf("the ratios are %v, want those of the costs", got)
	}
}

func TestOptions(t *testing.T) {
	o, err := parseOptions([]string{"-rows", "cold,warm", "-packages", "1000,2000", "-slice", "2s"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if len(o.experiments) != 2 || o.experiments[0].name != "warm" || !slices.Equal(o.packages, []int{1000, 2000}) || o.slice != 2*time.Second {
		t.Errorf("the options are %+v", o)
	}
	for _, wrong := range [][]string{{"-rows", "no"}, {"-rounds", "0"}, {"-slice", "0s"}, {"-packages", "3"}, {"-public", "3"}, {"extra"}} {
		if _, err := parseOptions(wrong, io.Discard); err == nil {
			t.Errorf("%q is accepted", wrong)
		}
	}
}
