package changes

import (
	"fmt"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/caddy-terraform/caddy-terraform-registry/index/content"
)

// A File is a file that differs.
type File struct {
	Kind Kind
	Path string
}

// Files returns the files that differ between two packages, by path.
func Files(from, to *content.Files) (list []File) {
	for i, j := 0, 0; i < len(from.List) || j < len(to.List); {
		switch {
		case j == len(to.List) || i < len(from.List) && from.List[i].Path < to.List[j].Path:
			list = append(list, File{Removed, from.List[i].Path})
			i++
		case i == len(from.List) || to.List[j].Path < from.List[i].Path:
			list = append(list, File{Added, to.List[j].Path})
			j++
		default:
			if from.List[i].Sum != to.List[j].Sum {
				list = append(list, File{Changed, to.List[j].Path})
			}
			i, j = i+1, j+1
		}
	}
	return list
}

// A Line is a line of the comparison of two texts.
type Line struct {
	Sign     byte // '+', '-', ' ' for a line of both, or '@' for a gap
	Text     string
	Old, New int // its numbers; zero if a text does not have it
}

// Lines compares two texts by lines, with three lines around each difference. It takes
// time in proportion to the lines and their logarithm, whatever the texts.
func Lines(from, to string) (lines []Line) {
	unified := string(diff.Diff("", []byte(withoutReturns(from)), "", []byte(withoutReturns(to))))
	old, now := 0, 0
	for i, line := range strings.Split(unified, "\n") {
		if i < 3 || line == "" {
			continue // the names of the files
		}
		d := Line{Sign: line[0], Text: line[1:]}
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
