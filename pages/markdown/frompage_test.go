package markdown

import (
	"bytes"
	"context"
	"errors"
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
	text, err := FromPage(t.Context(), []byte("<!doctype html><body><header>x</header><main>"+content+"</main><footer>y</footer>"), func(url string) string {
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
		{"lines of code in a cell stay in its row", "<table><tr><td>a</td><td><pre><code class=\"language-hcl\">b {\n  c = d | e\n\n}</code></pre></td></tr></table>", "| a | `b {`  <br />`c = d \\| e`  <br />`}` |\n|---|---|"},
		{"code in a cell does not end it", "<table><tr><td><code>a | b</code></td><td><code>``|``</code></td></tr></table>", "| `a \\| b` | ``` ``\\|`` ``` |\n|---|---|"},
		{"nor does the text of a picture", `<table><tr><td><img src="/a.png" alt="a|b"></td></tr></table>`, "| ![a\\|b](/a.png) |\n|---|"},
		{"code elsewhere is as it is", "<p><code>a | b</code></p><table><tr><td><ul><li><code>c | d</code></li></ul></td></tr></table>", "`a | b`\n\n- `c | d`"},
		{"entries are headings", `<dl class="entries"><div class="entry"><dt><a href="#x"><code>x</code></a></dt><dd>Text.<dl class="props"><div><dt>Type</dt><dd><code>string</code></dd></div></dl></dd></div></dl>`, "### `x`\n\nText.\n\n- Type: `string`"},
		{"short facts are one line", `<ul class="chips"><li>a</li><li>b <b>c</b></li></ul>`, "a · b **c**"},
		{"a hash is whole", `<dl class="facts"><dt>sha256</dt><dd><code title="0123456789abcdef">0123…</code></dd></dl>`, "- sha256: `0123456789abcdef`"},
		{"what is folded is unfolded", `<details><summary>3 lines</summary><pre>a
b</pre></details>`, "3 lines\n\n```\na\nb\n```"},
		{"the menu of a documentation comes last", `<div class="docs"><nav class="nav"><ul><li><a href="/o">o</a></li></ul></nav><p>a</p></div>`, "a\n\n- [o](/o?format=md)"},
		{"an author's mark at a heading goes, another # stays", `<h2>a <a class="anchor" href="#a">#</a></h2><p><a href="https://example.com">#</a></p>`, "## a\n\n[#](https://example.com)"},
		{"what is struck out stays so", "<p><del>a</del> <s>b</s></p>", "~~a~~ ~~b~~"},
		{"boxes of tasks", `<ul><li class="task-item"><span class="task done" role="img" aria-label="Done"></span> a</li><li><span class="task"></span> b</li></ul>`, "- [x] a\n- [ ] b"},
		{"code keeps its language", `<pre><code class="language-hcl"><span class="na">a</span> = 1</code></pre>`, "```hcl\na = 1\n```"},
		{"a language is one word", "<pre><code class=\"language-a`b <i>\">x</code></pre>", "```\nx\n```"},
		{"a callout is a quote", `<div class="callout note" role="note"><p class="callout-title">Note</p><p>a</p></div>`, "> Note\n> \n> a"},
		{"a term with several texts", "<dl><dt>a</dt><dd>b</dd><dd>c</dd></dl>", "- a: b\n  \n  c"},
		{"several terms with one text", "<dl><dt>a</dt><dt>b</dt><dd>c</dd></dl>", "- a, b: c"},
		{"a text without a term", "<dl><dd>a</dd><dt>b</dt></dl>", "- a\n- b"},
		{"an entry of two terms", `<dl class="entries"><dt>a</dt><dt>b</dt><dd>c</dd></dl>`, "### a\n\n### b\n\nc"},
		{"other versions are on a page of their own", `<details class="menu"><summary>1.0.0</summary><ul><li>0.9.0</li></ul></details>`, "1.0.0"},
	} {
		if got := strings.TrimSpace(fromPage(t, test.page)); got != test.want {
			t.Errorf("%s: %q, want %q", test.rule, got, test.want)
		}
	}
	if _, err := FromPage(t.Context(), []byte("<p>x</p>"), nil); err == nil {
		t.Error("a page without content is no error")
	}
}

// A table of a README is the same table again after its page became Markdown.
func TestTablesOfReadmesKeepTheirRowsAndCells(t *testing.T) {
	const head, last = "| Name | Description | Type |\n|---|---|---|\n", "| last | Last. | `string` |\n"
	for _, test := range []struct{ rule, row string }{
		{"a type of terraform-docs on several lines", "| <a name=\"input_subnets\"></a> [subnets](#input\\_subnets) | Subnets. | <pre>map(object({<br/>    cidr = string<br/>  }))</pre> |\n"},
		{"a pipe in code", "| mode | One of `a \\| b`. | `\"a\" \\| \"b\"` |\n"},
		{"a pipe in text", "| mode | One of them. | a \\| b |\n"},
	} {
		page := string(readmeOf(head + test.row + last).HTML)
		again := string(readmeOf(fromPage(t, page)).HTML)
		if got, want := cellsOf(t, again), cellsOf(t, page); !slices.Equal(got, want) {
			t.Errorf("%s: the cells are %q, not %q", test.rule, got, want)
		}
	}
}

// cellsOf returns the text of each cell, without spaces.
func cellsOf(t *testing.T, page string) (cells []string) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	for n := range root.Descendants() {
		if n.DataAtom == atom.Td || n.DataAtom == atom.Th {
			cells = append(cells, strings.ReplaceAll(textOf(n), " ", ""))
		}
	}
	return cells
}

