package publish

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
	"github.com/caddy-terraform/caddy-terraform-registry/command/remote"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
)

// A result is the result of a run of the publish command.
type result struct {
	to          remote.Destination
	dry         bool
	unasked     string // why the registry was not asked in a dry run, in a sentence; empty: it was
	outcomes    []outcome
	skipped     []string // why other tags are not published, in sentences
	interrupted bool
}

// complete reports whether everything is published and, with --wait, listed. In a dry run, it
// reports whether everything could be published.
func (r *result) complete() bool {
	return !slices.ContainsFunc(r.outcomes, func(o outcome) bool {
		return o.unlisted || o.status != nowPublished && o.status != alreadyThere && o.status != wouldBeSent
	})
}

// failed reports whether the registry did not answer about something.
func (r *result) failed() bool {
	return r.interrupted || slices.ContainsFunc(r.outcomes, func(o outcome) bool { return o.status == notTransferred })
}

func (r *result) Status() int {
	switch {
	case r.failed():
		return cli.ExitUsage
	case !r.complete():
		return cli.ExitProblem
	}
	return 0
}

func (r *result) WriteText(out, errs io.Writer) error {
	if err := r.writeFiles(out); err != nil {
		return err
	}
	r.writeProblems(errs)
	r.writeReasons(errs)
	r.writeNotes(errs)
	_, err := io.WriteString(out, r.summary())
	return err
}

// statusTexts are the statuses of files in the table.
var statusTexts = map[status]string{alreadyThere: "already there", notSent: "not sent", wouldBeSent: "would be sent"}

func (s status) String() string {
	if text, ok := statusTexts[s]; ok {
		return text
	}
	return string(s)
}

// writeFiles writes a table of files, unless nothing was sent for what was found before.
func (r *result) writeFiles(out io.Writer) error {
	rows := [][]string{{"FILE", "SIZE", "RESULT"}}
	tagged := slices.ContainsFunc(r.outcomes, func(o outcome) bool { return o.tag != "" })
	if tagged {
		rows[0] = append([]string{"TAG"}, rows[0]...)
	}
	sent := false
	for _, o := range r.outcomes {
		for _, f := range o.outcomes {
			row := []string{f.Name, humanize.Bytes(uint64(f.size)), f.status.String()}
			if tagged {
				row = append([]string{cli.Printable(o.tag)}, row...)
			}
			rows = append(rows, row)
			sent = sent || f.status != notSent
		}
	}
	if !sent {
		return nil
	}
	if err := cli.WriteTable(out, rows); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out)
	return err
}

// writeProblems writes why versions were not sent, as check does.
func (r *result) writeProblems(errs io.Writer) {
	var problems []index.Problem
	for _, o := range r.outcomes {
		problems = append(problems, o.problems...)
	}
	cli.WriteProblems(errs, "CANNOT BE PUBLISHED", problems)
}

// writeReasons writes the answers of the registry, and advice.
func (r *result) writeReasons(errs io.Writer) {
	b := new(strings.Builder)
	write := func(subject string, reasons []string) {
		if len(reasons) == 0 {
			return
		}
		fmt.Fprintln(b, subject)
		for _, reason := range reasons {
			b.WriteString(cli.Wrap(asSentence(reason), cli.Indent))
		}
	}
	for _, o := range r.outcomes {
		for _, f := range o.outcomes {
			write(f.Name, f.reasons)
		}
		write(fmt.Sprintf("%s %s", o.address, o.version), o.reasons)
	}
	if b.Len() > 0 {
		fmt.Fprintf(errs, "REFUSED BY %s\n%s\n", r.to, b)
	}
}

// asSentence ends a message as a sentence. Messages of the registry have no full stop.
func asSentence(message string) string {
	if strings.HasSuffix(message, ".") {
		return message
	}
	return cli.Sentence(message)
}

func (r *result) writeNotes(errs io.Writer) {
	b := new(strings.Builder)
	for _, o := range r.outcomes {
		for _, message := range o.messages() {
			b.WriteString(cli.Wrap(fmt.Sprintf("%s %s: %s.", o.address, o.version, strings.TrimSuffix(message, ".")), 0))
		}
		if o.status == alreadyThere {
			continue // its notes were printed when it was published
		}
		for _, note := range o.notes {
			if o.tag != "" {
				note = "The tag " + cli.Printable(o.tag) + ": " + note
			}
			b.WriteString(cli.Wrap(cli.Printable(note), 0))
		}
	}
	for _, sentence := range r.skipped {
		b.WriteString(cli.Wrap(sentence, 0))
	}
	if r.interrupted {
		b.WriteString("Interrupted: run the same command again to continue.\n")
	}
	if b.Len() > 0 {
		fmt.Fprintln(errs, b)
	}
}

