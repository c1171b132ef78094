package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode/utf8"
)

const (
	columnGap = 2

	// narrowest is the least width of a column.
	narrowest = 20
)

// WriteTable writes rows in columns. The first row is the heading. If a table is too wide for
// a terminal, its first column gets lines of its own. In a file or a pipe, each row stays one
// line.
func WriteTable(out io.Writer, rows [][]string) error {
	widths := columnWidths(rows)
	if _, atTerminal := out.(*fittedWriter); atTerminal && tableWidth(widths) > Width {
		return writeStacked(out, rows, widths[1:])
	}
	w := tabwriter.NewWriter(out, 0, 0, columnGap, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	return w.Flush()
}

// writeStacked writes the first cell of each row above the other cells, once for successive
// rows with the same first cell. If the other cells are still too wide, the widest column is
// made narrower.
func writeStacked(out io.Writer, rows [][]string, widths []int) error {
	if excess := Indent + tableWidth(widths) - Width; excess > 0 {
		widest := slices.Index(widths, slices.Max(widths))
		widths[widest] = max(widths[widest]-excess, narrowest)
	}
	var b strings.Builder
	for n, row := range rows {
		if n == 0 || row[0] != rows[n-1][0] {
			fmt.Fprintln(&b, row[0])
		}
		cells := make([][]string, len(row)-1)
		height := 0
		for i, cell := range row[1:] {
			cells[i] = brokenCell(cell, widths[i])
			height = max(height, len(cells[i]))
		}
		for l := range height {
			line := strings.Repeat(" ", Indent)
			for i, lines := range cells {
				text := ""
				if l < len(lines) {
					text = lines[l]
				}
				line += fmt.Sprintf("%-*s", widths[i]+columnGap, text)
			}
			fmt.Fprintln(&b, strings.TrimRight(line, " "))
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// brokenCell breaks a cell after spaces and commas.
func brokenCell(text string, width int) (lines []string) {
	for len(text) > width {
		end := strings.LastIndexAny(text[:width], " ,")
		if end < 0 {
			end = strings.IndexAny(text, " ,")
		}
		if end < 0 {
			break
		}
		lines = append(lines, strings.TrimSpace(text[:end+1]))
		text = strings.TrimLeft(text[end+1:], " ")
	}
	return append(lines, text)
}

// columnWidths returns the widths that the columns need.
func columnWidths(rows [][]string) []int {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	return widths
}

func tableWidth(widths []int) (sum int) {
	for _, w := range widths {
		sum += w + columnGap
	}
	return sum - columnGap
}
