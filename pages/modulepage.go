package pages

import (
	"cmp"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/moduledoc"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/markdown"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/route"
)

// A moduleView has the data for the pages of one version of a module.
type moduleView struct {
	*visit
	module  *index.Module
	version *index.ModuleVersion
	latest  *index.ModuleVersion
	whole   *moduledoc.Package
	shown   *moduledoc.Module // the root, a submodule or an example
	lacking *notice           // of a page that the version does not have; nil: there is none
}

// module answers with a page of a module.
func (v *visit) module() (*answer, error) {
	if v.query.tab == tabReadme {
		return v.moved(v.url(v.route)), nil
	}
	mv, absent, err := v.openModule(v.route.Part)
	if mv == nil || err != nil {
		return absent, err
	}
	if mv.shown == nil {
		return mv.absentPart()
	}
	return mv.answer()
}

// openModule looks up the version of a module that is asked for, and describes it. If it is
// not offered, the view is nil and the answer says so.
func (v *visit) openModule(part string) (*moduleView, *answer, error) {
	m, version, err := v.view.ModuleVersion(v.route.Address, v.route.Version)
	if err != nil {
		latest := ""
		if m != nil {
			latest = m.Latest().Version
		}
		a, err := v.absentVersion(latest, m.Numbers(), err)
		return nil, a, err
	}
	v.version, v.route.Address = version.Version, v.view.WithoutOwnName(v.route.Address)
	whole, err := v.view.Describe(version)
	if err != nil {
		return nil, nil, err
	}
	return &moduleView{v, m, version, m.Latest(), whole, whole.Module(part), nil}, nil, nil
}

// absentPart answers that the version has no such submodule or example. It leads to the
// module, and to the part in the latest version if that has it.
func (m *moduleView) absentPart() (*answer, error) {
	a := m.route.Address.String()
	p, err := m.page(a)
	if err != nil {
		return nil, err
	}
	e := newErrorPage(p, http.StatusNotFound, "Version "+m.version.Version+" of "+a+" has no "+m.route.Part+".")
	if m.version != m.latest {
		latest, err := m.view.Describe(m.latest)
		if err != nil {
			return nil, err
		}
		if latest.Module(m.route.Part) != nil {
			e.Links = append(e.Links, link{m.route.Part + " in " + m.latest.Version, m.url(m.route.WithVersion("").WithPart(m.route.Part))})
		}
	}
	e.Links = append(e.Links, link{a + " " + m.version.Version, m.url(m.route.WithPart(""))})
	return m.errorAnswer(e), nil
}

func (m *moduleView) answer() (*answer, error) {
	frame, err := m.page(m.route.Address.String() + " " + m.version.Version)
	if err != nil {
		return nil, err
	}
	frame.Current = "modules"
	top, err := m.heading()
	if err != nil {
		return nil, err
	}
	frame.Description = top.Lede
	p := modulePage{page: frame, heading: top, Tab: cmp.Or(m.query.tab, tabReadme), Problems: m.problems()}
	p.sidebar = m.sidebar()
	switch p.Tab {
	case tabReadme:
		p.Readme, p.Outline, err = m.readme()
	case tabInputs:
		err = m.describe(func(render func(string) prose) { p.Inputs = m.inputs(render) })
	case tabOutputs:
		err = m.describe(func(render func(string) prose) { p.Outputs = m.outputs(render) })
	case tabResources:
		p.Resources = m.resources()
	case tabDependencies:
		p.Dependencies = m.dependencies()
	case tabUsedBy:
		p.UsedBy, err = m.usedBy(m.latest.Version, m.module.Numbers())
	case tabSubmodules:
		p.Submodules = m.parts(m.whole.Submodules)
	case tabExamples:
		p.Examples = m.parts(m.whole.Examples)
	case tabVersions:
		p.Versions = m.versions()
	case tabChanges:
		p.Changes, err = m.comparison()
	}
	if err != nil {
		return nil, err
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

// describe calls f in turn, with what renders an author's descriptions of inputs and outputs. It
// renders none when the visitor has left.
func (m *moduleView) describe(f func(render func(string) prose)) error {
	var all markdown.Descriptions
	leaves := m.request.Context()
	err := m.inTurn(func() {
		f(func(s string) prose {
			if s == "" || leaves.Err() != nil {
				return ""
			}
			return all.HTML(s)
		})
	})
	return cmp.Or(err, leaves.Err())
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

// outlineOf returns the outline of a document. A single heading leads nowhere.
func outlineOf(d markdown.Document) []markdown.Heading {
	if len(d.Outline) < 2 {
		return nil
	}
	return d.Outline[:min(len(d.Outline), maxOutline)]
}

func (m *moduleView) readme() (readme, []markdown.Heading, error) {
	r := m.shown.Readme
	if r.Content == "" {
		return readme{}, nil, nil
	}
	d, err := m.document(markdown.Text{Source: r.Content, Folder: m.shown.Path, Prefix: "readme-", Resolve: m.resolve})
	if err != nil {
		return readme{}, nil, err
	}
	return readme{d.HTML, path.Base(r.Name), r.Truncated || d.Cut}, outlineOf(d), nil
}

// resolve returns the URL for a link of a README: the page of a submodule or example,
// the page of a file or folder, or the file itself for an image.
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
			return m.url(m.route.WithPart(folder))
		}
		return m.urlIfThere(m.route.WithCode(r.Path))
	}
	return m.urlIfThere(m.route.WithFile(r.Path))
}

// urlIfThere returns the URL of a route that browsers can reach, or nothing.
func (v *visit) urlIfThere(r route.Route) string {
	if !r.Leads() {
		return ""
	}
	return v.url(r)
}

// line returns the link to a line of the package, such as main.tf:12. It is empty if the
// line is not known, and has no URL if no browser comes to the file.
func (m *moduleView) line(at moduledoc.Position) link {
	if at.File == "" {
		return link{}
	}
	l := link{Text: printable(path.Base(at.File)), URL: m.urlIfThere(m.route.WithCode(at.File))}
	if at.Line > 0 {
		l.Text += ":" + strconv.Itoa(at.Line)
		if l.URL != "" {
			l.URL += "#L" + strconv.Itoa(at.Line)
		}
	}
	return l
}

// problems returns the parts of the module that could not be read, with their places.
func (m *moduleView) problems() (list []unreadPart) {
	for _, p := range m.shown.Problems {
		at := link{Text: p.Place()}
		if path.Ext(p.File) != "" { // not a folder
			at.URL = m.line(moduledoc.Position{File: p.File, Line: p.Line}).URL
		}
		list = append(list, unreadPart{at, p.Text})
	}
	return list
}

// parts lists submodules or examples.
func (m *moduleView) parts(modules []moduledoc.Module) []part {
	summary := m.version.Summary()
	var parts []part
	for i := range modules {
		sub := &modules[i]
		parts = append(parts, part{
			Name: sub.Path, URL: m.url(m.route.WithPart(sub.Path)), Description: summaryOf(summary, sub.Path),
			Inputs: len(sub.Variables), Outputs: len(sub.Outputs), Resources: len(sub.Resources),
		})
	}
	return parts
}
