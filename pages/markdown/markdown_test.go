package markdown

import (
	"fmt"
	"html/template"
	"net/url"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// readmeOf renders a README of a package in which every link leads to a file.
func readmeOf(text string) Document {
	return Text{Source: text, Prefix: "readme-", Resolve: func(r Reference) string {
		folder := "/files/"
		if r.Image {
			folder = "/images/"
		}
		return (&url.URL{Path: folder + r.Path}).String()
	}}.Render()
}

// A README looks as on GitHub, with the ids and links that a page needs.
func TestReadme(t *testing.T) {
	const external = ` rel="nofollow noopener noreferrer"`
	anchor := func(id string) string {
		return ` <a class="anchor" href="#` + id + `" aria-hidden="true" tabindex="-1">#</a>`
	}
	for _, c := range []struct{ rule, text, want string }{
		{"a paragraph", "a *b* **c** `d` ~~e~~", "<p>a <em>b</em> <strong>c</strong> <code>d</code> <del>e</del></p>\n"},
		{"the first heading is the second on the page", "# A", `<h2 id="readme-a">A` + anchor("readme-a") + "</h2>\n"},
		{"a heading after a byte order mark", "\uFEFF# A", `<h2 id="readme-a">A` + anchor("readme-a") + "</h2>\n"},
		{"a setext heading", "A\n=", `<h2 id="readme-a">A` + anchor("readme-a") + "</h2>\n"},
		{"a heading that is HTML", `<h1 align="center">A</h1>`, `<h2 align="center" id="readme-a">A` + anchor("readme-a") + "</h2>"},
		{"no heading is skipped", "# A\n#### B", `<h2 id="readme-a">A` + anchor("readme-a") + "</h2>\n" + `<h3 id="readme-b">B` + anchor("readme-b") + "</h3>\n"},
		{"a heading without text is none", "# ![](https://example.com/a.png)\n\n<h2></h2>", "<a href=\"https://example.com/a.png\"" + external + ">image</a>\n"},
		{"ids are GitHub's", "# Größe & `count` (v2.0)", `<h2 id="readme-größe--count-v20">Größe &amp; <code>count</code> (v2.0)` + anchor("readme-gr%C3%B6%C3%9Fe--count-v20") + "</h2>\n"},
		{"equal headings are counted", "# A\n# A", `<h2 id="readme-a">A` + anchor("readme-a") + "</h2>\n" + `<h2 id="readme-a-1">A` + anchor("readme-a-1") + "</h2>\n"},
		{"a heading of signs only", "# 🚀", `<h2 id="readme-section">🚀` + anchor("readme-section") + "</h2>\n"},
		{"a link to a heading", "[x](#Usage)\n# Usage", `<p><a href="#readme-usage">x</a></p>` + "\n" + `<h2 id="readme-usage">Usage` + anchor("readme-usage") + "</h2>\n"},
		{"an anchor of terraform-docs", `<a name="input_x"></a> [x](#input\_x)`, `<p><span id="readme-input_x"></span> <a href="#readme-input_x">x</a></p>` + "\n"},
		{"the first of equal ids counts", `<a name="x"></a><a id="x">y</a>`, `<p><span id="readme-x"></span>y</p>` + "\n"},
		{"a relative link", "[x](examples/complete)", `<p><a href="/files/examples/complete">x</a></p>` + "\n"},
		{"a link from the root of the repository", "[x](/LICENSE)", `<p><a href="/files/LICENSE">x</a></p>` + "\n"},
		{"a link to a heading of another file", "[x](b.md#y)", `<p><a href="/files/b.md#readme-y">x</a></p>` + "\n"},
		{"a link to a file with a space", "[x](<a b.md>)", `<p><a href="/files/a%20b.md">x</a></p>` + "\n"},
		{"a link out of the package is only text", "[x](../../y)", "<p>x</p>\n"},
		{"an external link", "[x](https://example.com/?a=b&c)", `<p><a href="https://example.com/?a=b&amp;c"` + external + `>x</a></p>` + "\n"},
		{"a URL in the text", "see https://example.com.", `<p>see <a href="https://example.com"` + external + `>https://example.com</a>.</p>` + "\n"},
		{"a URL without scheme", "[x](//example.com/a)", `<p><a href="https://example.com/a"` + external + `>x</a></p>` + "\n"},
		{"a mail address", "<a@example.com>", `<p><a href="mailto:a@example.com">a@example.com</a></p>` + "\n"},
		{"an image of the package", "![A](docs/a.png)", `<p><img src="/images/docs/a.png" loading="lazy" alt="A"/></p>` + "\n"},
		{"an image without a text", "![](a.png)", `<p><img src="/images/a.png" loading="lazy" alt=""/></p>` + "\n"},
		{"an image of another site is a link", "![A](https://example.com/a.png)", `<p><a href="https://example.com/a.png"` + external + `>A</a></p>` + "\n"},
		{"a badge is the text of its link", "[![build](https://img.example.com/b.svg)](https://ci.example.com)", `<p><a href="https://ci.example.com"` + external + `>build</a></p>` + "\n"},
		{"a badge without a text", "[![](https://img.example.com/b.svg)](https://ci.example.com)", `<p><a href="https://ci.example.com"` + external + `>ci.example.com</a></p>` + "\n"},
		{"a task list", "- [x] a\n- [ ] b", `<ul><li class="task-item"><span class="task done" role="img" aria-label="Done"></span>a</li><li class="task-item"><span class="task" role="img" aria-label="To do"></span>b</li></ul>` + "\n"},
		{"a table scrolls", "| A | B |\n|:-:|---|\n| a | b |", `<div class="scroll" tabindex="0"><table><thead><tr><th align="center">A</th><th>B</th></tr></thead><tbody><tr><td align="center">a</td><td>b</td></tr></tbody></table></div>` + "\n"},
		{"a head of a table that is empty", "| | B |\n|-|-|", `<div class="scroll" tabindex="0"><table><thead><tr><td></td><th>B</th></tr></thead></table></div>` + "\n"},
		{"a type of terraform-docs", "| T |\n|-|\n| <pre>list(object({<br>  a = string<br>}))</pre> |", `<div class="scroll" tabindex="0"><table><thead><tr><th>T</th></tr></thead><tbody><tr><td><pre>list(object({<br/>  a = string<br/>}))</pre></td></tr></tbody></table></div>` + "\n"},
		{"code is highlighted", "```tf\na = 1\n```", `<pre tabindex="0"><code class="language-tf"><span class="na">a</span> = <span class="m">1</span>` + "\n</code></pre>\n"},
		{"a diagram is folded", "```mermaid\ngraph LR; a-->b\n```", "<details><summary>Diagram, as Mermaid source</summary>\n" + `<pre tabindex="0"><code class="language-mermaid">graph LR; a--&gt;b` + "\n</code></pre>\n</details>\n"},
		{"code in a language nobody knows", "```zzz\n<a>\n```", `<pre tabindex="0"><code class="language-zzz">&lt;a&gt;` + "\n</code></pre>\n"},
		{"a note", "-> **Note:** see\nbelow\n\nend", `<div class="callout note" role="note"><p><strong>Note:</strong> see` + "\nbelow</p>\n</div>\n<p>end</p>\n"},
		{"a callout without a title has one", "~> slow", `<div class="callout caution" role="note"><p class="callout-title">Caution</p><p>slow</p>` + "\n</div>\n"},
		{"a callout after a paragraph", "a\n!> b", "<p>a</p>\n" + `<div class="callout warning" role="note"><p class="callout-title">Warning</p><p>b</p>` + "\n</div>\n"},
		{"two callouts", "-> a\n!> b", `<div class="callout note" role="note"><p class="callout-title">Note</p><p>a</p>` + "\n</div>\n" + `<div class="callout warning" role="note"><p class="callout-title">Warning</p><p>b</p>` + "\n</div>\n"},
		{"no callout", "->b\n!>b", "<p>-&gt;b\n!&gt;b</p>\n"},
		{"an alert of GitHub", "> [!WARNING]\n> a\n> b\n", `<div class="callout caution" role="note"><p class="callout-title">Warning</p><p>a` + "\nb</p>\n</div>\n"},
		{"a quote", "> [!OTHER]\n> a", "<blockquote>\n<p>[!OTHER]\na</p>\n</blockquote>\n"},
		{"details", "<details><summary>A</summary>\n\n**b**\n\n</details>", "<details><summary>A</summary>\n<p><strong>b</strong></p>\n</details>"},
		{"a comment vanishes", "a <!-- b --> c\n\n<!-- BEGIN_TF_DOCS -->\nd", "<p>a  c</p>\n\n<p>d</p>\n"},
		{"a footnote", "a[^1]\n\n[^1]: b", `<p>a<sup id="readme-fnref:1"><a href="#readme-fn:1">1</a></sup></p>` + "\n" + `<div class="footnotes">` + "\n<hr/>\n" + `<ol><li id="readme-fn:1">` + "\n" + `<p>b <a href="#readme-fnref:1">↩︎</a></p>` + "\n</li></ol>\n</div>\n"},
		{"an element that is not closed ends with its line", "a <textarea> <title> b\n\nc", "<p>a   b</p>\n<p>c</p>\n"},
		{"bytes that are not text", "a\x00b\xff", "<p>a\uFFFDb\uFFFD</p>\n"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			if got := string(readmeOf(c.text).HTML); got != c.want {
				t.Errorf("%s\nis not\n%s", got, c.want)
			}
		})
	}
}

