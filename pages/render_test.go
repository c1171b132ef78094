package pages

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/caddy-terraform/caddy-terraform-registry/index/moduledoc"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/snippet"
)

// A rendered is a page of the tests.
type rendered struct {
	title string
	name  string
	model any
}

// allPages returns the pages with every part of them.
func allPages() []rendered {
	empty := homePageOf()
	empty.Counts, empty.Newest = nil, nil
	empty.Empty = emptyTree{Show: true, Modules: true, Providers: true}
	list := []rendered{
		{"home", "home", homePageOf()}, {"home of an empty registry", "home", empty},
		{"browse", "browse", browsePageOf()}, {"search", "search", searchPageOf()},
		{"blank search", "search", searchPage{page: page{Site: testIdentity(), Title: "Search"}, Blank: true}},
		{"vain search", "search", searchPage{page: page{Site: testIdentity(), Title: "x", Query: "x"}}},
	}
	for _, tabName := range []string{
		tabReadme, tabInputs, tabOutputs, tabResources, tabDependencies, tabSubmodules, tabExamples, tabVersions, tabChanges,
	} {
		m := modulePageOf(tabName)
		m.Notices = []notice{{Tone: "warn", Title: "This version is deprecated.", Text: "Subnets overlap.", Link: &link{"Read more", "https://example.org/"}}}
		m.Problems = []unreadPart{{At: link{"main.tf:3", ""}, Text: "A block has no end."}}
		list = append(list, rendered{"module, " + tabName, "module", m})
	}
	bare := modulePage{page: page{Site: testIdentity(), Title: "a/b/c"}, heading: heading{Name: "b"}}
	for _, tabName := range []string{tabReadme, tabInputs, tabOutputs, tabResources, tabDependencies, tabChanges} {
		bare.Tab = tabName
		list = append(list, rendered{"module without " + tabName, "module", bare})
	}
	list = append(list,
		rendered{"provider, packages", "provider", providerPageOf(tabPackages)}, rendered{"provider, versions", "provider", providerPageOf(tabVersions)},
		rendered{"documentation", "docs", docsPageOf()},
		rendered{"documentation without text", "docs", docsPage{page: page{Site: testIdentity(), Title: "a/b"}, heading: heading{Name: "b"}}},
	)
	for _, status := range []int{401, 403, 404, 405, 410, 500, 503} {
		list = append(list, rendered{fmt.Sprintf("error %d", status), "error", newErrorPage(page{Site: testIdentity()}, status, "")})
	}
	return list
}

