package pages

import (
	"cmp"
	"mime"
	"net/url"
	"strconv"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/pages/markdown"
)

// canonical returns the URL of the page. The latest version has a page of its own, which is
// reached with and without "latest".
func (v *visit) canonical() string {
	if v.route.kind == moduleRoute || v.route.kind == providerRoute {
		r := v.route
		if r.latest = false; r.part == "" && r.rest == "" {
			return withQuery(v.url(r), "tab", v.query.tab, "from", v.query.from)
		}
	}
	return v.self()
}

// alternates returns the other forms of the page: Markdown, a feed of what is new, and the
// document of the API with the same content.
func (v *visit) alternates() []alternate {
	list := []alternate{{Type: "text/markdown", URL: v.markdownURL(v.canonical())}}
	f := v.route
	f.version, f.latest, f.part, f.rest = "", false, "", ""
	switch v.route.kind {
	case moduleRoute, providerRoute:
		list = append(list, alternate{Type: "application/json", URL: v.documentURL()})
	case placeRoute:
		f = v.route
	case homeRoute:
	default:
		return list
	}
	f.feed = true
	return append(list, alternate{"application/atom+xml", v.url(f), "What is new"})
}

// documentURL returns the URL of the API's details of the module or provider.
func (v *visit) documentURL() string {
	a := v.route.address
	to := v.view.FilesURL()
	if a.Hostname != "" {
		to += "/registries/" + string(a.Hostname)
	}
	if a.IsModule() {
		to += "/modules/"
	} else {
		to += "/providers/"
	}
	to += a.At("").String()
	if v.route.version != "" {
		to += "/" + v.route.version
	}
	return to
}

const markdownType = "text/markdown; charset=utf-8"

// prefersMarkdown reports whether an Accept header prefers Markdown to HTML. A range such as
// text/* prefers neither.
func prefersMarkdown(accept string) bool {
	if !strings.Contains(accept, "markdown") {
		return false
	}
	var weights struct{ markdown, html float64 }
	for part := range strings.SplitSeq(accept, ",") {
		kind, parameters, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		weight, err := strconv.ParseFloat(cmp.Or(parameters["q"], "1"), 64)
		if err != nil {
			continue
		}
		switch kind {
		case "text/markdown":
			weights.markdown = weight
		case "text/html":
			weights.html = weight
		}
	}
	return weights.markdown > 0 && weights.markdown > weights.html
}

// asMarkdown returns the answer as the visit wants it: a page as Markdown, any other answer as
// it is.
func (v *visit) asMarkdown(a *answer) (*answer, error) {
	if !v.query.markdown || a.contentType != "" || len(a.body) == 0 {
		return a, nil
	}
	select {
	case v.site.writing <- struct{}{}:
		defer func() { <-v.site.writing }()
	case <-v.request.Context().Done():
		return nil, v.request.Context().Err()
	}
	text, err := markdown.FromPage(v.request.Context(), a.body, v.markdownURL)
	if err != nil {
		return nil, err
	}
	m := *a
	m.contentType, m.body, m.zipped = markdownType, text, nil
	if m.tag != "" {
		m.tag = contentTag(text)
	}
	return &m, nil
}

// markdownURL returns the URL of a page as Markdown, and any other URL as it is.
func (v *visit) markdownURL(to string) string {
	u, err := url.Parse(to)
	if err != nil || u.Scheme != "" || u.Host != "" {
		return to
	}
	below, ok := strings.CutPrefix(u.EscapedPath(), v.site.Path)
	if !ok || !strings.HasPrefix(to, "/") {
		return to
	}
	if rt, ok := parseRoute(below); !ok || !rt.isPage() {
		return to
	}
	u.Fragment, u.RawFragment = "", ""
	if u.RawQuery != "" {
		u.RawQuery += "&"
	}
	u.RawQuery += "format=md"
	return u.String()
}

// isPage reports whether the route leads to a page with content.
func (r route) isPage() bool {
	if r.feed {
		return false
	}
	switch r.kind {
	case llmsRoute, suggestionsRoute, assetRoute, moduleFileRoute, loginRoute, callbackRoute, logoutRoute:
		return false
	}
	return true
}
