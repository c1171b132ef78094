package module

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
)

// writeReport prints a report as tables.
func writeReport(out io.Writer, r *index.Report) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if len(r.Offered) > 0 {
		fmt.Fprintln(w, "OFFERED\tVERSION\tSIGNED BY\tPLATFORMS")
		for _, o := range r.Offered {
			fmt.Fprintf(w, "%s %s\t%s\t%s\t%s\n", o.Kind, o.Address, o.Version,
				cmp.Or(o.Signature, "-"), cmp.Or(strings.Join(o.Platforms, " "), "-"))
		}
		fmt.Fprintln(w)
	}
	if err := w.Flush(); err != nil { // columns are aligned up to here
		return err
	}
	writeNotes(out, r.Offered)
	if len(r.Withheld) > 0 {
		fmt.Fprintln(w, "WITHHELD\tREASON\tWHAT TO DO")
		for _, p := range r.Withheld {
			fmt.Fprintf(w, "%s\t%s\t%s\n", printable(p.Path), p.Reason, printable(p.Detail))
		}
		fmt.Fprintln(w)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out, summary(r))
	return err
}

// writeNotes prints what the operator should know of things that are offered.
func writeNotes(out io.Writer, offered []index.Offer) {
	printed := false
	for _, o := range offered {
		for _, note := range o.Notes {
			if !printed {
				fmt.Fprintln(out, "NOTES")
				printed = true
			}
			fmt.Fprintf(out, "%s %s %s: %s\n", o.Kind, o.Address, o.Version, printable(note))
		}
	}
	if printed {
		fmt.Fprintln(out)
	}
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
	if r.IgnoredTotal > 0 {
		have := "have"
		if r.IgnoredTotal == 1 {
			have = "has"
		}
		sentence += fmt.Sprintf(" Ignored: %s that %s no place in the tree.", count(r.IgnoredTotal, "file"), have)
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
