package pages

import (
	"cmp"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/moduledoc"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/markdown"
)

// A moduleView has the data for the pages of one version of a module.
type moduleView struct {
	*visit
	module  *index.Module
	version *index.ModuleVersion
	latest  *index.ModuleVersion
	whole   *moduledoc.Package
	shown   *moduledoc.Module // the root, a submodule or an example
}

// module answers with a page of a module.
func (v *visit) module() (*answer, error) {
	if v.query.tab == tabReadme {
		return &answer{status: http.StatusPermanentRedirect, location: v.url(v.route)}, nil
	}
	m, version, err := v.view.ModuleVersion(v.route.address, v.route.version)
	if err != nil {
		var offered []string
		latest := ""
		if m != nil {
			latest = m.Latest().Version
			for _, o := range m.Versions {
				offered = append(offered, o.Version)
			}
		}
		return v.absentVersion(latest, offered, err)
	}
	v.version = version.Version
	whole, err := v.view.Describe(version)
	if err != nil {
		return nil, err
	}
	mv := &moduleView{v, m, version, m.Latest(), whole, whole.Module(v.route.part)}
	if mv.shown == nil {
		return mv.absentPart()
	}
	return mv.answer()
}

// absentPart answers that the version has no such submodule or example. It leads to the
// module, and to the part in the latest version if that has it.
func (m *moduleView) absentPart() (*answer, error) {
	a := m.route.address.String()
	p, err := m.page(a)
	if err != nil {
		return nil, err
	}
	e := newErrorPage(p, http.StatusNotFound, "Version "+m.version.Version+" of "+a+" has no "+m.route.part+".")
	if m.version != m.latest {
		latest, err := m.view.Describe(m.latest)
		if err != nil {
			return nil, err
		}
		if latest.Module(m.route.part) != nil {
			e.Links = append(e.Links, link{m.route.part + " in " + m.latest.Version, m.url(m.route.withVersion("").withPart(m.route.part))})
		}
	}
	e.Links = append(e.Links, link{a + " " + m.version.Version, m.url(m.route.withPart(""))})
	return errorAnswer(e)
}

func (m *moduleView) answer() (*answer, error) {
	frame, err := m.page(m.route.address.String() + " " + m.version.Version)
	if err != nil {
		return nil, err
	}
	frame.Current = "modules"
	top, err := m.heading()
	if err != nil {
		return nil, err
	}
	frame.Description = top.Lede
	p := modulePage{page: frame, heading: top, Tab: cmp.Or(m.query.tab, tabReadme), Problems: m.shown.Problems}
	p.sidebar = m.sidebar()
	switch p.Tab {
	case tabReadme:
		if p.Readme, p.Outline, err = m.readme(); err != nil {
			return nil, err
		}
	case tabInputs:
		p.Inputs = newInputs(m.shown.Variables, description)
	case tabOutputs:
		p.Outputs = newOutputs(m.shown.Outputs, description)
	case tabResources:
		p.Resources = newResources(m.shown.Resources)
	case tabDependencies:
		p.Dependencies = m.dependencies()
	case tabSubmodules:
		p.Submodules = m.parts(m.whole.Submodules)
	case tabExamples:
		p.Examples = m.parts(m.whole.Examples)
	case tabVersions:
		p.Versions = m.versions()
	case tabChanges:
		if p.Changes, err = m.comparison(); err != nil {
			return nil, err
		}
	}
	at := slices.IndexFunc(p.Tabs, func(t tab) bool { return t.Current })
	if at < 0 {
		return nil, fs.ErrNotExist
	}
	if m.shown.Path != "" {
		p.Title = m.shown.Path + " · " + p.Title
	}
	if p.Tab != tabReadme {
		p.Title = p.Tabs[at].Text + " · " + p.Title
	}
	return pageAnswer("module", p)
}

// description renders an author's description of an input or output.
func description(s string) prose {
	if s == "" {
		return ""
	}
	return markdown.Description(s)
}

// summaryOf returns the description of a submodule.
func summaryOf(s moduledoc.Summary, part string) string {
	for _, sub := range s.Submodules {
		if sub.Path == part {
			return sub.Description
		}
	}
	return ""
}

// maxOutline is the number of headings in an outline.
const maxOutline = 60

func (m *moduleView) readme() (readme, []markdown.Heading, error) {
	r := m.shown.Readme
	if r.Content == "" {
		return readme{}, nil, nil
	}
	d, err := m.document(markdown.Text{Source: r.Content, Folder: m.shown.Path, Prefix: "readme-", Resolve: m.resolve})
	if err != nil {
		return readme{}, nil, err
	}
	outline := d.Outline
	if len(outline) < 2 {
		outline = nil // a single heading leads nowhere
	}
	return readme{d.HTML, path.Base(r.Name), r.Truncated || d.Cut}, outline[:min(len(outline), maxOutline)], nil
}

// resolve returns the URL for a link of a README: the page of a submodule or example,
// the page that shows the README, or the file itself.
func (m *moduleView) resolve(r markdown.Reference) string {
	if !r.Image {
		folder := r.Path
		if name := strings.ToLower(path.Base(folder)); name == "readme.md" {
			folder = path.Dir(folder)
		}
		if folder == "." {
			folder = ""
		}
		if m.whole.Module(folder) != nil {
			return m.url(m.route.withPart(folder))
		}
	}
	if r.Path == "" {
		return ""
	}
	return m.url(m.route.withFile(r.Path))
}

// parts lists submodules or examples.
func (m *moduleView) parts(modules []moduledoc.Module) []part {
	summary := m.version.Summary()
	var parts []part
	for i := range modules {
		sub := &modules[i]
		parts = append(parts, part{
			Name: sub.Path, URL: m.url(m.route.withPart(sub.Path)), Description: summaryOf(summary, sub.Path),
			Inputs: len(sub.Variables), Outputs: len(sub.Outputs), Resources: len(sub.Resources),
		})
	}
	return parts
}
