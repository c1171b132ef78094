package main

import (
	"fmt"
	"math"
	"slices"
)

// A result is one row of the table, with what the table has no room for.
type result struct {
	what, against string
	goal          goal
	text          func(float64) string // of a value; nil: as a ratio
	values        []float64            // one of each pair
	details       []string
	problem       string // why there are no values
	missed        bool   // the problem is the registry's
}

// A goal is a bound of the median.
type goal struct {
	atLeast, atMost float64 // one of them, or none
}

func (g goal) none() bool { return g.atLeast == 0 && g.atMost == 0 }

func (g goal) met(v float64) bool {
	return g.atLeast > 0 && v >= g.atLeast || g.atMost > 0 && v <= g.atMost
}

func (r result) write(v float64) string {
	if r.text != nil {
		return r.text(v)
	}
	return fmt.Sprintf("%.2f", v)
}

// cells are the columns after the first two: goal, median, spread, met or not.
func (r result) cells() [4]string {
	wanted, met := "–", "–"
	switch {
	case r.goal.atLeast > 0:
		wanted = "≥ " + r.write(r.goal.atLeast)
	case r.goal.atMost > 0:
		wanted = "≤ " + r.write(r.goal.atMost)
	}
	if len(r.values) == 0 {
		if r.missed {
			met = "no"
		}
		return [4]string{wanted, r.problem, "–", met}
	}
	m := median(r.values)
	if !r.goal.none() {
		met = r.verdict(m)
	}
	spread := fmt.Sprintf("%s – %s (%d)", r.write(slices.Min(r.values)), r.write(slices.Max(r.values)), len(r.values))
	return [4]string{wanted, r.write(m), spread, met}
}

// verdict says what the median says, and when single pairs say otherwise.
func (r result) verdict(median float64) string {
	good := 0
	for _, v := range r.values {
		if r.goal.met(v) {
			good++
		}
	}
	verdict := "no"
	if r.goal.met(median) {
		verdict = "yes"
	}
	if good > 0 && good < len(r.values) {
		verdict += fmt.Sprintf(", %d of %d", good, len(r.values))
	}
	return verdict
}

// bytesText writes a number of bytes as the goals do.
func bytesText(n float64) string {
	for _, unit := range units {
		if math.Abs(n) >= float64(unit.bytes) {
			return fmt.Sprintf("%.3g %s", n/float64(unit.bytes), unit.name)
		}
	}
	return fmt.Sprintf("%.0f B", n)
}

// secondsText writes a time.
func secondsText(s float64) string {
	if s < 1 {
		return fmt.Sprintf("%.3g ms", s*1000)
	}
	return fmt.Sprintf("%.3g s", s)
}
