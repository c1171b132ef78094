package pages

// canonical returns the URL of the page: one for all spellings of the path. The latest version
// is reached with and without "latest", and what is hosted with and without a name of the
// registry.
func (v *visit) canonical() string {
	one := *v
	one.route.address = v.view.Folded(v.route.address)
	if r := &one.route; (r.kind == moduleRoute || r.kind == providerRoute) && r.part == "" && r.rest == "" {
		r.latest = false
	}
	return one.self()
}

// alternates returns the other forms of the page: Markdown, a feed of what is new, and the
// document of the API with the same content.
func (v *visit) alternates() []alternate {
	list := []alternate{{Type: "text/markdown", URL: v.markdownURL(v.canonical())}}
	f := v.route
	f.address = v.view.Folded(f.address)
	f.version, f.latest, f.part, f.rest = "", false, "", ""
	switch v.route.kind {
	case moduleRoute, providerRoute:
		list = append(list, alternate{Type: "application/json", URL: v.documentURL()})
	case placeRoute:
		f.rest = v.route.rest
	case homeRoute:
	default:
		return list
	}
	f.feed = true
	return append(list, alternate{"application/atom+xml", v.url(f), "What is new"})
}

// documentURL returns the URL of the API's details of the module or provider.
func (v *visit) documentURL() string {
	a := v.view.Folded(v.route.address)
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
