package pages

import (
	"cmp"
	"net/url"
	"path"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index/moduledoc"
)

// dependencies returns the providers and modules that the module uses. Those that the
// visitor can see here have links.
func (m *moduleView) dependencies() dependencies {
	d := dependencies{Terraform: m.shown.RequiredVersion}
	for _, p := range m.shown.Providers {
		d.Providers = append(d.Providers, dependency{Name: p.Name, Source: m.providerLink(p.Source), Version: p.Version})
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
	if a, ok := m.parseSource(source, 2); ok {
		if _, err := m.view.Provider(a); err == nil {
			l.URL = m.url(addressRoute(a))
		}
	}
	return l
}

func (m *moduleView) moduleLink(source string) link {
	l := link{Text: source}
	if moduledoc.IsLocal(source) {
		if part := path.Join("/", m.shown.Path, source)[1:]; m.whole.Module(part) != nil {
			l.URL = m.url(m.route.withPart(part))
		}
		return l
	}
	source, part, _ := strings.Cut(source, "//")
	if a, ok := m.parseSource(source, 3); ok {
		if _, err := m.view.Module(a); err == nil {
			r := addressRoute(a)
			if folder, _, _ := strings.Cut(part, "/"); folder == "modules" || folder == "examples" {
				r = r.withPart(part)
			}
			l.URL = m.url(r)
		}
	}
	return l
}

// parseSource reads the address of a provider or module in a configuration, which has
// that many names. The address has no HOSTNAME if it is hosted here.
func (m *moduleView) parseSource(source string, names int) (address.Address, bool) {
	a, err := address.Parse(source)
	if err != nil || a.IsModule() != (names == 3) {
		return a, false
	}
	switch a.Hostname {
	case "":
		a = a.At(publicRegistry)
	case m.view.Hostname():
		a = a.At("")
	}
	return a, true
}

// source returns an address as configurations have it.
func (v *visit) source(a address.Address) string {
	if a.Hostname == "" {
		return a.At(v.view.Hostname()).String()
	}
	if a.Hostname == publicRegistry {
		return a.At("").String()
	}
	return a.String()
}

// publicRegistry is the registry that clients ask for addresses without a hostname.
const publicRegistry = "registry.terraform.io"
