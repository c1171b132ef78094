package main

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"
)

// A result is a row with the costs of each round.
type result struct {
	row
	costs, references []float64
}

// values returns the values that the goal bounds, one a round.
func (r result) values() []float64 {
	values := slices.Clone(r.costs)
	for i := range r.references {
		if r.goal.atLeast > 0 {
			values[i] = r.references[i] / r.costs[i]
		} else {
			values[i] = r.costs[i] / r.references[i]
		}
	}
	return values
}

// cells returns the columns of the table.
func (r result) cells() []string {
	ratio := func(v float64) string { return fmt.Sprintf("%.2f", v) }
	absolute := func(v float64) string { return strings.TrimSpace(humanize.SIWithDigits(v, 2, r.unit)) }
	text := ratio
	if r.against == "" {
		text = absolute
	}
	bound := "–"
	switch {
	case r.goal.atLeast > 0:
		bound = "≥ " + text(r.goal.atLeast)
	case r.goal.atMost > 0:
		bound = "≤ " + text(r.goal.atMost)
	}
	cost, against := absolute(median(r.costs)), "–"
	switch {
	case len(r.references) > 0:
		against = r.against + ": " + absolute(median(r.references))
	case r.against != "":
		return []string{r.what, cost, r.against + ": not on this machine", bound, "–", "–", "–"}
	}
	values := r.values()
	spread := fmt.Sprintf("%s – %s (%d)", text(slices.Min(values)), text(slices.Max(values)), len(values))
	return []string{r.what, cost, against, bound, text(median(values)), spread, r.verdict(values)}
}

// verdict says whether the median meets the goal, and how many rounds do if they
// disagree.
func (r result) verdict(values []float64) string {
	met := func(v float64) bool { return v >= r.goal.atLeast && (r.goal.atMost == 0 || v <= r.goal.atMost) }
	if r.goal == (goal{}) {
		return "–"
	}
	verdict := "no"
	if met(median(values)) {
		verdict = "yes"
	}
	good := 0
	for _, v := range values {
		if met(v) {
			good++
		}
	}
	if good > 0 && good < len(values) {
		verdict += fmt.Sprintf(", %d of %d", good, len(values))
	}
	return verdict
}

// median returns the median of at least one value. x/perf/benchmath would add
// confidence intervals, which need more rounds than the heavy rows have. For everything
// else it would replace these few lines.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// A table has the results of a run, in Markdown.
type table struct {
	options *options
	results []result
	machine [][2]string
}

func (t table) write(out io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "`%s`\n\n", t.options.command)
	if t.options.quick {
		b.WriteString("**A quick run: it shows that everything works, and its numbers mean nothing.**\n\n")
	}
	if t.options.against != "" {
		b.WriteString("All ratios are this binary's cost divided by the other's: below 1 this one is cheaper.\n\n")
	}
	line := func(cells ...string) {
		for _, cell := range cells {
			b.WriteString("| " + strings.ReplaceAll(cell, "|", `\|`) + " ")
		}
		b.WriteString("|\n")
	}
	line("what", "registry", "against", "goal", "median", "spread", "met")
	line("---", "---", "---", "---", "---", "---", "---")
	for _, r := range t.results {
		line(r.cells()...)
	}
	b.WriteString("\n")
	line("machine", "")
	line("---", "---")
	for _, fact := range t.machine {
		line(fact[0], fact[1])
	}
	_, err := out.Write(b.Bytes())
	return err
}
