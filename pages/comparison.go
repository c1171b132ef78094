package pages

import (
	"errors"
	"io/fs"
	"net/url"
	"slices"

	version "github.com/hashicorp/go-version"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/moduledoc"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/changes"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/markdown"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/route"
)

// A comparison lists the changes between two versions, as the page shows them.
type comparison struct {
	From, To string

	// Others are the versions that can be compared with To.
	Others []versionLink

	// Action is the path of the form that chooses one of them.
	Action string

	// Groups have the changes of the root and of each submodule.
	Groups  []changeGroup
	Hidden  int // changes of the interface that are not in the groups
	LeftOut int // resources that are not
	Verdict changes.Verdict

	// Notes are the section of the changelog about the newer version.
	Notes     prose
	NotesFrom link // the changelog

	Files fileChanges

	// Later reports that From is the newer version, so that the changes lead from To to
	// From.
	Later bool

	// Unreadable reports that parts of a package could not be read, so that what is in them
	// looks as if it were not there. There is no Verdict then.
	Unreadable bool
}

// A changeGroup has the changes of one module of a package.
type changeGroup struct {
	Module             link // the submodule; no text: the root
	Changes, Resources []linkedChange
}

// A linkedChange leads to the newest of what has changed.
type linkedChange struct {
	changes.Change
	URL string // empty: there is no such page
}

// fileChanges are the files that differ between two packages.
type fileChanges struct {
	List    []fileChange
	LeftOut int
	Partial bool // a package has more than is read
}

// A fileChange is a file that differs.
type fileChange struct {
	Kind changes.Kind
	File link
}

// How many changes of the interface, added and removed resources, and files are shown.
const (
	maxChanges         = 3000
	maxResourceChanges = 300
	maxFileChanges     = 300
)

// comparison compares the version with the version in the query, or with the one
// before.
func (m *moduleView) comparison() (comparison, error) {
	other := m.comparedVersion()
	if m.query.from != "" {
		if other = m.module.Version(m.query.from); other == nil {
			return comparison{}, fs.ErrNotExist
		}
	}
	c := comparison{From: other.Version, To: m.version.Version, Action: m.url(m.route), Others: m.otherVersions(other)}
	older, err := m.view.Describe(other)
	if err != nil {
		return c, err
	}
	from, to, fromDoc, toDoc := other, m.version, older, m.whole
	if newer(from.Version, to.Version) {
		from, to, fromDoc, toDoc = to, from, toDoc, fromDoc
		c.Later = true
	}
	c.Unreadable = hasProblems(fromDoc) || hasProblems(toDoc)
	found := changes.Interfaces(fromDoc, toDoc)
	oldNumber, err := version.NewVersion(from.Version)
	newNumber, newErr := version.NewVersion(to.Version)
	if err = errors.Join(err, newErr); err != nil {
		return c, err
	}
	c.Verdict = changes.Judge(oldNumber, newNumber, found)
	resources := changes.Resources(fromDoc, toDoc)
	c.Hidden, c.LeftOut = max(len(found)-maxChanges, 0), max(len(resources)-maxResourceChanges, 0)
	for _, g := range changes.Groups(found[:len(found)-c.Hidden], resources[:len(resources)-c.LeftOut]) {
		of := changeGroup{Module: link{Text: g.Submodule}, Changes: m.linked(g.Changes, from, to), Resources: m.linked(g.Resources, from, to)}
		if g.Submodule != "" {
			of.Module.URL = m.url(m.routeOf(to).WithPart(g.Submodule))
		}
		c.Groups = append(c.Groups, of)
	}
	return c, m.compareContents(&c, from, to)
}

// hasProblems reports whether a part of what is compared could not be read: of the root or of a
// submodule.
func hasProblems(p *moduledoc.Package) bool {
	return len(p.Root.Problems) > 0 || slices.ContainsFunc(p.Submodules, func(m moduledoc.Module) bool { return len(m.Problems) > 0 })
}

// comparedVersion returns the version before the one that is shown, or after it if that is the first.
func (m *moduleView) comparedVersion() *index.ModuleVersion {
	versions := m.module.Versions
	at := slices.Index(versions, m.version)
	if at+1 < len(versions) {
		return versions[at+1]
	}
	return versions[max(at-1, 0)]
}

// maxOthers is how many versions a select has.
const maxOthers = 100

// otherVersions are the versions with which the one that is shown can be compared: the newest
// and, wherever it is, the one that is chosen. A link may have chosen the version that is shown,
// which is the same as itself.
func (m *moduleView) otherVersions(chosen *index.ModuleVersion) (others []versionLink) {
	for _, v := range m.module.Versions {
		if v == chosen && len(m.module.Versions) > 1 || v != m.version && len(others) < maxOthers {
			others = append(others, versionLink{Version: v.Version, Current: v == chosen})
		}
	}
	return others
}

// linked links changes to the inputs, outputs, submodules and resources that they are about, in
// the newest version that has them.
func (m *moduleView) linked(list []changes.Change, from, to *index.ModuleVersion) (all []linkedChange) {
	for _, c := range list {
		l, of := linkedChange{Change: c}, m.routeOf(to)
		if c.Kind == changes.Removed {
			of = m.routeOf(from)
		}
		switch c.What {
		case "input", "output":
			l.URL = withQuery(m.url(of.WithPart(c.Submodule)), "tab", c.What+"s") + "#" + c.What + "_" + url.PathEscape(c.Name)
		case "submodule":
			l.URL = m.url(of.WithPart(c.Name))
		default: // only resources have a place
			l.URL = m.withRoute(of).line(c.At).URL
		}
		all = append(all, l)
	}
	return all
}

// routeOf returns the route of a version of the module: the route of the page if that shows
// the version.
func (m *moduleView) routeOf(v *index.ModuleVersion) route.Route {
	if v == m.version {
		return m.route.WithPart("")
	}
	return m.route.WithVersion(v.Version)
}

// withRoute returns the view with links from another route, such as a route of another version.
func (m *moduleView) withRoute(r route.Route) *moduleView {
	of, from := *m, *m.visit
	of.visit, from.route = &from, r
	return &of
}

// compareContents compares the files of two versions, and quotes the changelog.
func (m *moduleView) compareContents(c *comparison, from, to *index.ModuleVersion) error {
	old, err := m.view.ModuleFiles(from)
	if err != nil {
		return err
	}
	now, err := m.view.ModuleFiles(to)
	if err != nil {
		return err
	}
	files := changes.Files(old, now)
	c.Files = fileChanges{LeftOut: max(len(files)-maxFileChanges, 0), Partial: old.Partial || now.Partial}
	for _, f := range files[:len(files)-c.Files.LeftOut] {
		of := link{Text: printable(f.Path), URL: m.urlIfThere(m.route.WithCode(f.Path))}
		if of.URL != "" {
			of.URL = withQuery(of.URL, "from", c.From)
		}
		c.Files.List = append(c.Files.List, fileChange{f.Kind, of})
	}
	file := changes.Changelog(now)
	if file == nil || from == to {
		return nil
	}
	text, note, err := m.textOf(to, file)
	if err != nil || note != "" {
		return err
	}
	section := changes.Notes(text, to.Version)
	if section == "" {
		return nil
	}
	of := m.withRoute(m.routeOf(to))
	d, err := m.document(markdown.Text{Source: section, Prefix: "notes-", Quoted: true, Resolve: of.resolve})
	c.Notes, c.NotesFrom = d.HTML, link{printable(file.Path), m.url(of.route.WithCode(file.Path))}
	return err
}
