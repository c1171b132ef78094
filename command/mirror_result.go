package command

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/dustin/go-humanize"
)

// A mirrorResult is what came of a run of the mirror command.
type mirrorResult struct {
	*mirroring
	outcomes    []outcome
	interrupted bool
}

// complete tells whether everything is there that was asked for.
func (r *mirrorResult) complete() bool {
	_, failed := r.counts()
	return failed == 0 && len(r.unresolved)+len(r.unlocked) == 0 && !r.interrupted
}

func (r *mirrorResult) counts() (added, failed int) {
	for _, o := range r.outcomes {
		switch {
		case o.err != nil:
			failed++
		case o.added:
			added++
		}
	}
	return added, failed
}

func (r *mirrorResult) writeText(out, errs io.Writer) error {
	if err := r.writeAdded(out); err != nil {
		return err
	}
	r.writeFailed(errs)
	if len(r.unresolved) > 0 {
		fmt.Fprintln(errs, "MAY NEED MORE")
		for _, u := range r.unresolved {
			fmt.Fprintln(errs, printable(u.String()))
		}
		fmt.Fprintln(errs)
	}
	if len(r.unlocked) > 0 {
		fmt.Fprintln(errs, "NOT LOCKED")
		for _, u := range r.unlocked {
			fmt.Fprintln(errs, printable(u.String()))
		}
		fmt.Fprint(errs, "The configurations need it, and what it would be is not known: have `terraform providers lock` or `init` write the lock files anew.\n\n")
	}
	if r.interrupted {
		fmt.Fprint(errs, "Interrupted: the same command goes on from here.\n\n")
	}
	_, err := fmt.Fprintln(out, r.summary())
	return err
}

func (r *mirrorResult) writeAdded(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	heading, size := "ADDED\tVERSION\tPLATFORM\tSIZE", func(o outcome) string { return "\t" + humanize.Bytes(uint64(o.size)) }
	if r.dry { // its size is not known
		heading, size = "WOULD BE ADDED\tVERSION\tPLATFORM", func(outcome) string { return "" }
	}
	for _, o := range r.outcomes {
		if o.err != nil || !o.added {
			continue
		}
		if heading != "" {
			fmt.Fprintln(w, heading)
			heading = ""
		}
		fmt.Fprintln(w, o.what+size(o))
	}
	if heading == "" {
		fmt.Fprintln(w)
	}
	return w.Flush()
}

func (r *mirrorResult) writeFailed(errs io.Writer) {
	heading := "FAILED\n"
	for _, o := range r.outcomes {
		if o.err == nil {
			continue
		}
		asked := ""
		if len(o.asked) > 0 {
			asked = " (for " + strings.Join(o.asked, ", ") + ")"
		}
		fmt.Fprintf(errs, "%s%s: %s\n", heading, strings.ReplaceAll(o.what, "\t", " "), printable(o.err.Error()+asked))
		heading = ""
	}
	if heading == "" {
		fmt.Fprintln(errs)
	}
}

// summary counts, in a few sentences.
func (r *mirrorResult) summary() string {
	added, failed := r.counts()
	var size int64
	for _, o := range r.outcomes {
		if o.added && o.err == nil {
			size += o.size
		}
	}
	var b strings.Builder
	if r.dry {
		fmt.Fprintf(&b, "Would be added to %s: %s.", r.into, count(added, "package"))
	} else {
		fmt.Fprintf(&b, "Added to %s: %s, %s.", r.into, count(added, "package"), humanize.Bytes(uint64(size)))
	}
	fmt.Fprintf(&b, " There already: %d. Failed: %d.", len(r.outcomes)-added-failed, failed)
	if len(r.leftOut) > 0 {
		fmt.Fprintf(&b, " Left out as the registry's own: %s.", strings.Join(r.leftOut, ", "))
	}
	if len(r.skipped) > 0 {
		fmt.Fprintf(&b, " Skipped, since no registry has legacy providers: %s.", strings.Join(r.skipped, ", "))
	}
	if r.thisMachine {
		fmt.Fprintf(&b, "\nThat is for %s, this machine's platform: name others with --platform.", r.platforms[0])
	}
	return b.String()
}
