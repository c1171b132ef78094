package pages

import (
	"bytes"
	"fmt"
	"html/template"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/index/moduledoc"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/snippet"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog"
)

// rendered renders a page and parses it.
func rendered(t *testing.T, name string, model any) *html.Node {
	t.Helper()
	b, err := render(name, model)
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

// crawl reads pages and all that they link to, each once, and calls visit for each answer.
func (s *Site) crawl(user string, first []string, visit func(path string, w *httptest.ResponseRecorder)) (seen map[string]bool) {
	seen = make(map[string]bool)
	for next := first; len(next) > 0; {
		path := next[0]
		next = next[1:]
		w := s.get(path, user)
		visit(path, w)
		if !isPage(w) {
			continue
		}
		doc, _ := html.Parse(bytes.NewReader(w.Body.Bytes()))
		for n := range doc.Descendants() {
			for _, key := range []string{"href", "src"} {
				to, _, _ := strings.Cut(attr(n, key), "#")
				if strings.HasPrefix(to, "/") && !seen[to] {
					seen[to] = true
					next = append(next, to)
				}
			}
		}
	}
	return seen
}

func isPage(w *httptest.ResponseRecorder) bool {
	return strings.HasPrefix(w.Header().Get("Content-Type"), "text/html")
}

func TestEveryPage(t *testing.T) {
	full := siteOf(t, snapshotOf(t, richTree(t)))
	l := logOf(t, "offered 2026-01-01T00:00:00Z module acme/net/aws 1.1.0", "found 2026-01-01T00:00:00Z provider acme/rich 1.0.0 linux_amd64")
	full.Registry.Log = func() *tlog.Log { return l }
	for _, test := range []struct {
		rule, user string
		site       *Site
		first      []string
	}{
		{"of a registry", "", full, []string{"/", "/search", "/search?q=net", "/search?q=aws_vpc", "/search?q=nothinglikethis", "/browse/modules?provider=none", "/modules/acme/nothing/aws"}},
		{"of an empty registry", "", siteOf(t, snapshotOf(t, indextest.New(t))), []string{"/"}},
		{"of a private registry", "", siteOf(t, snapshotOf(t, privateTree(t)), privateRules...), []string{"/", "/modules/secret/vault/aws"}},
		{"of an operator", "ann", siteOf(t, snapshotOf(t, privateTree(t).Write("modules/secret/stray.txt", "x")), privateRules...), []string{"/_registry/report"}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			test.site.crawl(test.user, test.first, func(path string, w *httptest.ResponseRecorder) {
				if isPage(w) {
					checkStructure(t, path, parse(t, w))
				}
			})
		})
	}
	for _, status := range []int{401, 403, 404, 405, 410, 500, 503} {
		checkStructure(t, fmt.Sprint("error ", status), rendered(t, "error", newErrorPage(page{Site: testIdentity()}, status, "")))
	}
}

