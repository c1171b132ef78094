package verify

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog/verify"
)

// A result prints a report. Nothing of an answer reaches the terminal as it came.
type result struct {
	*verify.Report
	file string // with the checkpoints
}

func (r result) Document() any { return r.Report }

// Status implements cli.Result. What is wrong comes before what is not known.
func (r result) Status() int {
	switch {
	case r.Count(verify.Found) > 0 || len(r.Alarms()) > 0:
		return cli.ExitProblem
	case r.Count(verify.Unanswered) > 0 || r.Failed() || r.Unwritten != "":
		return cli.ExitUsage
	}
	return 0
}

// WriteText implements cli.Result.
func (r result) WriteText(out, errs io.Writer) error {
	if err := cli.WriteTable(out, r.rows()); err != nil {
		return err
	}
	fmt.Fprintln(out)
	b := new(strings.Builder)
	for _, a := range r.Alarms() {
		b.WriteString(alarmText(a))
	}
	var findings, unanswered, without []*verify.Item
	var deprecated []string
	for _, i := range r.Items {
		switch i.Status {
		case verify.Found:
			findings = append(findings, i)
		case verify.Unanswered:
			unanswered = append(unanswered, i)
		case verify.NoLog:
			without = append(without, i)
		}
		if i.Deprecated != "" {
			text := fmt.Sprintf("%s %s\n%s", cli.Printable(i.Address), cli.Printable(i.Version), cli.Wrap(cli.Printable(i.Deprecated), cli.Indent))
			if !slices.Contains(deprecated, text) {
				deprecated = append(deprecated, text)
			}
		}
	}
	cli.WriteSection(b, "FINDINGS", findings, r.findingText)
	cli.WriteSection(b, "NOT KNOWN", grouped(unanswered), groupText)
	cli.WriteSection(b, "WITHOUT A LOG", grouped(without), groupText)
	cli.WriteSection(b, "DEPRECATED", deprecated, func(text string) string { return text })
	r.writeLogs(b)
	b.WriteString(cli.Wrap(r.summary(), 0))
	_, err := io.WriteString(out, b.String())
	if r.Unwritten != "" {
		fmt.Fprint(errs, cli.Wrap(cli.Sentence("what was seen of the logs could not be written: "+cli.Printable(r.Unwritten)), 0))
	}
	return err
}

// rows returns the table: each version once, unless folders differ in it.
func (r result) rows() [][]string {
	rows := [][]string{{"ADDRESS", "VERSION", "ON RECORD", "RESULT"}}
	for _, i := range r.Items {
		since := "-"
		if i.Since != nil {
			since = i.Since.Format(time.DateOnly)
		} else if i.Status == verify.OK {
			since = "from the start"
		}
		var kinds []string
		for _, f := range i.Findings {
			if !slices.Contains(kinds, string(f.Kind)) {
				kinds = append(kinds, string(f.Kind))
			}
		}
		status := string(i.Status)
		if len(kinds) > 0 {
			status = strings.Join(kinds, ", ")
		}
		row := []string{cli.Printable(i.Address), cmp.Or(cli.Printable(i.Version), "-"), since, status}
		if !slices.ContainsFunc(rows, func(other []string) bool { return slices.Equal(row, other) }) {
			rows = append(rows, row)
		}
	}
	return rows
}

// maxFiles bounds how many files of a package are named.
const maxFiles = 20

func (r result) findingText(i *verify.Item) string {
	b := new(strings.Builder)
	fmt.Fprintf(b, "%s %s", cli.Printable(i.Address), cli.Printable(i.Version))
	if len(r.Folders) > 1 {
		fmt.Fprintf(b, " in %s", cli.Printable(i.Folder))
	}
	fmt.Fprintln(b)
	for _, f := range i.Findings {
		where := ""
		if f.Where != "" {
			where = cli.Printable(f.Where) + ": "
		}
		b.WriteString(cli.Wrap(string(f.Kind)+": "+where+cli.Printable(f.Detail), cli.Indent))
		for n, d := range f.Files {
			if n == maxFiles {
				fmt.Fprintf(b, "%*s… and %s\n", 2*cli.Indent, "", cli.Count(len(f.Files)-n, "more file"))
				break
			}
			fmt.Fprintf(b, "%*s%-8s %s\n", 2*cli.Indent, "", d.Change, cli.Printable(d.File))
		}
	}
	return b.String()
}

// A group has the items for which the same is not known.
type group struct {
	why   string
	items []string
}