func TestTextsThatWouldBecomeManyTimesAsLong(t *testing.T) {
	for _, piece := range []string{"-> x\n", "- [x] a\n"} {
		text := strings.Repeat(piece, maxMarkdown/len(piece))
		if got := string(Text{Source: text}.Render().HTML); !strings.HasPrefix(got, "<pre") || len(got) > 5*len(text) {
			t.Errorf("%q becomes %d times as long, want it as it is written", piece, len(got)/len(text))
		}
	}
}

func TestFootnotesAreLookedForSoManyTimes(t *testing.T) {
	var b strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&b, "[^%d]: note\n\n[^%d] and [^%[1]d]\n\n", i, i/2)
	}
	if n := strings.Count(string(Text{Source: b.String()}.Render().HTML), "<sup"); n == 0 || n > maxFootnotes {
		t.Errorf("%d references", n)
	}
}

func TestReadmeResolvesFromItsFolder(t *testing.T) {
	for link, want := range map[string]string{
		"../../examples/complete": "examples/complete",
		"./a/../main.tf":          "modules/subnets/main.tf",
		"../..":                   "",
		"/docs":                   "docs",
		".github/x":               "modules/subnets/.github/x",
	} {
		var got []string
		Text{Source: "[x](" + link + ")", Folder: "modules/subnets", Resolve: func(r Reference) string {
			got = append(got, r.Path)
			return ""
		}}.Render()
		if len(got) != 1 || got[0] != want {
			t.Errorf("%s leads to %q, not to %q", link, got, want)
		}
	}
}

