package markdown

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/net/html"
)

func TestLines(t *testing.T) {
	for _, c := range []struct{ rule, language, code, want string }{
		{"each line is by itself", "tf", "a = 1\nb = 2\n", `<span class="na">a</span> = <span class="m">1</span>|<span class="na">b</span> = <span class="m">2</span>`},
		{"a token of several lines is closed on each", "tf", "/* a\nb */\n", `<span class="c1">/* a</span>|<span class="c1">b */</span>`},
		{"empty lines stay", "tf", "\n\na\n", `||a`},
		{"no line break at the end", "", "a\nb", `a|b`},
		{"line breaks of Windows", "", "a\r\nb\r\n", `a|b`},
		{"code is escaped", "", "<b>&\n", `&lt;b&gt;&amp;`},
		{"nothing", "tf", "", ``},
	} {
		if got := strings.Join(Lines(c.language, c.code), "|"); got != c.want {
			t.Errorf("%s: got %s, not %s", c.rule, got, c.want)
		}
	}
}

func TestLanguagesOfFiles(t *testing.T) {
	for name, want := range map[string]string{"main.tf": "tf", "a/b.TF.JSON": "json", "x/Dockerfile": "dockerfile", "a.tftest.hcl": "hcl", "Makefile": "", ".gitignore": "gitignore"} {
		if got := LanguageOf(name); got != want {
			t.Errorf("%s is %q, not %q", name, got, want)
		}
	}
}

// A link to lines of a file stays as it is, and a link to a heading gets the prefix of ids.
func TestLinksToLines(t *testing.T) {
	for fragment, want := range map[string]string{"L12": "L12", "L3-L9": "L3-L9", "l12": "p-l12", "L": "p-L", "L1-": "p-L1-", "Lambda": "p-Lambda", "L1-x": "p-L1-x"} {
		d := Text{Source: "[x](main.tf#" + fragment + ")", Prefix: "p-", Resolve: func(r Reference) string { return "/" + r.Path }}.Render()
		if !strings.Contains(string(d.HTML), `href="/main.tf#`+want+`"`) {
			t.Errorf("#%s leads to %s", fragment, d.HTML)
		}
	}
}

var spans = regexp.MustCompile(`</?span[^>]*>`)

// Whatever the code, its lines are its lines, and every span is closed on its line.
func FuzzLines(f *testing.F) {
	f.Add("tf", "a = <<EOT\nb ${c}\r\nEOT\n/* */\"\n")
	f.Add("yaml", "a: |\n  b\n")
	f.Fuzz(func(t *testing.T, language, code string) {
		if !utf8.ValidString(code) || strings.ContainsRune(code, 0) {
			return // no text
		}
		lines := Lines(language, code)
		want := strings.Split(code, "\n")
		if last := len(want) - 1; want[last] == "" || want[last] == "\r" {
			want = want[:last]
		}
		if len(lines) != len(want) {
			t.Fatalf("%q has %d lines, not %d", code, len(lines), len(want))
		}
		for i, line := range lines {
			if strings.Count(line, "<span") != strings.Count(line, "</span>") {
				t.Errorf("%q has open spans", line)
			}
			text := html.UnescapeString(spans.ReplaceAllString(line, ""))
			if strings.ReplaceAll(text, "\r", "") != strings.ReplaceAll(want[i], "\r", "") && !strings.Contains(want[i], "&") {
				t.Errorf("line %d of %q is %q", i, code, text)
			}
		}
	})
}
