package pages

import (
	"fmt"
	"html/template"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
)

// A diffLine is a line of the comparison of two texts.
type diffLine struct {
	Sign     byte // '+', '-', ' ' for a line of both, or '@' for a gap
	Text     string
	Old, New int // its numbers; zero if a text does not have it
}

// diffLines compares two texts by lines, with three lines around each difference. It takes
// time in proportion to the lines and their logarithm, whatever the texts.
func diffLines(from, to string) (lines []diffLine) {
	unified := string(diff.Diff("", []byte(withoutReturns(from)), "", []byte(withoutReturns(to))))
	old, now := 0, 0
	for i, line := range strings.Split(unified, "\n") {
		if i < 3 || line == "" {
			continue // the names of the files
		}
		d := diffLine{Sign: line[0], Text: line[1:]}
		switch d.Sign {
		case '@':
			var oldCount, newCount int
			if _, err := fmt.Sscanf(line, "@@ -%d,%d +%d,%d @@", &old, &oldCount, &now, &newCount); err != nil {
				continue
			}
			d.Text = ""
			if oldCount == 0 {
				old++ // an empty range is named by the line before it
			}
			if newCount == 0 {
				now++
			}
		case '-':
			d.Old, old = old, old+1
		case '+':
			d.New, now = now, now+1
		case ' ':
			d.Old, d.New, old, now = old, now, old+1, now+1
		default: // no line break at the end of a text
			continue
		}
		lines = append(lines, d)
	}
	return lines
}

// withoutReturns returns a text with plain line breaks.
func withoutReturns(text string) string { return strings.ReplaceAll(text, "\r\n", "\n") }

// diffHTML writes the lines of a comparison, each with its sign, so that no one needs the
// colours. The lines of the newer text can be linked to.
func diffHTML(lines []diffLine) template.HTML {
	var b strings.Builder
	number := func(n int) {
		if b.WriteString(`<i data-n="`); n > 0 {
			fmt.Fprint(&b, n)
		}
		b.WriteString(`"></i>`)
	}
	for i, l := range lines {
		if l.Sign == '@' {
			if i > 0 {
				b.WriteString(`<span class="gap">⋯` + "\n</span>")
			}
			continue
		}
		b.WriteString("<span")
		if l.New > 0 {
			fmt.Fprintf(&b, ` id="L%d"`, l.New)
		}
		switch l.Sign {
		case '+':
			b.WriteString(` class="gi"`)
		case '-':
			b.WriteString(` class="gd"`)
		}
		b.WriteByte('>')
		number(l.Old)
		number(l.New)
		b.WriteByte(l.Sign)
		template.HTMLEscape(&b, []byte(l.Text))
		b.WriteString("\n</span>")
	}
	return template.HTML(b.String())
}
