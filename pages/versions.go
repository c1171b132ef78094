package pages

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/dustin/go-humanize"
	version "github.com/hashicorp/go-version"
	"golang.org/x/mod/semver"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/changes"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/route"
	"github.com/caddy-terraform/caddy-terraform-registry/registryhcl"
)

var latestChip = chip{Label: "latest", Tone: "good"}

var withdrawnChip = chip{Label: "withdrawn", Tone: "bad"}

// versionChips say whether a version is the latest, a prerelease or deprecated.
func versionChips(text string, latest bool, deprecated *registryhcl.Notice) []chip {
	var chips []chip
	if latest {
		chips = append(chips, latestChip)
	}
	if semver.Prerelease("v"+text) != "" {
		chips = append(chips, chip{Label: "prerelease"})
	}
	if deprecated != nil {
		chips = append(chips, chip{Label: "deprecated", Tone: "warn"})
	}
	return chips
}

// lastChip returns the chip for which a menu has room, or nil.
func lastChip(chips []chip) *chip {
	if len(chips) == 0 {
		return nil
	}
	return &chips[len(chips)-1]
}

// versionNotices returns the notices for a version whose bytes have changed, that is
// deprecated, or that is not the latest.
func versionNotices(text, latest string, changed []index.ChangedBytes, deprecated *registryhcl.Notice, useLatest *link) []notice {
	notices := changedNotices(changed)
	if deprecated != nil {
		n := notice{Tone: "warn", Title: "This version is deprecated.", Text: deprecated.Reason}
		if deprecated.Link != "" {
			n.Link = &link{"Read more", deprecated.Link}
		}
		notices = append(notices, n)
	}
	this, err := version.NewVersion(text)
	newest, newestErr := version.NewVersion(latest)
	switch {
	case err != nil || newestErr != nil || text == latest:
	case this.LessThan(newest):
		notices = append(notices, notice{Title: "There is a newer version.", Link: useLatest})
	case this.Prerelease() != "":
		notices = append(notices, notice{Title: "This is a prerelease.", Link: useLatest})
	}
	return notices
}

// changedNotices tells users that a version which they have locked or installed before
// has other bytes now.
func changedNotices(changed []index.ChangedBytes) (notices []notice) {
	for _, c := range changed {
		n := notice{Tone: "bad", Title: "The files of this version have changed.",
			Text: fmt.Sprintf("Since it was first offered they were replaced, as was noticed on %s: %s was %s. Who installs it now gets other files than before.", c.Noticed.Format(time.DateOnly), c.Is, c.Was)}
		if c.Platform != "" {
			n.Title = "The package for " + c.Platform + " has changed."
			n.Text = fmt.Sprintf("Since it was first offered it was replaced, as was noticed on %s: %s was %s. A lock file that has the old hash refuses it; ask the operator of this registry which one is right.", c.Noticed.Format(time.DateOnly), c.Is, c.Was)
		}
		notices = append(notices, n)
	}
	return notices
}

// maxMenu is how many versions a menu has.
const maxMenu = 20

// newVersionMenu returns the menu of n versions, the newest first. current is the index
// of the version that is shown. all is the URL of the list of all versions.
func newVersionMenu(n, current int, all string, link func(i int) versionLink) versionMenu {
	menu := versionMenu{Current: link(current).Version}
	if n == 1 {
		return menu
	}
	for i := range n {
		if i >= maxMenu && i != current {
			continue
		}
		l := link(i)
		l.Current = i == current
		menu.Versions = append(menu.Versions, l)
	}
	if n > maxMenu {
		menu.All.Text, menu.All.URL = "All "+count(n, "version", "versions"), all
	}
	return menu
}

// A versionGroup has the rows of the versions with one major version.
type versionGroup[R versioned] struct {
	Title string // "1.x"
	Rows  []R
}

// versioned is a row of a list of versions.
type versioned interface{ number() string }