// parsed renders a page and parses it.
func (p rendered) parsed(t *testing.T) *html.Node {
	t.Helper()
	b, err := render(p.name, p.model)
	if err != nil {
		t.Fatal(err)
	}
	n, err := html.Parse(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// elements returns the elements of a document with that tag.
func elements(doc *html.Node, tag atom.Atom) (list []*html.Node) {
	for n := range doc.Descendants() {
		if n.Type == html.ElementNode && n.DataAtom == tag {
			list = append(list, n)
		}
	}
	return list
}

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func textIn(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

func TestPagesAreStructured(t *testing.T) {
	for _, p := range allPages() {
		t.Run(p.title, func(t *testing.T) {
			doc := p.parsed(t)
			for _, one := range []atom.Atom{atom.H1, atom.Main, atom.Header, atom.Footer, atom.Title} {
				if n := len(elements(doc, one)); n != 1 {
					t.Errorf("%d <%s>, want one", n, one)
				}
			}
			if title := elements(doc, atom.Title)[0]; !strings.Contains(textIn(title), "registry.example.com") {
				t.Errorf("the title %q does not name the registry", textIn(title))
			}
			if lang := attr(elements(doc, atom.Html)[0], "lang"); lang != "en" {
				t.Errorf("lang %q", lang)
			}
			level := 0
			ids := make(map[string]bool)
			for n := range doc.Descendants() {
				if n.Type != html.ElementNode {
					continue
				}
				if id := attr(n, "id"); id != "" && ids[id] {
					t.Errorf("the id %q is there twice", id)
				} else {
					ids[id] = true
				}
				switch n.DataAtom {
				case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
					now, _ := strconv.Atoi(n.Data[1:])
					if now > level+1 {
						t.Errorf("<%s> %q after <h%d>", n.Data, textIn(n), level)
					}
					level = now
					if textIn(n) == "" {
						t.Errorf("an empty <%s>", n.Data)
					}
				case atom.Input, atom.Select:
					if attr(n, "type") != "hidden" && attr(n, "type") != "checkbox" && attr(n, "aria-label") == "" && attr(n, "id") == "" {
						t.Errorf("<%s> without a label", n.Data)
					}
				case atom.Nav:
					if attr(n, "aria-label") == "" && attr(n, "aria-labelledby") == "" {
						t.Errorf("a <nav> without a name")
					}
				case atom.A:
					if textIn(n) == "" && len(elements(n, atom.Img)) == 0 {
						t.Errorf("a link to %q without a text", attr(n, "href"))
					}
				}
			}
			for _, a := range elements(doc, atom.A) {
				if id, ok := strings.CutPrefix(attr(a, "href"), "#"); ok && !ids[id] {
					t.Errorf("a link leads to #%s, which is not on the page", id)
				}
			}
		})
	}
}

// The Content-Security-Policy refuses inline styles and scripts, so they would be
// missing.
func TestPagesHaveNothingInline(t *testing.T) {
	for _, p := range allPages() {
		t.Run(p.title, func(t *testing.T) {
			for n := range p.parsed(t).Descendants() {
				if n.Type != html.ElementNode {
					continue
				}
				if n.DataAtom == atom.Style || n.DataAtom == atom.Script && (attr(n, "src") == "" || n.FirstChild != nil) {
					t.Errorf("an inline <%s>", n.Data)
				}
				for _, a := range n.Attr {
					loads := a.Key == "src" || a.Key == "srcset" || a.Key == "href" && n.DataAtom == atom.Link || a.Key == "action"
					switch {
					case a.Key == "style", strings.HasPrefix(a.Key, "on"):
						t.Errorf("<%s> has the attribute %s", n.Data, a.Key)
					case loads && !strings.HasPrefix(a.Val, "/"):
						t.Errorf("<%s> loads %q", n.Data, a.Val)
					}
				}
			}
		})
	}
}

func TestOneTabIsCurrent(t *testing.T) {
	doc := rendered{name: "module", model: modulePageOf(tabOutputs)}.parsed(t)
	var current []string
	for _, a := range elements(doc, atom.A) {
		if attr(a, "aria-current") == "page" {
			current = append(current, textIn(a))
		}
	}
	if len(current) != 1 || current[0] != "Outputs 5" {
		t.Errorf("current: %q", current)
	}
}

func TestPathsBeginWithThatOfThePages(t *testing.T) {
	h := homePageOf()
	h.Site.Base = "/terraform/ui"
	h.Counts, h.Newest, h.Places = nil, nil, nil
	doc := rendered{name: "home", model: h}.parsed(t)
	checked := 0
	for n := range doc.Descendants() {
		for _, key := range []string{"href", "src", "action"} {
			if v := attr(n, key); strings.HasPrefix(v, "/") {
				checked++
				if !strings.HasPrefix(v, "/terraform/ui/") {
					t.Errorf("<%s %s=%q>", n.Data, key, v)
				}
			}
		}
	}
	if checked < 6 {
		t.Errorf("only %d paths on the page", checked)
	}
}

// Others write the names, descriptions and messages.
func TestHostileTextIsEscaped(t *testing.T) {
	const script = `"'><script>alert(1)</script><img src=x onerror=alert(1)>`
	const scheme = "javascript:alert(1)"
	m := modulePageOf(tabInputs)
	m.Title, m.Query, m.Name, m.Lede, m.Before, m.After = script, script, script, script, script, script
	m.Crumbs = []link{{script, scheme}}
	m.Chips = []chip{{Label: script, Value: script, Tone: script}}
	m.Notices = []notice{{Tone: script, Title: script, Text: script, Link: &link{script, scheme}}}
	m.Facts = []fact{{Term: script, Text: script, URL: scheme, More: script}, {Term: script, Text: script, Full: script}}
	m.Use.Code = snippet.Module(script, script, &moduledoc.Module{Path: script, Variables: []moduledoc.Variable{{Name: script, Type: script}}}, script)
	m.Menu = versionMenu{Current: script, Versions: []versionLink{{Version: script, URL: scheme}}}
	m.Problems = []unreadPart{{At: link{script, scheme}, Text: script}}
	m.Inputs = newInputs([]moduledoc.Variable{
		{Name: script, Type: script, Description: script, Deprecated: script, Validations: []string{script}},
		{Name: script, Type: script, Default: `["` + script + strings.Repeat("x", 2000) + `"]`},
	}, plainMarkdown, nowhere)
	doc := rendered{name: "module", model: m}.parsed(t)
	if n := len(elements(doc, atom.Script)); n != 1 {
		t.Errorf("%d scripts", n)
	}
	for n := range doc.Descendants() {
		for _, a := range n.Attr {
			if strings.HasPrefix(a.Key, "on") || strings.HasPrefix(a.Val, "javascript:") {
				t.Errorf("<%s %s=%q>", n.Data, a.Key, a.Val)
			}
		}
	}
	if got := textIn(elements(doc, atom.H1)[0]); !strings.Contains(got, "<script>alert(1)</script>") {
		t.Errorf("the heading is %q, want the text as it is", got)
	}
}

func TestSignInAndReportAreOfferedToThoseWhoCanUseThem(t *testing.T) {
	for _, test := range []struct {
		name       string
		site       identity
		want, lack string
	}{
		{"everything is public", identity{Name: "r.example.com"}, "Modules", "Sign in"},
		{"nobody is signed in", identity{Name: "r.example.com", SignIn: "/_registry/login?to=/"}, "Sign in", "Report"},
		{"an operator is signed in", identity{Name: "r.example.com", SignIn: "/_registry/login?to=/", User: "ann", Report: true}, "ann", "Sign in"},
	} {
		t.Run(test.name, func(t *testing.T) {
			doc := rendered{name: "search", model: searchPage{page: page{Site: &test.site, Title: "Search"}, Blank: true}}.parsed(t)
			header := textIn(elements(doc, atom.Header)[0])
			if !strings.Contains(header, test.want) || strings.Contains(header, test.lack) {
				t.Errorf("the header is %q", header)
			}
		})
	}
}