// Markdown repeats at each line and each cell what a page says once.
func TestMarkdownOfAPageIsBounded(t *testing.T) {
	quotes := strings.Repeat("<blockquote>", 60)
	lists := strings.Repeat("<ol start=999999999><li>", 60)
	for _, test := range []struct {
		rule, page string
		most       int
		cut        bool
		want       string
	}{
		{"a cell that spans others is one cell", strings.Repeat("<table><tr><td colspan=99 rowspan=99>a</table>", 100), 2000, false, "| a |"},
		{"a table that would be too large is lines", "<table><tr>" + strings.Repeat("<td>a", 1000) + strings.Repeat("<tr><td>b<td>c", 1000) + "</table>", 20_000, false, "\n\nb c\n\n"},
		{"quotes in quotes lose their marks", quotes + "a", 100, false, strings.Repeat("> ", maxQuoted) + "a"},
		{"lists in lists do", strings.Repeat("<ul><li>", 60) + "a", 100, false, strings.Repeat("- ", maxQuoted) + "a"},
		{"lines in quotes count with their marks", quotes + strings.Repeat("a<br>", 1<<16), 2 * maxWritten, true, "> a"},
		{"lines of code in lists do", lists + "<pre>" + strings.Repeat("<span>a\n</span>", 1<<15), 2 * maxWritten, true, "   a\n"},
		{"numbers of lists have nine digits", "<ol start=12345678901234567890><li>a", 5, false, "1. a"},
		{"brackets that nothing closes are text", "<p>" + strings.Repeat("[", maxMarkdown), 2 * maxMarkdown, false, `\[\[`},
		{"a bracket that something closes later is text", "<p>[" + strings.Repeat("a", 1000) + "]", 1010, false, `\[a`},
		{"a bracket alone is as it is", "<p>[ a<p>b", 20, false, "[ a\n\nb"},
		{"a long page is cut", strings.Repeat("<p>"+strings.Repeat("a page of a word ", 60)+"</p>", 1<<12), 2 * maxWritten, true, "a page of a word\n"},
	} {
		got := fromPage(t, test.page)
		if len(got) > test.most || !strings.Contains(got, test.want) {
			t.Errorf("%s: %d bytes: %.300s", test.rule, len(got), got)
		}
		if cut := strings.HasSuffix(got, writtenInPart+"\n"); cut != test.cut {
			t.Errorf("%s: it says that it is cut: %t", test.rule, cut)
		}
	}

	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if text, err := FromPage(gone, []byte("<main>a</main>"), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("nobody waits, and it is written: %q, %v", text, err)
	}
}

// Foreign text stays text: a program that shows the Markdown and lets HTML through, as
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
