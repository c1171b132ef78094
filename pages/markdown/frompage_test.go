package markdown

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	gmhtml "github.com/yuin/goldmark/renderer/html"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

func fromPage(t *testing.T, content string) string {
	t.Helper()
	text, err := FromPage([]byte("<!doctype html><body><header>x</header><main>"+content+"</main><footer>y</footer>"), func(url string) string {
		if strings.HasPrefix(url, "/") {
			return url + "?format=md"
		}
		return url
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestPagesBecomeMarkdown(t *testing.T) {
	for _, test := range []struct{ rule, page, want string }{
		{"only the content counts", "<p>a</p>", "a"},
		{"headings", "<h1>a</h1><h2>b <span class=tally>3</span></h2>", "# a\n\n## b (3)"},
		{"what is for browsers goes", `<form><input><button>x</button></form><div hidden>y</div><div class="filter">z</div><script>s</script><nav class="outline"><a href="#a">o</a></nav>a`, "a"},
		{"links are resolved", `<a href="/x">a</a> <a href="https://example.com">b</a>`, "[a](/x?format=md) [b](https://example.com)"},
		{"links to a part of the page are text", `<h2>a <a class="anchor" href="#a">#</a></h2><p><a href="#b">b</a></p>`, "## a\n\nb"},
		{"pictures stay where they are", `<img src="/a.png" alt="b">`, "![b](/a.png)"},
		{"tables", "<table><thead><tr><th>a</th><th align=right>b</th></tr></thead><tbody><tr><td>1</td><td>2</td></tr></tbody></table>", "| a | b |\n|---|--:|\n| 1 | 2 |"},
		{"entries are headings", `<dl class="entries"><div class="entry"><dt><a href="#x"><code>x</code></a></dt><dd>Text.<dl class="props"><div><dt>Type</dt><dd><code>string</code></dd></div></dl></dd></div></dl>`, "### `x`\n\nText.\n\n- Type: `string`"},
		{"short facts are one line", `<ul class="chips"><li>a</li><li>b <b>c</b></li></ul>`, "a · b **c**"},
		{"a hash is whole", `<dl class="facts"><dt>sha256</dt><dd><code title="0123456789abcdef">0123…</code></dd></dl>`, "- sha256: `0123456789abcdef`"},
		{"what is folded is unfolded", `<details><summary>3 lines</summary><pre>a
b</pre></details>`, "3 lines\n\n```\na\nb\n```"},
		{"the menu of a documentation comes last", `<div class="docs"><nav class="nav"><ul><li><a href="/o">o</a></li></ul></nav><p>a</p></div>`, "a\n\n- [o](/o?format=md)"},
		{"other versions are on a page of their own", `<details class="menu"><summary>1.0.0</summary><ul><li>0.9.0</li></ul></details>`, "1.0.0"},
	} {
		if got := strings.TrimSpace(fromPage(t, test.page)); got != test.want {
			t.Errorf("%s: %q, want %q", test.rule, got, test.want)
		}
	}
	if _, err := FromPage([]byte("<p>x</p>"), nil); err == nil {
		t.Error("a page without content is no error")
	}
}

// What others wrote stays text: a program that shows the Markdown and lets HTML through, as
// many do, gets no element that acts.
func TestHostileReadmeIsHarmlessAsMarkdown(t *testing.T) {
	for _, text := range append(slices.Clone(hostile), strings.Join(hostile, "\n\n")) {
		checkMarkdown(t, text, fromPage(t, string(readmeOf(text).HTML)))
	}
}

func FuzzFromPage(f *testing.F) {
	for _, text := range hostile {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		checkMarkdown(t, text, fromPage(t, string(readmeOf(text).HTML)))
	})
}

func checkMarkdown(t *testing.T, text, converted string) {
	t.Helper()
	if len(text) > 300 {
		text = text[:300] + "…"
	}
	var b bytes.Buffer
	if err := goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithRendererOptions(gmhtml.WithUnsafe())).Convert([]byte(converted), &b); err != nil {
		t.Fatal(err)
	}
	root, err := html.Parse(&b)
	if err != nil {
		t.Fatal(err)
	}
	for n := range root.Descendants() {
		if n.Type == html.CommentNode {
			t.Errorf("%q has a comment as Markdown: %s", text, converted)
		}
		if n.Type != html.ElementNode {
			continue
		}
		if !slices.Contains([]atom.Atom{atom.Html, atom.Head, atom.Body, atom.Input}, n.DataAtom) && !slices.Contains(harmless, n.Data) {
			t.Errorf("%q has a %q as Markdown: %s", text, n.Data, converted)
		}
		for _, a := range n.Attr {
			if strings.HasPrefix(a.Key, "on") || a.Key == "href" && strings.Contains(strings.ToLower(a.Val), "script:") && !strings.HasPrefix(a.Val, "http") && !strings.HasPrefix(a.Val, "/") {
				t.Errorf("%q has %s=%q as Markdown: %s", text, a.Key, a.Val, converted)
			}
		}
	}
}
