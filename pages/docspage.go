package pages

import (
	"cmp"
	"errors"
	"io/fs"
	"net/http"
	"path"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/index/content"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/docsmenu"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/markdown"
)

// doc answers with a page of the documentation. The page of the provider is the overview.
func (p *providerView) doc() (*answer, error) {
	shown := docAt(p.docs, p.route.Rest)
	if shown == nil {
		return p.absentDoc()
	}
	text, cut, err := p.view.ReadDoc(shown)
	if errors.Is(err, fs.ErrNotExist) {
		return p.absentDoc()
	}
	if err != nil {
		return nil, err
	}
	typ := p.route.Address.Name
	title := docsmenu.Label(shown, typ)
	named := p.route.Address.String() + " " + p.release.Version
	if p.isBelowOverview() {
		named = title + " · " + named
	}
	frame, err := p.page(named)
	if err != nil {
		return nil, err
	}
	frame.Current, frame.Description = "providers", cmp.Or(shown.Description, p.description())
	d, err := p.document(markdown.Text{Source: text, Folder: path.Dir(shown.Path), Prefix: "doc-", Resolve: p.resolve})
	if err != nil {
		return nil, err
	}
	model := docsPage{
		page: frame, heading: p.heading(), Content: d.HTML, Cut: cut || d.Cut, Contents: p.docsMenu(shown), Find: p.docsForm(),
	}
	if p.isBelowOverview() {
		model.Crumbs = append(model.Crumbs, link{title, ""})
	} else {
		model.sidebar = p.sidebar()
	}
	model.Outline = outlineOf(d)
	return pageAnswer("docs", model)
}

// docsMenu returns the menu for a page of the documentation, or for a list if that is nil.
func (p *providerView) docsMenu(shown *content.DocPage) docsmenu.Menu {
	return docsmenu.New(p.docs, p.route.Address.Name, shown, p.query.group, docsmenu.URLs{Page: p.docURL, List: func(group string) string {
		return withQuery(p.tabURL(tabDocs), "tab", tabPages, "group", group)
	}})
}

func (p *providerView) docsForm() docsForm {
	return docsForm{Action: p.tabURL(tabDocs), Tab: tabPages, Words: p.query.q}
}

// docsAtOnce is how many pages a list of the documentation has at once.
const docsAtOnce = 100

// docsList answers with a list of pages of the documentation.
func (p *providerView) docsList() (*answer, error) {
	typ, group, words := p.route.Address.Name, p.query.group, p.query.q
	found := docsmenu.Find(p.docs, typ, group, words)
	if len(found) == 0 && words == "" {
		return nil, fs.ErrNotExist
	}
	l := docsList{Title: cmp.Or(group, "All pages"), Total: len(found)}
	if words != "" {
		l.Title = "Pages with “" + words + "”"
	}
	if group != "" || words != "" {
		l.All = p.tabURL(tabPages)
	}
	first := min(p.query.offset, max(len(found)-1, 0))
	last := min(first+docsAtOnce, len(found))
	for _, d := range found[first:last] {
		l.Items = append(l.Items, item{Name: docsmenu.Label(d, typ), URL: p.docURL(d), Description: d.Description})
	}
	l.Pager = p.pager(first, last, len(found), docsAtOnce)
	frame, err := p.page(l.Title + " · " + p.route.Address.String() + " " + p.release.Version)
	if err != nil {
		return nil, err
	}
	frame.Current = "providers"
	return pageAnswer("docs", docsPage{page: frame, heading: p.heading(), List: l, Contents: p.docsMenu(nil), Find: p.docsForm()})
}

// docAt returns the page at a path, such as "docs" or "docs/resources/thing"; nil if there is none.
func docAt(docs *content.Docs, rest string) *content.DocPage {
	if docs == nil || len(docs.Pages) == 0 {
		return nil
	}
	segments := strings.Split(rest, "/")
	switch len(segments) {
	case 1:
		return cmp.Or(docs.Page(content.DocOverview, ""), &docs.Pages[0])
	case 3:
		return docs.Page(content.DocCategory(segments[1]), segments[2])
	}
	return nil
}

// docURL returns the URL of a page of the documentation. The overview has the URL of the
// provider. It names the version in the same way as the request.
func (p *providerView) docURL(page *content.DocPage) string {
	r := p.route
	r.Rest = ""
	if page.Category != content.DocOverview {
		r.Rest = "docs/" + string(page.Category) + "/" + page.Slug
	}
	return p.url(r)
}

// absentDoc answers that the release has no such page: on the overview of its
// documentation, so that readers who come from another version find the way. It links to the
// page of the latest release if there is one.
func (p *providerView) absentDoc() (*answer, error) {
	if p.lacking != nil || p.route.Rest == "" {
		return nil, fs.ErrNotExist // the overview itself cannot be read
	}
	lacking := notice{Tone: "warn", Title: "The documentation of version " + p.release.Version + " does not have this page.", Text: "This is its overview."}
	if p.release != p.latest {
		docs, err := p.view.Docs(p.latest)
		if err != nil {
			return nil, err
		}
		if docAt(docs, p.route.Rest) != nil {
			r := p.route.WithVersion("")
			r.Rest = p.route.Rest
			lacking.Link = &link{"This page in " + p.latest.Version, p.url(r)}
		}
	}
	p.lacking, p.route.Rest = &lacking, ""
	a, err := p.doc()
	return asAbsent(a), err
}

// absentDocs answers that the release has no documentation, on the page of its packages.
func (p *providerView) absentDocs() (*answer, error) {
	p.lacking = &notice{Tone: "warn", Title: "Version " + p.release.Version + " has no documentation.", Text: "Its place is a folder named docs in the folder of the release."}
	p.route.Rest = ""
	a, err := p.answer()
	return asAbsent(a), err
}

// asAbsent returns an answer in place of a page that does not exist.
func asAbsent(a *answer) *answer {
	if a != nil {
		a.status, a.tag = http.StatusNotFound, ""
	}
	return a
}

// resolve returns the URL for a link to another page of the documentation. The link
// names the path of the page's file, or the path of the page in a registry. Images are
// not served.
func (p *providerView) resolve(r markdown.Reference) string {
	if r.Image {
		return ""
	}
	name := r.Path
	a := p.route.Address
	for _, prefix := range []string{"docs/providers/" + a.Name + "/", "providers/" + a.Namespace + "/" + a.Name + "/"} {
		rest, ok := strings.CutPrefix(name, prefix)
		if !ok {
			continue
		}
		if version, page, ok := strings.Cut(rest+"/", "/docs/"); ok && !strings.Contains(version, "/") {
			rest = strings.TrimSuffix(page, "/")
		}
		name = "docs/" + rest
		break
	}
	if page := p.docs.PageAt(name); page != nil && name != "" {
		return p.docURL(page)
	}
	return ""
}