func grouped(items []*verify.Item) (groups []group) {
	for _, i := range items {
		text := i.Address + " " + i.Version
		at := slices.IndexFunc(groups, func(g group) bool { return g.why == i.Why })
		if at < 0 {
			at, groups = len(groups), append(groups, group{why: i.Why})
		}
		if !slices.Contains(groups[at].items, text) {
			groups[at].items = append(groups[at].items, text)
		}
	}
	return groups
}

func groupText(g group) string {
	text := cli.Wrap(cli.Sentence(cli.Printable(g.why)), 0)
	for _, item := range g.items {
		text += cli.Wrap(cli.Printable(item), cli.Indent)
	}
	return text
}

// alarmText says what is wrong with a log, with the checkpoints that show it.
func alarmText(a *verify.Alarm) string {
	b := new(strings.Builder)
	fmt.Fprintln(b, "THE LOG IS NOT WHAT IT WAS")
	b.WriteString(cli.Wrap(fmt.Sprintf("%s: %s", cli.Printable(a.URL), a.Kind), 0))
	b.WriteString(cli.Wrap(cli.Sentence(cli.Printable(a.Detail)), cli.Indent))
	for _, part := range []struct{ what, note string }{{"It was seen before:", a.Before}, {"It is shown now:", a.Now}} {
		if part.note == "" {
			continue
		}
		fmt.Fprintf(b, "\n%s\n\n", part.what)
		for line := range strings.Lines(part.note) {
			fmt.Fprintln(b, strings.TrimRight("    "+cli.Printable(strings.TrimRight(line, "\n")), " "))
		}
	}
	b.WriteString("\n" + cli.Wrap("Show both to others who use the registry, and ask its operator. Both are signed: nobody can deny them.", 0) + "\n")
	return b.String()
}

func (r result) writeLogs(b *strings.Builder) {
	for _, l := range r.Logs {
		name := cli.Printable(l.Origin)
		if name == "" {
			name = cli.Printable(l.URL)
		}
		switch {
		case l.Error != "":
			b.WriteString(cli.Wrap(cli.Sentence("the log "+name+" could not be checked: "+cli.Printable(l.Error)), 0))
		case l.Pinned == "first use":
			b.WriteString(cli.Wrap(fmt.Sprintf("The log %s is used for the first time here, with %s. Compare its key with the one that its operator tells, and commit %s.", name, cli.Count(l.Size, "entry"), cli.Printable(r.file)), 0))
			for _, key := range l.Keys {
				fmt.Fprintf(b, "    %s\n", cli.Printable(key))
			}
			for _, before := range l.Before {
				b.WriteString(cli.Wrap(fmt.Sprintf("It takes the place of %s, as was accepted by --update.", cli.Printable(before)), 0))
			}
		case l.Pinned == "hosts added":
			b.WriteString(cli.Wrap(fmt.Sprintf("Further hosts lead to the log %s. They are in %s now: commit it.", name, cli.Printable(r.file)), 0))
		case l.Pinned == "updated":
			b.WriteString(cli.Wrap(fmt.Sprintf("%s has the newest checkpoint of %s now.", cli.Printable(r.file), name), 0))
		}
		if len(l.More) > 0 {
			b.WriteString(alsoSigned(name, l.More))
		}
	}
	for _, host := range slices.Sorted(maps.Keys(r.Kept)) {
		b.WriteString(cli.Wrap(fmt.Sprintf("%s could not be reached. What it said on %s counts: a version may have been withdrawn since.", cli.Printable(host), r.Kept[host].Format(time.RFC3339)), 0))
	}
}

// summary gives the numbers in a few sentences.
func (r result) summary() string {
	text := fmt.Sprintf("As on record: %d of %s.", r.Count(verify.OK), cli.Count(len(r.Items), "version"))
	for _, s := range []struct {
		status verify.Status
		text   string
	}{{verify.Found, "With findings"}, {verify.NoLog, "Without a log"}, {verify.Unanswered, "Not known"}} {
		if n := r.Count(s.status); n > 0 {
			text += fmt.Sprintf(" %s: %d.", s.text, n)
		}
	}
	return text
}

// alsoSigned says that a log is signed by keys that are not kept.
func alsoSigned(name string, keys []string) string {
	return cli.Wrap(fmt.Sprintf("The log %s is also signed by the key %s. If its operator says that it is a new key, run this with --update; with --key, give both keys.", name, strings.Join(keys, ", ")), 0)
}
