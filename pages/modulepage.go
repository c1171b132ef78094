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
		latest := ""
		if m != nil {
			latest = m.Latest().Version
		}
		return v.absentVersion(latest, err)
	}
	v.version = version.Version
	whole, err := v.view.Describe(version)
	if err != nil {
		return nil, err
	}
	mv := &moduleView{v, m, version, m.Latest(), whole, whole.Module(v.route.part)}
	if mv.shown == nil {
		return nil, fs.ErrNotExist
	}
	return mv.answer()
}

func (m *moduleView) answer() (*answer, error) {
	frame, err := m.page(m.route.address.String() + " " + m.version.Version)
	if err != nil {
		return nil, err
	}
	frame.Current = "modules"
	p := modulePage{page: frame, heading: m.heading(), Tab: cmp.Or(m.query.tab, tabReadme), Problems: m.shown.Problems}
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
	if !slices.ContainsFunc(p.Tabs, func(t tab) bool { return t.Current }) {
		return nil, fs.ErrNotExist
	}
	if m.shown.Path != "" {
		p.Title = m.shown.Path + " · " + p.Title
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