func TestReadmeOutline(t *testing.T) {
	for _, c := range []struct {
		rule, text string
		want       []string
	}{
		{"two levels", "# A\n# B\n## C\n### D\n", []string{"2 A", "2 B", "3 C"}},
		{"not the title of the text", "# Title\n## A\n### B\n## C\n", []string{"2 A", "3 B", "2 C"}},
		{"a text with one heading has one", "# A\n", []string{"2 A"}},
		{"levels that are skipped", "### A\n##### B\n# C\n", []string{"2 A", "3 B", "2 C"}},
		{"what a heading says", "# A `b` [c](d) ![e](f.png)\n", []string{"2 A b c e"}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			var got []string
			for _, e := range readmeOf(c.text).Outline {
				got = append(got, fmt.Sprintf("%d %s", e.Level, e.Text))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%q is not %q", got, c.want)
			}
		})
	}
}

func TestLongReadmeIsCutAfterALine(t *testing.T) {
	d := readmeOf(strings.Repeat("ä line of text\n\n", maxMarkdown/16))
	if !d.Cut || !strings.HasSuffix(string(d.HTML), "<p>ä line of text</p>\n") {
		t.Errorf("it is not cut at the end of a line: …%s", d.HTML[len(d.HTML)-40:])
	}
	if readmeOf("short").Cut {
		t.Error("a short one is cut")
	}
}

// All descriptions of a page together may cost as much as one text.
func TestDescriptionsShareABudget(t *testing.T) {
	const link = "[a](https://example.com/)"
	isLink := func(d *Descriptions) bool { return strings.Contains(string(d.HTML(link)), "<a ") }
	var hostile, long Descriptions
	if !isLink(&hostile) || !isLink(&long) {
		t.Fatal("a link is none")
	}
	for range maxMarkdown/(16<<10) - 1 {
		hostile.HTML(strings.Repeat("[a](", 4<<10))
	}
	if isLink(&hostile) || hostile.left < 0 {
		t.Error("each description has a budget of its own for searches")
	}
	for range maxMarkdown>>10 + 1 {
		long.HTML(strings.Repeat("a", 1<<10))
	}
	if got := string(long.HTML("**a**")); !strings.HasPrefix(got, "<pre") {
		t.Errorf("each description has a budget of its own of bytes: %s", got)
	}
}

