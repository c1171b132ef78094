package pages

import (
	"cmp"
	"net/url"
	"path"
	"strings"
	"sync"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index/catalog"
	"github.com/caddy-terraform/caddy-terraform-registry/index/content"
	"github.com/caddy-terraform/caddy-terraform-registry/index/moduledoc"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/route"
)

// dependencies returns the providers and modules that the module uses. Those that the
// visitor can see here have links.
func (m *moduleView) dependencies() dependencies {
	d := dependencies{Terraform: m.shown.RequiredVersion}
	for _, p := range m.shown.Providers {
		name := p.Name
		if p.Aliases != "" {
			name += ", " + p.Aliases
		}
		d.Providers = append(d.Providers, dependency{Name: name, Source: m.providerLink(p.Source), Version: p.Version})
	}
	for _, c := range m.shown.Calls {
		d.Modules = append(d.Modules, dependency{c.Name, m.moduleLink(c.Source), cmp.Or(c.Version, refOf(c.Source)), moduledoc.IsLocal(c.Source)})
	}
	return d
}

// refOf returns the tag, branch or commit that the source of a module in Git names.
func refOf(source string) string {
	_, query, _ := strings.Cut(source, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		return ""
	}
	return values.Get("ref")
}

func (m *moduleView) providerLink(source string) link {
	l := link{Text: source}
	if a, ok := m.visibleSource(source, 2); ok {
		l.URL = m.url(route.ForAddress(a))
	}
	return l
}

func (m *moduleView) moduleLink(source string) link {
	l := link{Text: source}
	if moduledoc.IsLocal(source) {
		if part := path.Join("/", m.shown.Path, source)[1:]; m.whole.Module(part) != nil {
			l.URL = m.url(m.route.WithPart(part))
		}
		return l
	}
	source, part, _ := strings.Cut(source, "//")
	if a, ok := m.visibleSource(source, 3); ok {
		r := route.ForAddress(a)
		if folder, _, _ := strings.Cut(part, "/"); folder == "modules" || folder == "examples" {
			r = r.WithPart(part)
		}
		l.URL = m.url(r)
	}
	return l
}

// visibleSource returns the provider or module that a configuration names, by that many names, if the
// visitor sees it. Its address has no HOSTNAME if it is hosted here, whichever name of the registry
// the configuration has.
func (m *moduleView) visibleSource(source string, names int) (address.Address, bool) {
	for _, a := range catalog.ParseSource(source, names) {
		if a.Hostname == m.view.Hostname() {
			a = a.WithHostname("")
		}
		if m.lookUp(a) == nil {
			return m.view.WithoutOwnName(a), true
		}
	}
	return address.Address{}, false
}

// lookUp looks up a provider or module, and returns why the visitor does not see it.
func (v *visit) lookUp(a address.Address) (err error) {
	if a.IsModule() {
		_, err = v.view.Module(a)
	} else {
		_, err = v.view.Provider(a)
	}
	return err
}

// documented returns a function that returns the URL of the page that documents a resource,
// or nothing if it is not here.
func (m *moduleView) documented() func(*moduledoc.Resource) string {
	providers := make(map[string]func() *documentedTypes) // by name
	for _, p := range m.shown.Providers {
		providers[p.Name] = sync.OnceValue(func() *documentedTypes {
			a, ok := m.visibleSource(p.Source, 2)
			if !ok {
				return new(documentedTypes)
			}
			return m.documentedBy(a)
		})
	}
	return func(r *moduledoc.Resource) string {
		provider := providers[r.Provider]
		if provider == nil {
			return ""
		}
		types := provider()
		title, ok := types.pages[string(resourceDocs[r.Mode])+" "+r.Type]
		if !ok {
			return ""
		}
		return m.docURLOf(types.of, title)
	}
}

// documentedTypes are the types that a provider documents, by category and name.
type documentedTypes struct {
	of    address.Address
	pages map[string]content.DocTitle
}

// documentedBy returns the types that a provider documents. If its documentation
// cannot be looked up, there are no links.
func (v *visit) documentedBy(a address.Address) *documentedTypes {
	d := &documentedTypes{a, make(map[string]content.DocTitle)}
	titles, err := v.view.DocTitles(a)
	if err != nil {
		return d
	}
	for _, t := range titles.All() {
		d.pages[string(t.Category)+" "+t.Name(a.Name)] = t
	}
	return d
}

// resourceDocs are the categories of the pages that document resources.
var resourceDocs = map[moduledoc.Mode]content.DocCategory{
	moduledoc.Managed: content.DocResources, moduledoc.Data: content.DocDataSources, moduledoc.Ephemeral: content.DocEphemeralResources,
}

// source returns an address as configurations have it.
func (v *visit) source(a address.Address) string {
	if a.Hostname == "" {
		return a.WithHostname(v.view.Hostname()).String()
	}
	if a.Hostname == address.TerraformHost {
		return a.WithHostname("").String()
	}
	return a.String()
}
