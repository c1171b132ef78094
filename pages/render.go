package pages

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"path"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/dustin/go-humanize"

	"github.com/caddy-terraform/caddy-terraform-registry/pages/assets"
)

//go:embed templates/*.html
var templateFiles embed.FS

// embedded returns the parsed templates, which all sites share. They are read once.
var embedded = sync.OnceValue(func() map[string]*template.Template {
	pages := make(map[string]*template.Template)
	parts := template.Must(template.New("").Funcs(functions).ParseFS(templateFiles, "templates/_*.html"))
	files, err := fs.Glob(templateFiles, "templates/*.html")
	if err != nil {
		panic(err) // a bad pattern
	}
	for _, name := range files {
		base := path.Base(name)
		if strings.HasPrefix(base, "_") {
			continue
		}
		page := template.Must(template.Must(parts.Clone()).ParseFS(templateFiles, name))
		pages[strings.TrimSuffix(base, ".html")] = page.Lookup("layout")
	}
	return pages
})

// render returns the page with that name, which is also the name of its template.
func render(name string, model any) ([]byte, error) {
	t := embedded()[name]
	if t == nil {
		return nil, fmt.Errorf("there is no page %q", name)
	}
	var b bytes.Buffer
	if err := t.Execute(&b, model); err != nil {
		return nil, fmt.Errorf("page %s: %w", name, err)
	}
	return b.Bytes(), nil
}

// functions are the functions for templates.
var functions = template.FuncMap{
	"asset": assets.Path,
	"day":   func(at time.Time) string { return at.UTC().Format("2 Jan 2006") },
	"minute": func(at time.Time) string {
		return at.UTC().Format("2 Jan 2006, 15:04") + " UTC"
	},
	"datetime":  func(at time.Time) string { return at.UTC().Format(time.RFC3339) },
	"number":    func(n int) string { return humanize.Comma(int64(n)) },
	"breakable": breakable,
	"dotted":    dotted,
	"count":     count,
}

// breakable returns a name as HTML that a browser may break after a slash or an underscore.
// Elsewhere it is not broken, as a part of a name looks like another name.
func breakable(name string) template.HTML {
	escaped := template.HTMLEscapeString(name)
	return template.HTML(strings.NewReplacer("/", "/<wbr>", "_", "_<wbr>").Replace(escaped))
}

// dotted returns a name that may be a hostname as HTML that a browser may break before a dot.
func dotted(name string) template.HTML {
	return template.HTML(strings.ReplaceAll(template.HTMLEscapeString(name), ".", "<wbr>."))
}

// count returns a number of things, such as "1 module" or "1,204 modules".
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return humanize.Comma(int64(n)) + " " + many
}

// size returns a number of bytes in a readable form.
func size(bytes int64) string {
	return humanize.Bytes(uint64(max(bytes, 0)))
}

// abbreviated returns the beginning and the end of a long hash.
func abbreviated(s string) string {
	if len(s) <= 16 {
		return s
	}
	return s[:8] + "…" + s[len(s)-6:]
}

// shortened returns the beginning of a text that is longer than limit characters.
func shortened(text string, limit int) string {
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	return string([]rune(text)[:limit]) + "…"
}