// A description is short: headings and HTML in it are text.
func TestDescription(t *testing.T) {
	for _, c := range []struct{ rule, text, want string }{
		{"emphasis and code", "The *name* of `x`", "<p>The <em>name</em> of <code>x</code></p>\n"},
		{"a list", "One of:\n\n- a\n- b", "<p>One of:</p>\n<ul><li>a</li><li>b</li></ul>\n"},
		{"a table", "One of:\n\n| a |\n|-|\n| b |", "<p>One of:</p>\n" + `<div class="scroll" tabindex="0"><table><thead><tr><th>a</th></tr></thead><tbody><tr><td>b</td></tr></tbody></table></div>` + "\n"},
		{"a placeholder", "arn:<partition>:x\n<b>", "<p>arn:&lt;partition&gt;:x\n&lt;b&gt;</p>\n"},
		{"a line break", "a<br />b", "<p>a<br/>b</p>\n"},
		{"a heading", "# a", "<p># a</p>\n"},
		{"a relative link", "[a](b.md)", "<p>a</p>\n"},
		{"a link to a heading", "[a](#b)", "<p>a</p>\n"},
		{"an image", "![a](https://example.com/b)", `<p><a href="https://example.com/b" rel="nofollow noopener noreferrer">a</a></p>` + "\n"},
		{"the indentation of a heredoc", "    a\n\n      - b\n    c\n", "<p>a</p>\n<ul><li>b\nc</li></ul>\n"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			if got := string(new(Descriptions).HTML(c.text)); got != c.want {
				t.Errorf("%s\nis not\n%s", got, c.want)
			}
		})
	}
}

// hostile are texts that try to get out of their place in a page.
var hostile = []string{
	"<script>alert(1)</script>",
	"<script>",
	"<SCRIPT SRC=//example.com/x.js></SCRIPT>",
	"a <script>alert(1)</script> b",
	"<scr<script>ipt>alert(1)</script>",
	`<img src=x onerror=alert(1)>`,
	`<a href="https://example.com" onclick="alert(1)" style="position:fixed">x</a>`,
	`<p style="background:url(javascript:alert(1))" class="site-header" id="content">x</p>`,
	"[x](javascript:alert(1)) [x](JaVaScRiPt:alert(1)) [x](java&#10;script:alert(1)) [x](&#x6a;avascript:alert(1))",
	"[x](vbscript:x) [x](data:text/html;base64,PHNjcmlwdD4=) ![x](data:image/svg+xml,<svg/onload=alert(1)>) [x](file:///etc/passwd)",
	"<javascript:alert(1)> <data:text/html,x>",
	"[x](<javascript:alert(1)>)\n\n[y]: javascript:alert(1)\n[y]",
	`<a href=" javascript:alert(1)">x</a><a href="\x01javascript:alert(1)">x</a><a href="java	script:alert(1)">x</a>`,
	`[x](\\example.com/a) [x](/\example.com) [x](https:/example.com) [x](http:example.com) [x](///example.com)`,
	"[x](//user@example.com) <a href=//example.com>x</a> ![x](//example.com/a.png)",
	"<svg><script>alert(1)</script><a xlink:href=javascript:alert(1)>x</a></svg>",
	"<svg><style><img src=x onerror=alert(1)></style></svg>",
	"<math><mtext><table><mglyph><style><!--</style><img title=\"--&gt;&lt;img src=1 onerror=alert(1)&gt;\">",
	"<style>body{display:none}</style>",
	"<link rel=stylesheet href=//example.com/x.css><meta http-equiv=refresh content=0><base href=//example.com>",
	"<form action=//example.com><input name=password type=password><button>Sign in</button></form>",
	"<iframe src=//example.com></iframe><object data=x></object><embed src=x><frameset><frame src=x></frameset>",
	"<video src=x onerror=alert(1)></video><audio src=x><source src=x onerror=alert(1)>",
	"</div></article></main></body></html>",
	"<div><div><table><tr><td>",
	"<b><i><u><a href=x>",
	"<ul><li><ul></li></ul></ul></li>",
	"<table>x<tr>y<td>z</table></td></tr><td>a",
	"<table><table><tr><td></table></table>",
	"<p><p></p></p></p><div><p></div></p>",
	"<h1><h2><h3>x</h1></h2></h3>",
	"<a><a><a>x</a></a></a><a href=a><h1><a href=b>y</a></h1></a>",
	"<pre>\n\n<pre>x</pre>",
	"<li>x<li>y<dd>z<td>a<tr>b<tbody>c<caption>d",
	"<textarea>x", "<title>x", "<xmp>x", "<plaintext>x", "<noscript><p title=\"</noscript><img src=x onerror=alert(1)>\">",
	"<template><script>alert(1)</script></template><select><option><script>alert(1)</script>",
	"<!-- x\n\n--> <!-- <script> --!> <img src=x onerror=alert(1)>\n\n<![CDATA[<script>alert(1)</script>]]> <?x <script>?>",
	`<a name="x" id="outline">y</a> <div id="content" class="callout warning" role="alert" tabindex="5" aria-hidden="true">x</div>`,
	"# content\n# outline\n<h1 id=content>x</h1>",
	"![x\" onerror=\"alert(1)](a.png \"y\\\" onerror=alert(1)\") [a](b 'c\" onclick=\"d')",
	"```\"><script>alert(1)</script>\nx\n```",
	"`</code><script>alert(1)</script>`",
	"|<script>|</td></tr></table>|\n|-|-|\n|<div>|</div></main>|",
	"<details open ontoggle=alert(1)><summary onclick=x>a",
	"> [!NOTE]\n> <script>alert(1)</script>\n\n-> </div></main>\n",
	"<div align=\"center\"\nonmouseover=alert(1)>x</div>",
	"<img src=\"a.png\" alt=\"`x`\" width=\"1e9\" height=\"99999\" srcset=\"//example.com/a 2x\">",
	"<img src='a.png' / onerror=alert(1)><br/onclick=x><hr/style=x>",
	"<q/cite=javascript:alert(1)>x</q><ins cite=javascript:x>y</ins><blockquote cite=javascript:x>z</blockquote>",
	"<a href='&#1;javascript:alert(1)'>x</a><a href='&Tab;javascript:x'>x</a><a href='x&NewLine;:y'>x</a>",
	strings.Repeat("<div>", 1000) + "x" + strings.Repeat("</div>", 500),
	strings.Repeat("> ", 300) + "x",
	strings.Repeat("- ", 300) + "x",
	strings.Repeat("<b>", 300) + "\n\n" + strings.Repeat("<p>x\n\n", 100),
	strings.Repeat("*", 5000) + "x" + strings.Repeat("*", 5000),
	strings.Repeat("[", 5000) + "x" + strings.Repeat("](y)", 5000),
}

