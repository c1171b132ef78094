package e2e_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// The tests of the pages rely on this: the browser notices every fault that they look
// for, and nothing else.

// startBrowsable is startRegistry for sites that the browser visits.
func startBrowsable(t *testing.T, sites ...Site) *Registry {
	t.Helper()
	r := newRegistry(t, newProxy(t))
	shareAuthority(t, r.path("data", "caddy"))
	r.onSocket()
	r.start(t, sites)
	return r
}

// fixture is a site with pages of the given content, by path, at
// pages.example.com. Its policy is as strict as the one of the registry's pages.
func fixture(t *testing.T, pages map[string]string) *Registry {
	t.Helper()
	dir := t.TempDir()
	for name, content := range pages {
		writeFile(t, filepath.Join(dir, name), content)
	}
	site := func(address string) Site {
		return Site{Address: address, Directives: []string{
			`root "` + dir + `"`, "file_server",
			`header Content-Security-Policy "default-src 'none'; img-src 'self'; script-src 'self'; style-src 'self'; base-uri 'none'; form-action 'self'"`,
			`header /open/* -Content-Security-Policy`,
			"handle_errors {", "rewrite * /missing.html", "file_server", "}",
		}}
	}
	return startBrowsable(t, site("pages.example.com"), site("elsewhere.example.com"))
}

// document returns a page without faults, with more content in its body.
func document(body string) string {
	return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>A page</title>
<link rel="icon" href="/icon.svg">
<link rel="stylesheet" href="/style.css">
<script src="/script.js" defer></script>
</head>
<body><main><h1>A page</h1>
` + body + `
</main></body>
</html>
`
}

var fixtureFiles = map[string]string{
	"icon.svg": `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"><path d="M0 0h1v1z"/></svg>`,
	"style.css": `body { color: black; background: white; font: 16px/1.5 sans-serif }
.wide { width: 800px }
.box { overflow-x: auto }
@media (prefers-color-scheme: dark) {
	body { color: white; background: black }
	.pale { color: #333 }
}
`,
	"script.js": `for (const b of document.querySelectorAll('button'))
	b.addEventListener('click', () => navigator.clipboard.writeText(b.dataset.text));
document.addEventListener('keydown', e => {
	const field = document.querySelector('input');
	if (e.key === '/' && field && document.activeElement !== field) { field.focus(); e.preventDefault(); }
});
`,
}

func withFixtureFiles(pages map[string]string) map[string]string {
	for name, content := range fixtureFiles {
		pages[name] = content
	}
	return pages
}

func TestBrowserNotices(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, page, want string
		open             bool // no policy
	}{
		{"nothing on a good page", `<p>Text</p>`, "", false},
		{"an error on the console", `<script>console.error("lost")</script>`, "console error: ", true},
		{"an exception", `<script>throw new Error("lost")</script>`, "uncaught exception: ", true},
		{"a script that the policy forbids", `<script>document.title = "changed"</script>`, "issue: ContentSecurityPolicyIssue", false},
		{"a style that the policy forbids", `<p style="color: red">Text</p>`, "issue: ContentSecurityPolicyIssue", false},
		{"an event handler that the policy forbids", `<img src="/icon.svg" alt="" onload="document.title = 'changed'">`, "issue: ContentSecurityPolicyIssue", false},
		{"an image of another host that the policy forbids", `<img src="https://elsewhere.example.com/icon.svg" alt="">`, "issue: ContentSecurityPolicyIssue", false},
		{"a request to another host", `<img src="https://elsewhere.example.com/icon.svg" alt="">`, "request to another host: https://elsewhere.example.com/icon.svg", true},
		{"a file that is missing", `<img src="/missing.svg" alt="">`, "log: network: ", false},
		{"a dialog", `<script>alert("here")</script>`, `dialog: alert "here"`, true},
	}
	pages := map[string]string{}
	path := func(i int) string {
		name := string(rune('a'+i)) + ".html"
		if tests[i].open {
			return "open/" + name
		}
		return name
	}
	for i, test := range tests {
		pages[path(i)] = document(test.page)
	}
	registry := fixture(t, withFixtureFiles(pages))

	for i, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			tab := openTab(t, registry)
			tab.Open("https://pages.example.com/" + path(i))
			problems := tab.Problems()
			noticed := slices.ContainsFunc(problems, func(p string) bool { return strings.HasPrefix(p, test.want) })
			if test.want == "" && len(problems) > 0 || !noticed && test.want != "" {
				t.Errorf("problems: %q, want one that begins with %q", problems, test.want)
			}
		})
	}
}