// groupVersions merges the rows of offered and of withdrawn versions, both with the
// newest first, and groups them by major version. Withdrawn versions are listed too, so
// that their users learn of the withdrawal.
func groupVersions[R versioned](offered, withdrawn []R) []versionGroup[R] {
	var groups []versionGroup[R]
	for len(offered)+len(withdrawn) > 0 {
		from := &offered
		if len(offered) == 0 || len(withdrawn) > 0 && newer(withdrawn[0].number(), offered[0].number()) {
			from = &withdrawn
		}
		row := (*from)[0]
		*from = (*from)[1:]
		title := row.number()
		if v, err := version.NewVersion(title); err == nil {
			title = strconv.FormatInt(v.Segments64()[0], 10) + ".x"
		}
		if len(groups) == 0 || groups[len(groups)-1].Title != title {
			groups = append(groups, versionGroup[R]{Title: title})
		}
		last := &groups[len(groups)-1]
		last.Rows = append(last.Rows, row)
	}
	return groups
}

// newer reports whether version a is newer than b.
func newer(a, b string) bool {
	va, errA := version.NewVersion(a)
	vb, errB := version.NewVersion(b)
	return errA == nil && errB == nil && address.CompareVersions(va, vb) > 0
}

// versions returns the rows of all versions.
func (m *moduleView) versions() []versionGroup[versionRow] {
	var offered, withdrawn []versionRow
	var summaries summaryCache
	used := downloads(m.view.Usage(m.route.Address))
	for i, v := range m.module.Versions {
		row := versionRow{
			Used:    used.summary(v.Version),
			Version: v.Version, URL: m.url(m.route.WithVersion(v.Version)), Published: v.Published(), Size: size(v.Archive.Size), Chips: m.chipsOf(v),
		}
		if n := v.Deprecated(); n != nil {
			row.Reason = n.Reason
		}
		if i+1 < len(m.module.Versions) {
			row.Added, row.Removed = summaries.difference(m.module.Versions[i+1], v)
			row.Compare = withQuery(row.URL, "tab", tabChanges)
		}
		offered = append(offered, row)
	}
	for _, w := range m.module.Withdrawn() {
		withdrawn = append(withdrawn, versionRow{
			Version: w.Version, URL: m.url(m.route.WithVersion(w.Version)), Reason: w.Notice.Reason, Chips: []chip{withdrawnChip},
		})
	}
	return groupVersions(offered, withdrawn)
}

// A summaryCache decodes each summary only once for a list that compares every version
// with the next.
type summaryCache struct {
	of    *index.ModuleVersion
	names []string
	cut   bool // there may be more
}

// difference returns the names that the root of a version has more and fewer than the
// root of another version. Of versions with so many names that one may lack some, it is not known.
func (c *summaryCache) difference(from, to *index.ModuleVersion) (more, less []string) {
	now := *c
	if c.of != to {
		now = summarised(to)
	}
	if *c = summarised(from); c.cut || now.cut {
		return nil, nil
	}
	return changes.Names(c.names, now.names)
}

func summarised(v *index.ModuleVersion) summaryCache {
	s := v.Summary()
	return summaryCache{v, slices.Concat(s.Inputs, s.Outputs), s.MayLackNames()}
}

// versionFacts returns what the About of a version says of its publication: when, on which record, and
// how often it was downloaded since.
func (v *visit) versionFacts(version string, published time.Time) []fact {
	facts := append([]fact{{Term: "Published", Time: published}}, v.recordFacts(v.route.Address, version)...)
	return append(facts, downloads(v.view.Usage(v.route.Address)).facts(version)...)
}

// recordFacts returns where the transparency log has a version, if it has.
func (v *visit) recordFacts(a address.Address, version string) []fact {
	first, proof, ok := v.view.Appearance(a, version)
	if !ok {
		v.unrecorded = v.site.Registry.Log != nil
		return nil
	}
	since := ", since " + first.Time.Format("2 January 2006")
	if first.Found {
		since = ", there when it was begun"
	}
	f := fact{Term: "On record", Text: "entry " + humanize.Comma(first.Number), URL: proof, More: since}
	f.Of = link{"the log", v.url(route.Route{Kind: route.Log})}
	return []fact{f}
}