// checkStructure checks that a page has a title, headings in order, names for all that needs one, and
// targets for its links; and nothing inline, which the Content-Security-Policy refuses.
func checkStructure(t *testing.T, path string, doc *html.Node) {
	t.Helper()
	fail := func(format string, args ...any) {
		t.Helper()
		t.Errorf(path+": "+format, args...)
	}
	for _, one := range []atom.Atom{atom.H1, atom.Main, atom.Header, atom.Footer, atom.Title} {
		if n := len(elements(doc, one)); n != 1 {
			fail("%d <%s>, want one", n, one)
		}
	}
	if title := elements(doc, atom.Title)[0]; !strings.Contains(textIn(title), "registry.example.com") {
		fail("the title %q does not name the registry", textIn(title))
	}
	if lang := attr(elements(doc, atom.Html)[0], "lang"); lang != "en" {
		fail("lang %q", lang)
	}
	level := 0
	ids := make(map[string]bool)
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		if id := attr(n, "id"); id != "" && ids[id] {
			fail("the id %q is there twice", id)
		} else {
			ids[id] = true
		}
		switch n.DataAtom {
		case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
			now, _ := strconv.Atoi(n.Data[1:])
			if now > level+1 {
				fail("<%s> %q after <h%d>", n.Data, textIn(n), level)
			}
			level = now
			if textIn(n) == "" {
				fail("an empty <%s>", n.Data)
			}
		case atom.Input, atom.Select:
			if attr(n, "type") != "hidden" && attr(n, "type") != "checkbox" && attr(n, "aria-label") == "" && attr(n, "id") == "" {
				fail("<%s> without a label", n.Data)
			}
		case atom.Nav:
			if attr(n, "aria-label") == "" && attr(n, "aria-labelledby") == "" {
				fail("a <nav> without a name")
			}
		case atom.A:
			if textIn(n) == "" && len(elements(n, atom.Img)) == 0 && attr(n, "aria-hidden") == "" {
				fail("a link to %q without a text", attr(n, "href"))
			}
		case atom.Style:
			fail("an inline <style>")
		case atom.Script:
			if attr(n, "src") == "" || n.FirstChild != nil {
				fail("an inline <script>")
			}
		}
		for _, a := range n.Attr {
			loads := a.Key == "src" || a.Key == "srcset" || a.Key == "href" && n.DataAtom == atom.Link || a.Key == "action"
			switch {
			case a.Key == "style", strings.HasPrefix(a.Key, "on"):
				fail("<%s> has the attribute %s", n.Data, a.Key)
			case loads && !strings.HasPrefix(a.Val, "/"):
				fail("<%s> loads %q", n.Data, a.Val)
			}
		}
	}
	for _, a := range elements(doc, atom.A) {
		if id, ok := strings.CutPrefix(attr(a, "href"), "#"); ok && !ids[id] {
			fail("a link leads to #%s, which is not on the page", id)
		}
	}
}

func TestOneTabIsCurrent(t *testing.T) {
	s := siteOf(t, snapshotOf(t, siteTree(t)))
	current := textsOf(with(elements(parse(t, s.get("/modules/acme/vpc/aws?tab=inputs", "")), atom.A), "aria-current", "page"))
	if !slices.Equal(current, []string{"Inputs 2"}) {
		t.Errorf("current: %q", current)
	}
}

// Others write the names, descriptions and messages.
func TestHostileTextIsEscaped(t *testing.T) {
	const script = `"'><script>alert(1)</script><img src=x onerror=alert(1)>`
	const scheme = "javascript:alert(1)"
	variables := []moduledoc.Variable{
		{Name: script, Type: script, Description: script, Deprecated: script, Validations: []string{script}},
		{Name: script, Type: script, Default: `["` + script + strings.Repeat("x", 2000) + `"]`},
	}
	of := moduleView{shown: &moduledoc.Module{Variables: variables}}
	m := modulePage{
		page: page{Site: testIdentity(), Title: script, Query: script},
		heading: heading{
			Crumbs: []link{{script, scheme}}, Before: script, Name: script, After: script, Lede: script,
			Menu:    versionMenu{Current: script, Versions: []versionLink{{Version: script, URL: scheme}}},
			Chips:   []chip{{Label: script, Value: script, Tone: script}},
			Notices: []notice{{Tone: script, Title: script, Text: script, Link: &link{script, scheme}}},
		},
		sidebar: sidebar{
			Use:   &usage{Code: snippet.Module(script, script, &moduledoc.Module{Path: script, Variables: []moduledoc.Variable{{Name: script, Type: script}}}, script)},
			Facts: []fact{{Term: script, Text: script, URL: scheme, More: script}, {Term: script, Text: script, Full: script}},
		},
		Tab: tabInputs, Inputs: of.inputs(func(s string) prose { return prose(template.HTMLEscapeString(s)) }),
		Problems: []unreadPart{{At: link{script, scheme}, Text: script}},
	}
	doc := rendered(t, "module", m)
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
			doc := rendered(t, "search", searchPage{page: page{Site: &test.site, Title: "Search"}, Blank: true})
			header := textIn(elements(doc, atom.Header)[0])
			if !strings.Contains(header, test.want) || strings.Contains(header, test.lack) {
				t.Errorf("the header is %q", header)
			}
		})
	}
}