func TestBrowserHelpers(t *testing.T) {
	t.Parallel()
	registry := fixture(t, withFixtureFiles(map[string]string{
		"index.html": document(`
<p><a href="/next.html">Next</a></p>
<form action="/next.html"><label>Search <input name="q"></label></form>
<button data-text="one
two">Copy</button>`),
		"next.html":    document(`<p>The next page</p>`),
		"missing.html": document(`<p>There is no such page</p>`),
		"wide.html":    document(`<p class="wide">Text</p>`),
		"scrolls.html": document(`<div class="box" tabindex="0"><p class="wide">Text</p></div>`),
		"alt.html":     document(`<img src="/icon.svg">`),
		"pale.html":    document(`<p class="pale">Text</p>`),
	}))
	const site = "https://pages.example.com/"
	open := func(t *testing.T, page string) *Tab {
		tab := openTab(t, registry)
		tab.Open(site + page)
		return tab
	}

	t.Run("follows a link", func(t *testing.T) {
		tab := open(t, "")
		tab.Follow(`a[href="/next.html"]`)
		if path, text := tab.Path(), tab.Text("p"); path != "/next.html" || text != "The next page" {
			t.Errorf("at %s: %q", path, text)
		}
	})
	t.Run("submits a form", func(t *testing.T) {
		tab := open(t, "")
		tab.Submit("input", "vpc aws")
		if path := tab.Path(); path != "/next.html?q=vpc+aws" {
			t.Errorf("at %s", path)
		}
	})
	t.Run("presses keys", func(t *testing.T) {
		tab := open(t, "")
		tab.Press("/x")
		if value := evaluate[string](tab, `document.querySelector("input").value`); value != "x" {
			t.Errorf("the field has %q", value)
		}
		tab.Press(kb.Tab)
		if focused := evaluate[string](tab, `document.activeElement.innerText`); focused != "Copy" {
			t.Errorf("the focus is on %q", focused)
		}
	})
	t.Run("reads what was copied", func(t *testing.T) {
		tab := open(t, "")
		if text := tab.Copied("button"); text != "one\ntwo" {
			t.Errorf("copied %q", text)
		}
	})
	t.Run("runs no scripts", func(t *testing.T) {
		tab := openTab(t, registry)
		tab.WithoutScripts()
		tab.Open(site)
		tab.Press("/")
		if focused := evaluate[string](tab, `document.activeElement.tagName`); focused != "BODY" {
			t.Errorf("the script of the page has moved the focus to %s", focused)
		}
		tab.Follow(`a[href="/next.html"]`)
		if text := tab.Text("p"); text != "The next page" {
			t.Errorf("it shows %q", text)
		}
	})
	t.Run("sends a token", func(t *testing.T) {
		tab := openTab(t, registry)
		tab.Authorize("secret")
		tab.Open(site + "next.html?token")
		registry.Log.Wait(t, "it is sent", func(e Entry) bool {
			return e.access() && e.Request.URI == "/next.html?token" && e.Request.Headers["Authorization"] != nil
		})
	})
	t.Run("expects a status", func(t *testing.T) {
		tab := openTab(t, registry)
		tab.OpenAs(site+"gone.html", 404)
		if text := tab.Text("p"); text != "There is no such page" {
			t.Errorf("it shows %q", text)
		}
	})
	t.Run("sees what is too wide for a phone", func(t *testing.T) {
		tab := open(t, "wide.html")
		if wide := tab.Overflow(); len(wide) > 0 {
			t.Errorf("on a desktop: %q", wide)
		}
		tab.Resize(phoneWidth, phoneHeight)
		if wide := tab.Overflow(); len(wide) != 2 || !strings.Contains(wide[1], `<p class="wide">`) {
			t.Errorf("on a phone: %q", wide)
		}
		tab.Open(site + "scrolls.html")
		if wide := tab.Overflow(); len(wide) > 0 {
			t.Errorf("though it scrolls in itself: %q", wide)
		}
	})
	t.Run("sees what is not accessible", func(t *testing.T) {
		if v := open(t, "next.html").Violations(); len(v) > 0 {
			t.Errorf("a good page: %q", v)
		}
		if v := open(t, "alt.html").Violations(); len(v) != 1 || !strings.HasPrefix(v[0], "image-alt: ") {
			t.Errorf("an image without a text: %q", v)
		}
		tab := open(t, "pale.html")
		if v := tab.Violations(); len(v) > 0 {
			t.Errorf("in the light: %q", v)
		}
		tab.Prefer("dark")
		if v := tab.Violations(); len(v) != 1 || !strings.HasPrefix(v[0], "color-contrast: ") {
			t.Errorf("dark on dark: %q", v)
		}
	})
	t.Run("takes pictures", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "page.webp")
		open(t, "").Screenshot(file)
		picture, err := os.ReadFile(file)
		if err != nil || !strings.HasPrefix(string(picture), "RIFF") || string(picture[8:12]) != "WEBP" {
			t.Errorf("%v, %d bytes", err, len(picture))
		}
	})
	t.Run("shares nothing between tabs", func(t *testing.T) {
		evaluate[bool](open(t, ""), `localStorage.setItem('seen', 'yes'); true`)
		if seen := evaluate[string](open(t, ""), `localStorage.getItem('seen') ?? 'no'`); seen != "no" {
			t.Error("another tab has what the first one stored")
		}
	})
}
