package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
)

// A report is what a run has found.
type report struct {
	settings *settings
	machine  []fact
	results  []result
	failed   []string
}

// A fact about where it was measured.
type fact struct{ name, value string }

func (r report) writeFile(name string) error {
	var b bytes.Buffer
	if err := r.write(&b); err != nil {
		return err
	}
	return os.WriteFile(name, b.Bytes(), 0o644)
}

func (r report) write(out io.Writer) error {
	var b bytes.Buffer
	b.WriteString("# Results\n\nWritten by `" + r.settings.command + "`; [README.md](README.md) says what the rows mean.\n\n")
	if r.settings.quick {
		b.WriteString("**A quick run: it shows that everything works, and its numbers mean nothing.**\n\n")
	}
	b.WriteString("Measured is the median of pairs taken in turns; the spread is the lowest and the highest, of so many pairs.\n\n")
	b.WriteString("| what | against | goal | measured | spread | met |\n|---|---|---|---|---|---|\n")
	for _, row := range r.results {
		c := row.cells()
		for _, cell := range append([]string{row.what, row.against}, c[:]...) {
			b.WriteString("| " + strings.ReplaceAll(cell, "|", `\|`) + " ")
		}
		b.WriteString("|\n")
	}
	b.WriteString("\n## In absolute numbers\n\nMedians. They are this machine's, and say nothing of another.\n\n")
	for _, row := range r.results {
		if len(row.details) == 0 {
			continue
		}
		fmt.Fprintf(&b, "%s, against %s:\n\n", row.what, row.against)
		for _, d := range row.details {
			fmt.Fprintf(&b, "- %s\n", d)
		}
		b.WriteString("\n")
	}
	b.WriteString("## The machine\n\n| | |\n|---|---|\n")
	for _, f := range r.machine {
		fmt.Fprintf(&b, "| %s | %s |\n", f.name, f.value)
	}
	_, err := out.Write(b.Bytes())
	return err
}