// No text changes the page around it.
func TestHostileReadmeChangesOnlyItself(t *testing.T) {
	for _, text := range hostile {
		checkContained(t, text, readmeOf(text).HTML)
		checkContained(t, text, new(Descriptions).HTML(text))
	}
	checkContained(t, "all of them", readmeOf(strings.Join(hostile, "\n\n")).HTML)
}

func FuzzReadme(f *testing.F) {
	for _, text := range hostile {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		checkContained(t, text, readmeOf(text).HTML)
		checkContained(t, text, new(Descriptions).HTML(text))
	})
}

// checkContained checks that a rendered text has only harmless elements and attributes,
// and that the page around the text stays the same.
func checkContained(t *testing.T, text string, rendered template.HTML) {
	t.Helper()
	if len(text) > 300 {
		text = text[:300] + "…"
	}
	root, err := html.Parse(strings.NewReader(`<!doctype html><main><div class="before"></div><div class="text">` + string(rendered) + `</div><p class="after"></p></main>`))
	if err != nil {
		t.Fatalf("%q: %v in %s", text, err, rendered)
	}
	var main *html.Node
	for n := range root.Descendants() {
		if n.DataAtom == atom.Main {
			main = n
		}
	}
	var around []string
	for n := main.FirstChild; n != nil; n = n.NextSibling {
		around = append(around, n.Data+"."+attribute(n, "class"))
	}
	if want := []string{"div.before", "div.text", "p.after"}; !slices.Equal(around, want) || main.NextSibling != nil {
		t.Fatalf("%q changes the page around it, which has %q: %s", text, around, rendered)
	}
	body := main.FirstChild.NextSibling
	ids := make(map[string]bool)
	for n := range body.Descendants() {
		if n.Type == html.TextNode {
			continue
		}
		if n.Type != html.ElementNode || n.Namespace != "" || !slices.Contains(harmless, n.Data) {
			t.Fatalf("%q has a %q: %s", text, n.Data, rendered)
		}
		for _, a := range n.Attr {
			if why := harm(a); why != "" || a.Key == "id" && ids[a.Val] {
				t.Fatalf("%q has %s=%q, %s: %s", text, a.Key, a.Val, why, rendered)
			}
			if a.Key == "id" {
				ids[a.Val] = true
			}
		}
	}
}

