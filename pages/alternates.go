package pages

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
	case partRoute:
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
