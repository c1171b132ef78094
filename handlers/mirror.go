package handlers

import (
	"net/http"
	"net/url"
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
	version, isJSON := strings.CutSuffix(s[3], ".json")
	if !isJSON {
		return g.serveProviderFile(w, r, address, p, s[3])
	}
	r.Kind = KindMirrorArchives
	if s[3] == "index.json" {
		r.Kind = KindMirrorIndex
	}
	own := g.isSelf(address.Hostname, r)
	readable, err := g.mayRead(r, g.onProvider(address, own))
	if err != nil {
		return err
	}
	if !readable {
		return g.serveNothing(w, r, address, version)
	}
	if p != nil {
		r.provider = &p.Address
	}
	if r.Kind == KindMirrorIndex {
		return g.serveIndex(w, r, address, p, own)
	}
	return g.serveArchives(w, r, address, p, own, version)
}

// serveNothing answers as if there was no such provider.
func (g *Registry) serveNothing(w http.ResponseWriter, r *request, a index.ProviderAddress, version string) error {
	if r.Kind == KindMirrorIndex {
		return fail(http.StatusNotFound, "this mirror has no provider %s", a)
	}
	if _, err := index.ParseProviderVersion(version); err != nil {
		return fail(http.StatusNotFound, "that is not a version: use MAJOR.MINOR.PATCH")
	}
	return g.writeDocument(w, r, emptyArchives, links{})
}

// serveIndex answers with index.json of the provider p, which is nil if there is
// none.
func (g *Registry) serveIndex(w http.ResponseWriter, r *request, a index.ProviderAddress, p *index.Provider, own bool) error {
	switch {
	case g.providerListPending(r, a, own):
		return pending
	case !own && g.mirrors(a):
		return g.serveJoinedIndex(w, r, a, p)
	case p != nil:
		return g.writeDocument(w, r, p.Index(), links{})
	case g.providerPending(r, a, own):
		return pending
	}
	return g.serveNothing(w, r, a, "")
}

// serveArchives answers with VERSION.json of the provider p, which is nil if
// there is none.
func (g *Registry) serveArchives(w http.ResponseWriter, r *request, a index.ProviderAddress, p *index.Provider, own bool, version string) error {
	release := p.Release(version)
	r.asked = version
	if release != nil {
		r.Version = release.Version
	} else if _, err := index.ParseProviderVersion(version); err != nil {
		return g.serveNothing(w, r, a, version)
	}
	switch {
	case !own && g.mirrors(a):
		return g.serveJoinedArchives(w, r, a, p, release, version)
	case release != nil:
		return g.writeDocument(w, r, release.Archives(), g.archiveLinks(r, a))
	case g.providerPending(r, a, own):
		return pending
	}
	return g.serveNothing(w, r, a, version)
}

// archiveLinks are those of VERSION.json: relative to the document itself,
// unless a public URL is wanted.
func (g *Registry) archiveLinks(r *request, a index.ProviderAddress) (l links) {
	if r.private || g.PublicURL != "" {
		l.folder = g.providerFolder(a)
	}
	if g.PublicURL != "" {
		l.prefix = g.PublicURL + l.folder
	}
	return l
}

// serveProviderFile answers with a file of the provider p, which is nil if there
// is none.
func (g *Registry) serveProviderFile(w http.ResponseWriter, r *request, a index.ProviderAddress, p *index.Provider, name string) error {
	r.Kind = KindProviderFile
	path := g.providerFolder(a) + url.PathEscape(name)
	if own := g.ownUnderPublicURL(r, a, p, name); own != nil {
		readable, err := g.mayReadFile(r, g.onProvider(a, true), path)
		if readable {
			return g.serveFile(w, r, own, own.File(name))
		}
		if temporary(err) {
			return err
		}
		r.private = false // it is judged as what it is asked as
	}
	own := g.isSelf(a.Hostname, r)
	readable, err := g.mayReadFile(r, g.onProvider(a, own), path)
	if err != nil {
		return err
	}
	switch {
	case !readable:
	case p != nil && p.File(name) != nil:
		return g.serveFile(w, r, p, p.File(name))
	case !own && g.mirrors(a):
		return g.serveFilled(w, r, a, name)
	case g.providerPending(r, a, own):
		return pending
	}
	return fail(http.StatusNotFound, "%s has no such file", a)
}

func (g *Registry) serveFile(w http.ResponseWriter, r *request, p *index.Provider, f *index.File) error {
	r.provider, r.Version, r.Platform = &p.Address, f.Version, f.Platform
	return g.writeFile(w, r, f)
}

// ownUnderPublicURL is the registry's own provider that has a file of that name,
// where p has none. A document has the name the registry was asked by in its
// URLs, and a public URL has them asked for by another: then any name in the
// path may be the registry's own.
func (g *Registry) ownUnderPublicURL(r *request, a index.ProviderAddress, p *index.Provider, name string) *index.Provider {
	if g.PublicURL == "" || len(g.Hostnames) > 0 || p != nil && p.File(name) != nil {
		return nil
	}
	if own := g.ownProviderAt(r, a); own != nil && own.File(name) != nil {
		return own
	}
	return nil
}

// mirrored finds a provider by its whole address, which is valid also when
// there is no such provider.
func (g *Registry) mirrored(r *request, host, namespace, typ string) (index.ProviderAddress, *index.Provider, error) {
	find := func(a index.ProviderAddress) *index.Provider {
		if g.isSelf(a.Hostname, r) {
			return g.ownProviderAt(r, a)
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
