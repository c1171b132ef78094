package handlers

import (
	"net/http"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// emptyArchives is the VERSION.json of a version that the mirror does not have. A 404
// would stop a client that chains this mirror with another source, even if that source
// listed the version (checklist 66).
var emptyArchives = &wire.Document{Head: []byte(`{"archives":{}}`), Tag: `"empty"`}

// resolveMirror resolves a request of the provider network mirror protocol, or for
// a file that it and the provider registry link to:
//
//	:hostname/:namespace/:type/index.json
//	:hostname/:namespace/:type/:version.json
//	:hostname/:namespace/:type/:file
//	-/:namespace/:type/:file
func (g *Registry) resolveMirror(r *request, s []string) (answerer, error) {
	if len(s) != 4 {
		return nil, errNotFound
	}
	host, last := s[0], s[3]
	version, isJSON := strings.CutSuffix(last, ".json")
	notAddress := host == "" || isJSON && host == hostedSegment
	if host == hostedSegment {
		host = ""
	}
	a, err := address.ParseProvider(host, s[1], s[2])
	if err != nil || notAddress {
		return nil, fail(http.StatusNotFound, "that is not the address of a provider: use HOSTNAME/NAMESPACE/TYPE")
	}
	if a.Hostname == "" {
		r.target = g.located(a)
	} else {
		r.target = g.named(r.self, a)
	}
	switch {
	case last == "index.json":
		r.Kind = KindMirrorIndex
		return (*Registry).answerMirrorIndex, g.authorize(r)
	case isJSON:
		r.Kind, r.target.version = KindMirrorArchives, version
		return (*Registry).answerMirrorArchives, g.authorize(r)
	}
	r.Kind, r.target.file = KindProviderFile, last
	return (*Registry).answerProviderFile, g.authorizeFile(r)
}

// answerMirrorIndex answers with index.json.
func (g *Registry) answerMirrorIndex(w http.ResponseWriter, r *request) error {
	p := r.provider()
	switch {
	case r.listPending():
		return errPending
	case g.fetches(r):
		return g.answerMergedIndex(w, r, p)
	case p != nil:
		return g.writeDocument(w, r, p.Index(), links{})
	}
	return g.pendingOrNotFound(w, r)
}

// answerMirrorArchives answers with VERSION.json.
func (g *Registry) answerMirrorArchives(w http.ResponseWriter, r *request) error {
	p := r.provider()
	release := p.Release(r.target.version)
	if release != nil {
		r.Version = release.Version
	} else if _, err := address.ParseProviderVersion(r.target.version); err != nil {
		return g.notFound(w, r)
	}
	switch {
	case release == nil && g.withdrawn(r, r.target.version) != nil:
		return g.writeDocument(w, r, emptyArchives, links{})
	case g.fetches(r):
		return g.answerMergedArchives(w, r, p, release)
	case release != nil:
		return g.writeDocument(w, r, release.Archives(), g.archiveLinks(r, r.target.At(release.Hostname)))
	}
	return g.pendingOrNotFound(w, r)
}

// answerProviderFile answers with a package, SHA256SUMS or its signature.
func (g *Registry) answerProviderFile(w http.ResponseWriter, r *request) error {
	if err := g.fileWithdrawn(r); err != nil {
		return err
	}
	var known *index.File
	p := r.provider()
	if p != nil {
		known = p.File(r.target.file)
	}
	switch {
	case known != nil && (known.Platform != "" || !g.fetches(r)):
	case !g.fetches(r):
		return g.pendingOrNotFound(w, r)
	default:
		f, err := address.ParseReleaseFile(r.target.Name, r.target.file)
		if err != nil || f.Kind != address.ChecksumsFile && f.Kind != address.SignatureFile {
			return g.writeFetched(w, r)
		}
		r.target.version = f.Version.String()
		release := p.Release(r.target.version)
		if release == nil || release.Signature.By != index.ByPublisher || g.Upstream.MayHaveMore(r.target.Address, release) {
			return g.answerFetchedDocument(w, r, f.Kind, release, known)
		}
	}
	r.Version, r.Platform = known.Version, known.Platform
	return g.writeFile(w, r, r.snapshot, known)
}
