package pages

import (
	"errors"
	"io/fs"
	"net/url"
	"slices"

	version "github.com/hashicorp/go-version"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/markdown"
)

// comparison compares the version with the version in the query, or with the one
// before.
func (m *moduleView) comparison() (comparison, error) {
	versions := m.module.Versions
	at := slices.Index(versions, m.version)
	other := versions[max(at-1, 0)]
	if at+1 < len(versions) {
		other = versions[at+1]
	}
	if m.query.from != "" {
		if other = m.module.Version(m.query.from); other == nil {
			return comparison{}, fs.ErrNotExist
		}
	}
	c := comparison{From: other.Version, To: m.version.Version, Action: m.url(m.route)}
	for _, v := range versions {
		if v != m.version {
			c.Others = append(c.Others, versionLink{Version: v.Version, Current: v == other})
		}
	}
	older, err := m.view.Describe(other)
	if err != nil {
		return c, err
	}
	from, to, fromDoc, toDoc := other, m.version, older, m.whole
	if newer(from.Version, to.Version) {
		from, to, fromDoc, toDoc = to, from, toDoc, fromDoc
		c.Later = true
	}
	c.Unreadable = len(fromDoc.Root.Problems)+len(toDoc.Root.Problems) > 0
	changes := compareInterfaces(fromDoc, toDoc)
	oldNumber, err := version.NewVersion(from.Version)
	newNumber, newErr := version.NewVersion(to.Version)
	if err = errors.Join(err, newErr); err != nil {
		return c, err
	}
	c.Verdict = judge(oldNumber, newNumber, changes)
	resources := compareResources(fromDoc, toDoc)
	c.Groups = groupChanges(changes, resources[:min(len(resources), maxResourceChanges)])
	m.linkChanges(c.Groups, from, to)
	return c, m.compareContents(&c, from, to)
}

// linkChanges links changes to the inputs, outputs and resources that they are about, in
// the newest version that has them.
func (m *moduleView) linkChanges(groups []changeGroup, from, to *index.ModuleVersion) {
	for i := range groups {
		g := &groups[i]
		if g.Module.Text != "" {
			g.Module.URL = m.url(m.routeOf(to).withPart(g.Module.Text))
		}
		for j := range g.Changes {
			c := &g.Changes[j]
			of := m.routeOf(to)
			if c.Kind == removed {
				of = m.routeOf(from)
			}
			switch c.What {
			case "input", "output":
				c.URL = withQuery(m.url(of.withPart(c.Submodule)), "tab", c.What+"s") + "#" + c.What + "_" + url.PathEscape(c.Name)
			case "submodule":
				c.URL = m.url(of.withPart(c.Name))
			}
		}
		for j := range g.Resources {
			c := &g.Resources[j]
			of := m.routeOf(to)
			if c.Kind == removed {
				of = m.routeOf(from)
			}
			c.URL = m.at(of).line(c.At).URL
		}
	}
}

// routeOf returns the route of a version of the module: the route of the page if that shows
// the version.
func (m *moduleView) routeOf(v *index.ModuleVersion) route {
	if v == m.version {
		return m.route.withPart("")
	}
	return m.route.withVersion(v.Version)
}

// at returns the view with links from another route, such as a route of another version.
func (m *moduleView) at(r route) *moduleView {
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
	c.Files = compareFiles(old, now, func(path string) string {
		at := m.urlIfThere(m.route.withCode(path))
		if at == "" {
			return ""
		}
		return withQuery(at, "from", c.From)
	})
	file := changelogOf(now)
	if file == nil {
		return nil
	}
	text, note, err := m.textOf(to, file)
	if err != nil || note != "" {
		return err
	}
	section := changelogSection(text, to.Version)
	if section == "" {
		return nil
	}
	of := m.at(m.routeOf(to))
	d, err := m.document(markdown.Text{Source: section, Prefix: "notes-", Resolve: of.resolve})
	c.Notes, c.NotesFrom = d.HTML, link{printable(file.Path), m.url(of.route.withCode(file.Path))}
	return err
}
