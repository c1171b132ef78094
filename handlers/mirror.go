package handlers

import (
	"errors"
	"net/http"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// emptyArchives is what the mirror says of a version it does not hold. A 404
// would end the work of a client that chains this mirror with another source,
// even when that source listed the version (checklist 66).
var emptyArchives = &wire.Document{Head: []byte(`{"archives":{}}`), Tag: "empty"}

// serveMirror is the provider network mirror protocol, and the files that it
// and the provider registry point to:
//
//	:hostname/:namespace/:type/index.json
//	:hostname/:namespace/:type/:version.json
//	:hostname/:namespace/:type/:file
//	-/:namespace/:type/:file
func (g *Registry) serveMirror(w http.ResponseWriter, r *request) error {
	s := r.segments
	if len(s) != 4 {
		return notFound
	}
	version, isJSON := strings.CutSuffix(s[3], ".json")
	address, err := mirrorAddress(s[0], s[1], s[2])
	if err != nil || isJSON && address.Hostname == "" {
		return fail(http.StatusNotFound, "that is not the address of a provider: use HOSTNAME/NAMESPACE/TYPE")
	}
	if !isJSON {
		return g.serveProviderFile(w, r, address, s[3])
	}
	r.Kind = KindMirrorArchives
	if s[3] == "index.json" {
		r.Kind = KindMirrorIndex
	}
	own := g.isSelf(address.Hostname, r)
	readable, err := g.mayRead(r, resource(address, own))
	if err != nil {
		return err
	}
	if !readable {
		return g.serveNothing(w, r, address, version)
	}
	p := g.mirrored(r, address, own)
	if p != nil {
		r.provider = &p.Address
	}
	if r.Kind == KindMirrorIndex {
		return g.serveIndex(w, r, address, p, own)
	}
	return g.serveArchives(w, r, address, p, own, version)
}

// mirrorAddress is that of a mirror's path; without hostname it is hosted.
func mirrorAddress(host, namespace, typ string) (address.Address, error) {
	if host == hostedSegment {
		return address.ParseProvider("", namespace, typ)
	}
	if host == "" {
		return address.Address{}, errors.New("there is no hostname")
	}
	return address.ParseProvider(host, namespace, typ)
}

// mirrored is what the mirror offers under an address, or nil.
func (g *Registry) mirrored(r *request, a address.Address, own bool) *index.Provider {
	if own {
		return g.ownProviderAt(r, a)
	}
	return r.snapshot.Provider(a)
}

// serveNothing answers as if there was no such provider.
func (g *Registry) serveNothing(w http.ResponseWriter, r *request, a address.Address, version string) error {
	if r.Kind == KindMirrorIndex {
		return fail(http.StatusNotFound, "this mirror has no provider %s", a)
	}
	if _, err := address.ParseProviderVersion(version); err != nil {
		return fail(http.StatusNotFound, "that is not a version: use MAJOR.MINOR.PATCH")
	}
	return g.writeDocument(w, r, emptyArchives, links{})
}

// serveIndex answers with index.json of the provider p, which is nil if there is
// none.
func (g *Registry) serveIndex(w http.ResponseWriter, r *request, a address.Address, p *index.Provider, own bool) error {
	switch {
	case g.listPending(r, a, own):
		return pending
	case !own && g.mirrors(a):
		return g.serveJoinedIndex(w, r, a, p)
	case p != nil:
		return g.writeDocument(w, r, p.Index(), links{})
	case g.pending(r, a, own):
		return pending
	}
	return g.serveNothing(w, r, a, "")
}

// serveArchives answers with VERSION.json of the provider p, which is nil if
// there is none.
func (g *Registry) serveArchives(w http.ResponseWriter, r *request, a address.Address, p *index.Provider, own bool, version string) error {
	release := p.Release(version)
	r.asked = version
	if release != nil {
		r.Version = release.Version
	} else if _, err := address.ParseProviderVersion(version); err != nil {
		return g.serveNothing(w, r, a, version)
	}
	switch {
	case !own && g.mirrors(a):
		return g.serveJoinedArchives(w, r, a, p, release, version)
	case release != nil:
		a.Hostname = release.Hostname
		return g.writeDocument(w, r, release.Archives(), g.archiveLinks(r, a))
	case g.pending(r, a, own):
		return pending
	}
	return g.serveNothing(w, r, a, version)
}

// archiveLinks are those of VERSION.json: relative to the document itself,
// unless a public URL is wanted. The address is the true one of the files.
func (g *Registry) archiveLinks(r *request, a address.Address) (l links) {
	switch {
	case g.PublicURL != "":
		l.prefix = providerFiles(g.base, a)
		l.folder = l.prefix[len(g.base):]
	case r.private:
		l.folder = providerFiles("", a)
	}
	return l
}

// serveProviderFile answers with a file of a provider.
func (g *Registry) serveProviderFile(w http.ResponseWriter, r *request, a address.Address, name string) error {
	r.Kind, r.asked = KindProviderFile, versionOf(a.Name, name)
	// A link opens the file it was signed for and no other, whatever the registry
	// was asked by. That may be a hosted one in any path: the mirror's documents
	// name files by their bare names, which clients look for beside the document.
	link := g.verifyLink(r, a, name)
	if link == nil {
		return g.serveTrueFile(w, r, a, name)
	}
	if hosted := (address.Address{Namespace: a.Namespace, Name: a.Name}); a != hosted {
		other := g.verifyLink(r, hosted, name)
		if other == nil {
			return g.serveTrueFile(w, r, hosted, name)
		}
		link = moreTelling(link, other)
	}
	own := a.Hostname == "" || g.isSelf(a.Hostname, r)
	readable, err := g.mayReadFile(r, resource(a, own), link)
	if err != nil {
		return err
	}
	if readable {
		if p := g.mirrored(r, a, own); p != nil && p.File(name) != nil {
			return g.serveFile(w, r, p, p.File(name))
		}
		if !own && g.mirrors(a) {
			return g.serveFilled(w, r, a, name)
		}
		if g.pending(r, a, own) {
			return pending
		}
	}
	return noSuchFile(a)
}

// versionOf is the version that a file of a provider is of, by its name. For a name
// that no such file has it is what no version is called, so that nothing is read.
func versionOf(typ, name string) string {
	rest, ok := strings.CutPrefix(name, "terraform-provider-"+typ+"_")
	if version, _, _ := strings.Cut(rest, "_"); ok && version != "" {
		return version
	}
	return "none"
}

// serveTrueFile answers with the file that a link was signed for.
func (g *Registry) serveTrueFile(w http.ResponseWriter, r *request, a address.Address, name string) error {
	hosted := g.isHosted(a.Hostname)
	r.private = !g.rules.Public(resource(a, hosted))
	if p := r.snapshot.Provider(a); p != nil && p.File(name) != nil {
		return g.serveFile(w, r, p, p.File(name))
	}
	if !hosted && g.mirrors(a) {
		return g.serveFilled(w, r, a, name)
	}
	if g.pending(r, a, false) {
		return pending
	}
	return noSuchFile(a)
}

func noSuchFile(a address.Address) error {
	return fail(http.StatusNotFound, "%s has no such file", a)
}

// serveFile answers with a file of a provider that is held. One that is not what
// was verified is read again before all else: after a restore there may be many.
func (g *Registry) serveFile(w http.ResponseWriter, r *request, p *index.Provider, f *index.File) error {
	r.provider, r.Version, r.Platform = &p.Address, f.Version, f.Platform
	err := g.writeFile(w, r, f)
	if release := p.Release(f.Version); release != nil && errors.Is(err, replaced) {
		a := p.Address
		a.Hostname = release.Hostname
		r.wanted = []index.Wanted{{Address: a, Version: f.Version}}
	}
	return err
}