var harmless = strings.Fields(`h2 h3 h4 h5 h6 p br hr div blockquote pre details summary ul ol li dl dt dd
	table caption thead tbody tfoot tr th td a abbr b cite code del dfn em i img ins kbd mark q s samp
	small span strike strong sub sup tt u var`)

// harm says what is wrong with an attribute.
func harm(a html.Attribute) string {
	switch a.Key {
	case "id":
		if !strings.HasPrefix(a.Val, "readme-") {
			return "which can be one of the page's"
		}
	case "href":
		for _, ok := range []string{"https://", "http://", "mailto:", "#readme-", "/files/"} {
			if strings.HasPrefix(a.Val, ok) {
				return ""
			}
		}
		return "which leads elsewhere"
	case "src":
		if !strings.HasPrefix(a.Val, "/images/") {
			return "which is loaded from elsewhere"
		}
	case "class", "role", "aria-label", "aria-hidden", "tabindex", "rel", "loading", "alt", "title", "open", "start",
		"align", "width", "height", "colspan", "rowspan":
	default:
		return "an attribute that nobody allowed"
	}
	return ""
}

// Some texts would take a parser minutes, or become millions of elements. They stay
// within the bounds. Each text is as long as a text can be.
func TestExpensiveReadmeIsBounded(t *testing.T) {
	repeat := func(s string) string { return strings.Repeat(s, maxMarkdown/len(s)) }
	for _, c := range []struct{ what, text string }{
		{"quotes in quotes", repeat("> ")},
		{"lists in lists", repeat("1. ")},
		{"callouts in callouts", repeat("-> ")},
		{"brackets", repeat("[[a](")},
		{"brackets that close", repeat("a](<b")},
		{"parentheses", repeat("[a]((((")},
		{"asterisks", repeat("*a**a ")},
		{"one run of asterisks", repeat("*")},
		{"words with asterisks", repeat("a**b")},
		{"comments that do not end", repeat("a<!--")},
		{"instructions that do not end", repeat("a<?")},
		{"backticks", repeat("`` ``` ")},
		{"a wide table", repeat("|a")[:maxMarkdown/4] + "|\n" + repeat("|-")[:maxMarkdown/4] + "|\n" + repeat("|\n")[:maxMarkdown/3]},
		{"escaped pipes", "|a|\n|-|\n" + repeat("|`\\|`|\n")},
		{"a long reference that is used often", "[a]: /" + strings.Repeat("u", maxMarkdown/2) + "\n\n" + strings.Repeat("[a]", maxMarkdown/6)},
		{"references", repeat("[a]: b\n")},
		{"headings", repeat("# a\n")},
		{"elements in elements", repeat("<div>\n")},
		{"formatting that is never closed", strings.Repeat("<b><i><s><u><em>\n", 10) + "\n" + repeat("<p>x\n\n")},
		{"code that keeps expressions busy", "```yaml\n" + repeat("[") + "\n```\n"},
		{"much of such code", repeat("```yaml\n" + strings.Repeat(strings.Repeat("[", 100)+"\n", 100) + "```\n")},
		{"code without a language", repeat("```\na\n```\n")},
	} {
		t.Run(c.what, func(t *testing.T) {
			d := readmeOf(c.text)
			if most := 16 * maxMarkdown; len(d.HTML) > most {
				t.Errorf("%d bytes are rendered as %d", len(c.text), len(d.HTML))
			}
			if n := nesting(string(d.HTML)); n > maxDepth+8 {
				t.Errorf("elements are nested %d deep", n)
			}
			if text := fromPage(t, string(d.HTML)); len(text) > 4*maxMarkdown {
				t.Errorf("%d bytes are %d as Markdown", len(c.text), len(text))
			}
		})
	}
}

// nesting returns how deep elements are nested.
func nesting(rendered string) int {
	deepest, depth := 0, 0
	for z := html.NewTokenizer(strings.NewReader(rendered)); ; {
		switch z.Next() {
		case html.ErrorToken:
			return deepest
		case html.StartTagToken:
			depth++
			deepest = max(deepest, depth)
		case html.EndTagToken:
			depth--
		}
	}
}
