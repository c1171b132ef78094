package handlers

import (
	"cmp"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/content"
	"github.com/caddy-terraform/caddy-terraform-registry/index/moduledoc"
	"github.com/caddy-terraform/caddy-terraform-registry/registryhcl"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// answerModuleDetail answers with the details of a version of a module, or of the
// latest version.
func (g *Registry) answerModuleDetail(w http.ResponseWriter, r *request) error {
	m, v, err := g.findModule(r, r.target.version)
	if err != nil {
		return err
	}
	r.Version = v.Version
	id, subject, err := g.detailListing(r)
	if err != nil {
		return err
	}
	return g.writeDerived(w, r, derivedID{listingID: id, kind: r.Kind, address: m.Address, merged: r.target.place.Merged, version: v.Version}, func() (*wire.Document, error) {
		p, err := (&View{g, r}).Describe(v)
		if err != nil {
			return nil, err
		}
		return wire.EncodeModuleDetail(g.moduleDetail(r, m, v, p, g.listing(r.snapshot, id, subject))), nil
	})
}

// detailListing returns the listing from which a detail takes the other systems of a
// module. The detail of a module that everyone may read lists only systems that
// everyone may read, so that it is the same for all.
func (g *Registry) detailListing(r *request) (listingID, access.Subject, error) {
	v := &View{g, r}
	if r.target.private {
		return v.listingID()
	}
	everyone := &View{g, &request{Exchange: new(Exchange), self: r.self, snapshot: r.snapshot, subject: new(access.Subject)}}
	return everyone.listingID()
}

func (g *Registry) moduleDetail(r *request, m *index.Module, v *index.ModuleVersion, p *moduledoc.Package, l *listing) *wire.ModuleDetail {
	d := &wire.ModuleDetail{
		Listed: g.described(r, m.Address, m.Metadata(), &v.Facts),
		Root:   modulePart(&p.Root, m.Address.Name), Versions: m.Numbers(),
	}
	d.Description = cmp.Or(d.Description, v.Summary().Description)
	for i := range p.Submodules {
		d.Submodules = append(d.Submodules, modulePart(&p.Submodules[i], ""))
	}
	for i := range p.Examples {
		d.Examples = append(d.Examples, modulePart(&p.Examples[i], ""))
	}
	for _, e := range l.modules.entries() {
		if e.Address.Hostname == r.original && e.Address.Namespace == m.Address.Namespace && e.Address.Name == m.Address.Name {
			d.Systems = append(d.Systems, e.Address.System)
		}
	}
	slices.Reverse(d.Versions)
	if n := v.Deprecated(); n != nil {
		d.Deprecation = &wire.Deprecation{Reason: n.Reason, Link: n.Link}
	}
	return d
}

// modulePart describes a module of a package. A module without a name gets the name of
// its folder.
func modulePart(m *moduledoc.Module, name string) wire.ModulePart {
	part := wire.ModulePart{
		Path: m.Path, Name: cmp.Or(name, path.Base(m.Path)), Readme: m.Readme.Content,
		Empty: m.Readme.Content == "" && len(m.Variables)+len(m.Outputs)+len(m.Calls)+len(m.Resources)+len(m.Providers) == 0,
	}
	for i := range m.Variables {
		v := &m.Variables[i]
		part.Inputs = append(part.Inputs, wire.ModuleInput{
			Name: v.Name, Type: v.Type, Description: v.Description, Default: v.Default, Required: v.Required(),
		})
	}
	for _, o := range m.Outputs {
		part.Outputs = append(part.Outputs, wire.ModuleOutput{Name: o.Name, Description: o.Description})
	}
	for _, c := range m.Calls {
		part.Dependencies = append(part.Dependencies, wire.ModuleDependency{Name: c.Name, Source: c.Source, Version: c.Version})
	}
	for _, p := range m.Providers {
		part.Providers = append(part.Providers, wire.ModuleProvider{
			Name: p.Name, Namespace: providerNamespace(p.Source), Source: p.Source, Version: p.Version,
		})
	}
	for _, r := range m.Resources {
		if r.Mode == moduledoc.Managed {
			part.Resources = append(part.Resources, wire.ModuleResource{Name: r.Name, Type: r.Type})
		}
	}
	return part
}

// providerNamespace returns the namespace in a provider's source,
// [HOSTNAME/]NAMESPACE/TYPE. It is empty if the source has none.
func providerNamespace(source string) string {
	parts := strings.Split(source, "/")
	if len(parts) < 2 {
		return ""
	}
	return parts[len(parts)-2]
}

// answerProviderDetail answers with the details of a release of a provider, or of the
// latest release.
func (g *Registry) answerProviderDetail(w http.ResponseWriter, r *request) error {
	p, release, err := g.findRelease(r, r.target.version)
	if err != nil {
		return err
	}
	r.Version = release.Version
	return g.writeDerived(w, r, derivedID{kind: r.Kind, address: p.Address, merged: r.target.place.Merged, version: release.Version}, func() (*wire.Document, error) {
		docs, err := (&View{g, r}).Docs(release)
		if err != nil {
			return nil, err
		}
		return wire.EncodeProviderDetail(g.providerDetail(r, p, release, docs)), nil
	})
}

// described describes a version, with what the registry.hcl of its address says, which may be nil.
func (g *Registry) described(r *request, a address.Address, said *registryhcl.File, f *index.Facts) wire.Listed {
	said = cmp.Or(said, new(registryhcl.File))
	return wire.Listed{
		Namespace: a.Namespace, Name: a.Name, System: a.System, Version: f.Version,
		Owner: said.Owner, Description: said.Description, Source: said.Source,
		Published: published(r.snapshot, f.Published()), Downloads: g.Usage.Downloads(r.target.resource().Address),
	}
}

// providerDetail describes a release and its documentation, which may be nil.
func (g *Registry) providerDetail(r *request, p *index.Provider, release *index.Release, docs *content.Docs) *wire.ProviderDetail {
	d := &wire.ProviderDetail{Listed: g.described(r, p.Address, p.Metadata(), &release.Facts), Versions: p.Numbers()}
	slices.Reverse(d.Versions)
	if docs == nil {
		return d
	}
	for i := range docs.Pages {
		page := &docs.Pages[i]
		d.Docs = append(d.Docs, wire.ProviderDoc{
			ID:    p.Address.WithHostname("").String() + "/" + release.Version + "/" + page.Path,
			Title: cmp.Or(page.Title, page.Slug), Path: page.Path, Slug: cmp.Or(page.Slug, "index"),
			Category: string(page.Category), Subcategory: page.Subcategory, Language: "hcl",
		})
	}
	return d
}

// published returns the time of a publication, or the time of the scan if there is no
// plausible one. Some file systems and copies have no times, or a time long ago.
func published(s *index.Snapshot, t time.Time) time.Time {
	if t.Year() < firstYear {
		return s.Taken.Truncate(24 * time.Hour)
	}
	return t
}

// firstYear is the year of Terraform's first release.
const firstYear = 2014
