package pages

import (
	"slices"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/route"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/snippet"
)

// A logPage shows the transparency log: the signed checkpoint, how to verify the log, and its latest entries
// as far as the visitor may see them.
type logPage struct {
	page
	Facts   []fact
	Verify  snippet.Code
	Watch   snippet.Code // for who may read everything
	Whole   bool         // the visitor may see all entries
	Looked  int          // how many entries were looked at
	Entries []logRow
}

// A logRow has the entries of a version that follow one another: one for each platform.
type logRow struct {
	Number  link // to the proofs, if they are public
	Event   chip
	Of      link // the version, if it is there
	Version string
	Package string // the platform, or how many there are
	Time    time.Time
}

// log answers with the page of the transparency log.
func (v *visit) log() (*answer, error) {
	seen, err := v.view.Log()
	if err != nil {
		return nil, err
	}
	frame, err := v.page("Transparency log")
	if err != nil {
		return nil, err
	}
	p := logPage{page: frame, Whole: seen.Whole, Looked: int(seen.Looked), Entries: v.logRows(seen.Latest)}
	p.Facts = []fact{
		{Term: "Name", Text: seen.Origin},
		{Term: "Entries", Text: humanize.Comma(seen.Size)},
		{Term: "Root hash", Text: abbreviated(seen.Root.String()), Full: seen.Root.String()},
	}
	for _, key := range seen.Keys {
		term := "Key"
		if !key.Until.IsZero() {
			term = "Key until " + key.Until.UTC().Format(time.DateOnly)
		}
		p.Facts = append(p.Facts, fact{Term: term, Text: key.Line, Full: key.Line})
	}
	if seen.Path != "" {
		p.Facts = append(p.Facts, fact{Term: "Checkpoint", Text: "as it is signed", URL: seen.Path + "/checkpoint"})
	}
	host := address.DisplayHostname(v.view.Hostname())
	p.Verify.Text = "terraform init\ncaddy-terraform-registry verify"
	p.Watch.Text = "caddy-terraform-registry verify --watch " + host
	return pageAnswer("log", p)
}

// eventTones are the tones of what an entry says.
var eventTones = map[string]string{"offered": "good", "restored": "good", "withdrawn": "warn"}

// logRows returns the rows of entries, the latest first.
func (v *visit) logRows(entries []handlers.SeenEntry) (rows []logRow) {
	var last handlers.SeenEntry
	first, packages := int64(0), 0 // of the row
	links := make(map[string]string)
	for _, e := range entries {
		if len(rows) > 0 && e.Number == last.Number-1 && e.Event == last.Event && e.Address == last.Address && e.Version == last.Version {
			row := &rows[len(rows)-1]
			packages++
			row.Package = count(packages, "platform", "platforms")
			row.Number.Text = humanize.Comma(e.Number) + "–" + humanize.Comma(first)
			row.Time, last = e.Time, e
			continue
		}
		name := e.Address.String()
		if _, known := links[name+" "+e.Version]; !known {
			links[name+" "+e.Version] = v.versionURL(e.Address, e.Version)
		}
		row := logRow{
			Number: link{humanize.Comma(e.Number), e.Proof}, Event: chip{Label: string(e.Event), Tone: eventTones[string(e.Event)]},
			Of: link{name, links[name+" "+e.Version]}, Version: e.Version, Time: e.Time,
		}
		if e.Platform != (address.Platform{}) {
			row.Package = e.Platform.String()
		}
		rows, first, packages, last = append(rows, row), e.Number, 1, e
	}
	return rows
}

// versionURL returns the URL of the page of a version that is offered or withdrawn; empty for
// others, and if the page at the address shows what is hosted instead of what is mirrored, or the
// reverse: the name in the request may turn a mirrored address into a hosted one.
func (v *visit) versionURL(a address.Address, version string) string {
	there := false
	if a.IsModule() {
		m, _ := v.view.Module(a)
		o := m.Version(version)
		there = o != nil && v.view.Hosted(a.WithHostname(o.Hostname)) == v.view.Hosted(a)
	} else {
		p, _ := v.view.Provider(a)
		r := p.Release(version)
		there = r != nil && v.view.Hosted(a.WithHostname(r.Hostname)) == v.view.Hosted(a)
	}
	if !there && v.view.Own(a) {
		withdrawn, _ := v.view.Withdrawn(a)
		there = slices.ContainsFunc(withdrawn, func(w index.WithdrawnVersion) bool { return w.Version == version })
	}
	if !there {
		return ""
	}
	return v.url(route.ForAddress(a).WithVersion(version))
}