// summary lists the versions by their status, in a few sentences.
func (r *result) summary() string {
	versions := make(map[status]*versionLists)
	unoffered, unseen := new(versionLists), new(versionLists)
	for _, o := range r.outcomes {
		switch {
		case o.unoffered:
			unoffered.add(o)
			continue
		case o.unseen:
			unseen.add(o)
			continue
		}
		status := o.status
		if status == notTransferred || status == notSent {
			status = notTaken // the reason is printed above
		}
		if versions[status] == nil {
			versions[status] = new(versionLists)
		}
		versions[status].add(o)
	}
	var sentences []string
	for _, s := range []struct {
		status status
		text   string
	}{
		{nowPublished, "Published"},
		{alreadyThere, "Published before, with the same bytes"},
		{wouldBeSent, "Can be published"},
		{nowStaged, "Sent, and not complete"},
		{notTaken, "Not published"},
	} {
		if list := versions[s.status]; list != nil {
			sentences = append(sentences, fmt.Sprintf("%s: %s.", s.text, list))
		}
	}
	if len(unoffered.addresses) > 0 {
		sentences = append(sentences, fmt.Sprintf("In the registry, and not offered yet: %s.", unoffered))
	}
	if len(unseen.addresses) > 0 {
		sentences = append(sentences, fmt.Sprintf("Published, not confirmed: %s. --wait needs a token with the right to read it.", unseen))
	}
	if r.dry {
		sentences = append(sentences, "This was a dry run: nothing has been sent.")
		if r.unasked != "" {
			sentences = append(sentences, "The registry was not asked. "+r.unasked)
		}
	}
	return cli.Wrap(strings.Join(sentences, " "), 0)
}

// versionLists are versions by their addresses.
type versionLists struct {
	addresses []address.Address // in the order they came
	versions  map[address.Address][]string
}

func (l *versionLists) add(o outcome) {
	if l.versions == nil {
		l.versions = make(map[address.Address][]string)
	}
	if l.versions[o.address] == nil {
		l.addresses = append(l.addresses, o.address)
	}
	l.versions[o.address] = append(l.versions[o.address], o.version)
}

// String lists some of them: acme/a/aws 1.1.0, 1.0.0; acme/b/aws 2.0.0.
func (l *versionLists) String() string {
	lists := make([]string, len(l.addresses))
	for i, a := range l.addresses {
		lists[i] = fmt.Sprintf("%s %s", a, cli.List(l.versions[a]))
	}
	return strings.Join(lists, "; ")
}

// A document is the output of `publish --json`.
type document struct {
	To          string             `json:"to"` // the registry
	Address     string             `json:"address"`
	DryRun      bool               `json:"dry_run"`
	Complete    bool               `json:"complete"`
	Interrupted bool               `json:"interrupted"`
	Versions    []publishedVersion `json:"versions"`
	Skipped     []string           `json:"skipped"`
}

// A publishedVersion is an outcome in JSON.
type publishedVersion struct {
	Address   string          `json:"address"`
	Version   string          `json:"version"`
	Status    status          `json:"status"`
	Unoffered bool            `json:"not_offered,omitempty"`   // it is published, and not offered yet
	Unseen    bool            `json:"not_confirmed,omitempty"` // --wait could not read whether it is listed
	Tag       string          `json:"tag,omitempty"`
	Commit    string          `json:"commit,omitempty"`
	Date      *time.Time      `json:"date,omitempty"` // of the commit
	Files     []publishedFile `json:"files"`
	Problems  []index.Problem `json:"problems"`
	Errors    []string        `json:"errors"`
	Notes     []string        `json:"notes"` // the messages of the registry are the first
}

// A publishedFile is a fileOutcome in JSON.
type publishedFile struct {
	Name   string   `json:"name"`
	Size   int64    `json:"size"` // in bytes
	SHA256 string   `json:"sha256"`
	Status status   `json:"status"`
	Errors []string `json:"errors"`
}

func (r *result) Document() any {
	d := document{
		To: r.to.String(), Address: r.to.Address.String(), DryRun: r.dry, Complete: r.complete(), Interrupted: r.interrupted,
		Versions: []publishedVersion{}, Skipped: append([]string{}, r.skipped...),
	}
	for _, o := range r.outcomes {
		v := publishedVersion{
			Address: o.address.String(), Version: o.version, Status: o.status, Unoffered: o.unoffered, Unseen: o.unseen, Tag: o.tag, Commit: o.commit, Files: []publishedFile{},
			Problems: append([]index.Problem{}, o.problems...), Errors: append([]string{}, o.reasons...), Notes: append(append([]string{}, o.messages()...), o.notes...),
		}
		if !o.date.IsZero() {
			v.Date = &o.date
		}
		for _, f := range o.outcomes {
			v.Files = append(v.Files, publishedFile{Name: f.Name, Size: f.size, SHA256: f.sha256.String(), Status: f.status, Errors: append([]string{}, f.reasons...)})
		}
		d.Versions = append(d.Versions, v)
	}
	return d
}
