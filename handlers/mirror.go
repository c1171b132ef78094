package handlers

import (
	"net/http"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
)

// emptyArchives is what the mirror says of a version it does not hold. A 404
// would end the work of a client that chains this mirror with another source,
// even when that source listed the version (checklist 66).
var emptyArchives = &index.Document{Head: []byte(`{"archives":{}}`), Tag: "empty"}

// serveMirror is the provider network mirror protocol, and the files that it
// and the provider registry point to:
//
//	:hostname/:namespace/:type/index.json
//	:hostname/:namespace/:type/:version.json
//	:hostname/:namespace/:type/:file
func (g *Registry) serveMirror(w http.ResponseWriter, r *request) error {
	s := r.segments
	if len(s) != 4 {
		return notFound
	}
	address, p, err := g.mirrored(r, s[0], s[1], s[2])
	if err != nil {
		return err
	}
	if p != nil {
		r.provider = &p.Address
	}
	version, isJSON := strings.CutSuffix(s[3], ".json")
	switch {
	case s[3] == "index.json":
		r.Kind = KindMirrorIndex
		if p == nil && r.snapshot.ProviderPending(address) {
			return pending
		}
		if p == nil {
			return fail(http.StatusNotFound, "this mirror has no provider %s", address)
		}
		return g.writeDocument(w, r, p.Index(), "")

	case isJSON:
		r.Kind = KindMirrorArchives
		if p != nil {
			if release := p.Release(version); release != nil {
				r.Version = release.Version
				return g.writeDocument(w, r, release.Archives(), g.mirrorURL(address))
			}
		}
		if _, err := index.ParseProviderVersion(version); err != nil {
			return fail(http.StatusNotFound, "that is not a version: use MAJOR.MINOR.PATCH")
		}
		if r.snapshot.ProviderPending(address) {
			return pending
		}
		return g.writeDocument(w, r, emptyArchives, "")
	}
	r.Kind = KindProviderFile
	if f := g.file(r, address, p, s[3]); f != nil {
		r.Version, r.Platform = f.Version, f.Platform
		return g.writeFile(w, r, f)
	}
	if r.snapshot.ProviderPending(address) {
		return pending
	}
	return fail(http.StatusNotFound, "%s has no such file", address)
}

// mirrored finds a provider by its whole address, which is valid also when
// there is no such provider.
func (g *Registry) mirrored(r *request, host, namespace, typ string) (index.ProviderAddress, *index.Provider, error) {
	find := func(a index.ProviderAddress) *index.Provider {
		if g.isSelf(a.Hostname, r) {
			return r.snapshot.OwnProvider(a)
		}
		return r.snapshot.Provider(a)
	}
	if name, err := hostname(host); err == nil {
		a := index.ProviderAddress{Hostname: name, Namespace: namespace, Type: typ}
		if p := find(a); p != nil {
			return a, p, nil
		}
	}
	// Not as requested, then perhaps in the normal form.
	if host == "" {
		return index.ProviderAddress{}, nil, notFound
	}
	a, err := index.ParseProviderAddress(host, namespace, typ)
	if err != nil {
		return a, nil, fail(http.StatusNotFound, "that is not the address of a provider: use HOSTNAME/NAMESPACE/TYPE")
	}
	return a, find(a), nil
}

// file finds one of the provider p, which may be nil. A document has the name
// the registry was asked by in its URLs, and a public URL has them asked for by
// another: then any name in the path may be the registry's own.
func (g *Registry) file(r *request, a index.ProviderAddress, p *index.Provider, name string) *index.File {
	if p != nil {
		if f := p.File(name); f != nil {
			return f
		}
	}
	if g.PublicURL != "" && len(g.Hostnames) == 0 {
		if p := r.snapshot.OwnProvider(a); p != nil {
			r.provider = &p.Address
			return p.File(name)
		}
	}
	return nil
}

// mirrorURL comes before the names of files in the mirror's documents, which
// are relative to the document itself unless a public URL is wanted.
func (g *Registry) mirrorURL(a index.ProviderAddress) string {
	if g.PublicURL == "" {
		return ""
	}
	return g.fileURL(a.Hostname, a)
}
