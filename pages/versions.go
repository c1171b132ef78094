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
	counts "github.com/caddy-terraform/caddy-terraform-registry/usage"
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
func (v *visit) versionNotices(f, latest *index.Facts) []notice {
	notices := changedNotices(f.Changed)
	if deprecated := f.Deprecated(); deprecated != nil {
		n := notice{Tone: "warn", Title: "This version is deprecated.", Text: deprecated.Reason}
		if deprecated.Link != "" {
			n.Link = &link{"Read more", deprecated.Link}
		}
		notices = append(notices, n)
	}
	this, err := version.NewVersion(f.Version)
	newest, newestErr := version.NewVersion(latest.Version)
	useLatest := &link{"Use " + latest.Version, v.url(v.route.WithVersion(""))}
	switch {
	case err != nil || newestErr != nil || f.Version == latest.Version:
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

// A versionRow is a version in the list of all versions.
type versionRow struct {
	Version, URL string
	Published    time.Time
	Chips        []chip
	Reason       string // the reason for its deprecation or withdrawal
	Used         string // how often it was downloaded

	// Only modules have a Size. Added and Removed are the names that the interface has more and
	// fewer than in the version before. Compare leads to the details.
	Size           string
	Added, Removed []string
	Compare        string

	// Only providers have these.
	Platforms int
	Signed    string
}

func (v *visit) versionRow(version string, chips []chip, notice *registryhcl.Notice) versionRow {
	row := versionRow{Version: version, URL: v.url(v.route.WithVersion(version)), Chips: chips}
	if notice != nil {
		row.Reason = notice.Reason
	}
	return row
}

// A versionGroup has the rows of the versions with one major version.
type versionGroup struct {
	Title string // "1.x"
	Rows  []versionRow
}

// groupVersions groups the rows of offered and of withdrawn versions by major version. Both have
// the newest first. Withdrawn versions are listed too, so that their users learn of the
// withdrawal.
func (v *visit) groupVersions(offered []versionRow, withdrawn []index.WithdrawnVersion) (groups []versionGroup) {
	for len(offered)+len(withdrawn) > 0 {
		var row versionRow
		if len(offered) == 0 || len(withdrawn) > 0 && newer(withdrawn[0].Version, offered[0].Version) {
			row = v.versionRow(withdrawn[0].Version, []chip{withdrawnChip}, &withdrawn[0].Notice)
			withdrawn = withdrawn[1:]
		} else {
			row, offered = offered[0], offered[1:]
		}
		title := row.Version
		if number, err := version.NewVersion(title); err == nil {
			title = strconv.FormatInt(number.Segments64()[0], 10) + ".x"
		}
		if len(groups) == 0 || groups[len(groups)-1].Title != title {
			groups = append(groups, versionGroup{Title: title})
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
func (m *moduleView) versions() []versionGroup {
	var offered []versionRow
	var summaries summaryCache
	used := downloads(m.view.Usage(m.route.Address))
	for i, v := range m.module.Versions {
		row := m.versionRow(v.Version, m.chipsOf(v), v.Deprecated())
		row.Published, row.Used, row.Size = v.Published(), used.summary(v.Version), size(v.Archive.Size)
		if i+1 < len(m.module.Versions) {
			row.Added, row.Removed = summaries.difference(m.module.Versions[i+1], v)
			row.Compare = withQuery(row.URL, "tab", tabChanges)
		}
		offered = append(offered, row)
	}
	return m.groupVersions(offered, m.module.Withdrawn())
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

// versionFacts returns what the About of a version says of it: when it was published, on which record it
// is, how often it was downloaded since, what is only said of its kind, and who signed it.
func (v *visit) versionFacts(f *index.Facts, ofKind ...fact) []fact {
	facts := append([]fact{{Term: "Published", Time: f.Published()}}, v.recordFacts(v.route.Address, f.Version)...)
	if used := downloads(v.view.Usage(v.route.Address)); used != nil {
		facts = append(facts, fact{Term: "Downloads", Text: used.summary(f.Version)}, fact{Term: "All versions", Text: used.summary("")})
	}
	facts = append(facts, ofKind...)
	if f.Signature != nil {
		facts = append(facts, fact{Term: "Signed by", Text: signer(f.Signature)})
	}
	return facts
}

// downloads are how often versions were downloaded, and under "" all; nil: that is not known.
type downloads map[string]counts.Summary

// summary returns how often and when last a version was downloaded; empty if that is not known.
func (d downloads) summary(version string) string {
	if d == nil {
		return ""
	}
	return d[version].String()
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
