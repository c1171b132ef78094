package command

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
)

// writeReport prints a report for people. It fits a terminal of the usual width
// but for paths, which are kept whole to be copied.
func writeReport(out io.Writer, r *index.Report) error {
	b := new(strings.Builder)
	writeOffered(b, r.Offered)
	writeNotes(b, r.Offered)
	writeProblems(b, "WITHHELD", r.Withheld)
	var ignored, temporary []index.Problem
	for _, p := range r.Ignored {
		if p.Reason == index.Temporary {
			temporary = append(temporary, p)
		} else {
			ignored = append(ignored, p)
		}
	}
	writeProblems(b, "IGNORED", ignored)
	if len(temporary) > 0 {
		fmt.Fprintln(b, "NOT LOOKED AT UNTIL RENAMED")
		for _, p := range temporary {
			fmt.Fprintln(b, printable(p.Path))
		}
		fmt.Fprintln(b)
	}
	if more := r.IgnoredTotal - len(r.Ignored); more > 0 {
		fmt.Fprintf(b, "… and %s more that are ignored.\n\n", count(more, "file"))
	}
	b.WriteString(wrap(summary(r), 0))
	if r.Hint != "" {
		b.WriteString("\n" + wrap(sentence(r.Hint), 0))
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// writeOffered lists the versions of each address below it.
func writeOffered(b *strings.Builder, offered []index.Offer) {
	if len(offered) == 0 {
		return
	}
	fmt.Fprintln(b, "OFFERED")
	for i := 0; i < len(offered); {
		n := i
		for n < len(offered) && offered[n].Kind == offered[i].Kind && offered[n].Address == offered[i].Address {
			n++
		}
		fmt.Fprintf(b, "%s %s\n", offered[i].Kind, printable(offered[i].Address))
		writeVersions(b, offered[i:n])
		i = n
	}
	fmt.Fprintln(b)
}

// writeVersions prints the columns of one address. Platforms that do not fit
// into the last one go on below.
func writeVersions(b *strings.Builder, offered []index.Offer) {
	version, signature := 0, 0
	for _, o := range offered {
		version, signature = max(version, len(o.Version)), max(signature, len(o.Signature))
	}
	for _, o := range offered {
		line := fmt.Sprintf("%*s%-*s", reportIndent, "", version, o.Version)
		if o.Signature != "" {
			line += fmt.Sprintf("  %-*s", signature, o.Signature)
		}
		if len(o.Platforms) == 0 {
			fmt.Fprintln(b, strings.TrimRight(line, " "))
			continue
		}
		column := len(line) + 2
		if column > terminalWidth-24 {
			column = 2 * reportIndent
			fmt.Fprintln(b, strings.TrimRight(line, " "))
			line = strings.Repeat(" ", column-2)
		}
		lines := strings.TrimLeft(wrap(strings.Join(o.Platforms, " "), column), " ")
		b.WriteString(line + "  " + lines)
	}
}

// writeNotes prints what the operator should know of things that are offered.
func writeNotes(b *strings.Builder, offered []index.Offer) {
	printed := false
	for _, o := range offered {
		for _, note := range o.Notes {
			if !printed {
				fmt.Fprintln(b, "NOTES")
				printed = true
			}
			fmt.Fprintf(b, "%s %s %s\n", o.Kind, printable(o.Address), o.Version)
			b.WriteString(wrap(printable(note), reportIndent))
		}
	}
	if printed {
		fmt.Fprintln(b)
	}
}

// writeProblems prints each path, and below it what it is of, why it is not
// offered and what to do.
func writeProblems(b *strings.Builder, title string, problems []index.Problem) {
	if len(problems) == 0 {
		return
	}
	fmt.Fprintln(b, title)
	for _, p := range problems {
		writeProblem(b, p, 0)
	}
	fmt.Fprintln(b)
}

func writeProblem(b *strings.Builder, p index.Problem, margin int) {
	of := strings.TrimSpace(p.Address + " " + p.Version)
	if of != "" {
		of += ": "
	}
	fmt.Fprintf(b, "%*s%s\n", margin, "", printable(p.Path))
	b.WriteString(wrap(printable(of)+string(p.Reason), margin+reportIndent))
	b.WriteString(wrap(printable(p.Detail), margin+reportIndent))
}

// summary counts, in one sentence.
func summary(r *index.Report) string {
	versions := make(map[string]int)
	addresses := make(map[string]int)
	seen := make(map[string]bool)
	for _, o := range r.Offered {
		versions[o.Kind]++
		if address := o.Kind + " " + o.Address; !seen[address] {
			seen[address] = true
			addresses[o.Kind]++
		}
	}
	var offered []string
	for _, kind := range []string{index.KindProvider, index.KindModule} {
		if addresses[kind] > 0 {
			offered = append(offered, fmt.Sprintf("%s in %s", count(addresses[kind], kind), count(versions[kind], "version")))
		}
	}
	sentence := "Nothing is offered"
	if len(offered) > 0 {
		sentence = "Offered: " + strings.Join(offered, ", ")
	}
	sentence += fmt.Sprintf(". Withheld: %d.", len(r.Withheld))
	if n := r.IgnoredTotal - r.TemporaryTotal; n > 0 {
		have := "have"
		if n == 1 {
			have = "has"
		}
		sentence += fmt.Sprintf(" Ignored: %s that %s no place in the tree.", count(n, "file"), have)
	}
	if r.TemporaryTotal > 0 {
		sentence += fmt.Sprintf(" Not looked at until renamed: %s.", count(r.TemporaryTotal, "file"))
	}
	return sentence
}

// printable quotes what comes from a file's name if it would change the look of
// a terminal, or of a table.
func printable(s string) string {
	for _, r := range s {
		if !unicode.IsPrint(r) {
			return strconv.Quote(s)
		}
	}
	return s
}

// count is a number of things.
func count(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}
