package main

import (
	"io"
	"slices"
	"testing"
)

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   float64
	}{
		{[]float64{3}, 3},
		{[]float64{3, 1}, 2},
		{[]float64{9, 1, 4}, 4},
	} {
		if got := median(c.values); got != c.want {
			t.Errorf("median of %v is %v, want %v", c.values, got, c.want)
		}
	}
}

func TestCells(t *testing.T) {
	for _, c := range []struct {
		result result
		want   [4]string
	}{
		{result{goal: goal{atLeast: 1}, values: []float64{1.5, 0.9, 1.1}}, [4]string{"≥ 1.00", "1.10", "0.90 – 1.50 (3)", "yes, 2 of 3"}},
		{result{goal: goal{atMost: 2}, values: []float64{3}}, [4]string{"≤ 2.00", "3.00", "3.00 – 3.00 (1)", "no"}},
		{result{goal: goal{atMost: 4000}, text: bytesText, values: []float64{2500}}, [4]string{"≤ 4 KB", "2.5 KB", "2.5 KB – 2.5 KB (1)", "yes"}},
		{result{goal: goal{atMost: 1}, text: secondsText, problem: "not within 10 s", missed: true}, [4]string{"≤ 1 s", "not within 10 s", "–", "no"}},
		{result{values: []float64{1}}, [4]string{"–", "1.00", "1.00 – 1.00 (1)", "–"}},
		{result{goal: goal{atMost: 1}, problem: "could not be measured"}, [4]string{"≤ 1.00", "could not be measured", "–", "–"}},
	} {
		if got := c.result.cells(); got != c.want {
			t.Errorf("%+v is %q, want %q", c.result, got, c.want)
		}
	}
}

func TestSettings(t *testing.T) {
	s, err := parseSettings([]string{"-quick", "-rows", "cold,warm", "-cold", "1.5GB", "-packages", "1000,2000"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if s.cold != 1.5e9 || s.archive != 20e6 || !slices.Equal(s.packages.values, []int{1000, 2000}) {
		t.Errorf("sizes are %v, %v, %v", s.cold, s.archive, s.packages.values)
	}
	if rows := s.selected(); len(rows) != 2 || rows[0].name != "warm" || rows[1].name != "cold" {
		t.Errorf("selected are %+v", rows)
	}
	for _, wrong := range [][]string{{"-rows", "no"}, {"-rounds", "0"}, {"-cold", "big"}, {"-packages", "3"}, {"-quick", "-write", "x"}, {"extra"}} {
		if _, err := parseSettings(wrong, io.Discard); err == nil {
			t.Errorf("%q is accepted", wrong)
		}
	}
}
