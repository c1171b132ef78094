package pages

import "github.com/caddy-terraform/caddy-terraform-registry/pages/route"

// canonical returns the URL of the page: one for all spellings of the path. The latest version
// is reached with and without "latest", and what is hosted with and without a name of the
// registry.
func (v *visit) canonical() string {
	one := *v
	one.route.Address = v.view.Folded(v.route.Address)
	if r := &one.route; (r.Kind == route.Module || r.Kind == route.Provider) && r.Part == "" && r.Rest == "" {
		r.Latest = false
	}
	return one.self()
}

// alternates returns the other forms of the page: Markdown, a feed of what is new, and the
// document of the API with the same content.
func (v *visit) alternates() []alternate {
	list := []alternate{{Type: "text/markdown", URL: v.markdownURL(v.canonical())}}
	f := v.route
	f.Address = v.view.Folded(f.Address)
	f.Version, f.Latest, f.Part, f.Rest = "", false, "", ""
	switch v.route.Kind {
	case route.Module, route.Provider:
		list = append(list, alternate{Type: "application/json", URL: v.documentURL()})
	case route.Place:
		f.Rest = v.route.Rest
	case route.Home:
	default:
		return list
	}
	f.Feed = true
	return append(list, alternate{"application/atom+xml", v.url(f), "What is new"})
}

// documentURL returns the URL of the API's details of the module or provider.
func (v *visit) documentURL() string {
	a := v.view.Folded(v.route.Address)
	to := v.view.FilesURL()
	if a.Hostname != "" {
		to += "/registries/" + string(a.Hostname)
	}
	if a.IsModule() {
		to += "/modules/"
	} else {
		to += "/providers/"
	}
	to += a.WithHostname("").String()
	if v.route.Version != "" {
		to += "/" + v.route.Version
	}
	return to
}
