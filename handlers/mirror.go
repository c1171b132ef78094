package handlers

import (
	"errors"
	"net/http"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/pull"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// emptyArchives is the VERSION.json of a version that the mirror does not have. A 404
// would stop a client that chains this mirror with another source, even if that source
// listed the version (checklist 66).
var emptyArchives = &wire.Document{Head: []byte(`{"archives":{}}`), Tag: `"empty"`}

// emptyIndex is the index.json of a provider without a version, or whose versions are all
// withdrawn here or too young. A 404 would say that there is no such provider (checklist 65).
var emptyIndex = wire.EncodeMirrorIndex(nil)

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
		r.target = g.targetOf(r.self, a)
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

// knowsH1Only reports whether the client does not know zh: hashes, like Terraform before
// 0.14 (checklist 68).
func (r *request) knowsH1Only() bool { return strings.Contains(r.UserAgent(), "Terraform/0.13.") }

// answerMirrorIndex answers with index.json.
func (g *Registry) answerMirrorIndex(w http.ResponseWriter, r *request) error {
	r.provider()
	if r.listPending() {
		return errPending
	}
	p, err := g.offers(r).Provider(r.target.place)
	switch {
	case errors.Is(err, pull.ErrNotOffered):
		return g.pendingOrNotFound(w, r)
	case errors.Is(err, pull.ErrNoneLeft), errors.Is(err, pull.ErrNoneListed):
		return g.writeDocument(w, r, emptyIndex, links{})
	case err != nil:
		return g.listFailed(w, r, err)
	}
	setAge(w, p.Age)
	return g.writeDocument(w, r, p.Index(), links{})
}

// answerMirrorArchives answers with VERSION.json.
func (g *Registry) answerMirrorArchives(w http.ResponseWriter, r *request) error {
	t, a := &r.target, r.target.Address
	if release := r.provider().Release(t.version); release != nil {
		r.Version, a = release.Version, t.WithHostname(release.Hostname)
	} else if _, err := address.ParseProviderVersion(t.version); err != nil {
		return g.notFound(w, r)
	} else if g.withdrawn(r, t.version) != nil {
		return g.writeDocument(w, r, emptyArchives, links{})
	}
	d, err := g.offers(r).Archives(t.place, t.version, r.knowsH1Only())
	switch {
	case errors.Is(err, pull.ErrNotOffered):
		return g.pendingOrNotFound(w, r)
	case errors.Is(err, upstream.ErrNotFound):
		return g.notFound(w, r)
	case err != nil:
		return upstreamFailed(err)
	}
	g.countLocated(r, t.version, "")
	return g.writeDocument(w, r, d, g.archiveLinks(r, a))
}

// issuerOf returns the key ID in the query of a link to SHA256SUMS or its signature. Other
// links have none.
func issuerOf(query string) string {
	for query != "" {
		var parameter string
		parameter, query, _ = strings.Cut(query, "&")
		if issuer, ok := strings.CutPrefix(parameter, wire.IssuerParameter+"="); ok {
			return issuer
		}
	}
	return ""
}

// answerProviderFile answers with a package, SHA256SUMS or its signature.
func (g *Registry) answerProviderFile(w http.ResponseWriter, r *request) error {
	if err := g.fileWithdrawn(r); err != nil {
		return err
	}
	r.provider()
	offers := g.offers(r)
	f, err := offers.ProviderFile(r.target.place, r.target.file, issuerOf(r.URL.RawQuery), r.follows())
	if err != nil {
		r.fileVersion() // the version that the answer is about, and that the request waits for
	}
	switch {
	case errors.Is(err, pull.ErrNotOffered):
		return g.pendingOrNotFound(w, r)
	case errors.Is(err, pull.ErrNotSigned):
		return g.versionFailed(r, err)
	case err != nil:
		return notFetched("such file of "+r.target.Address.String(), err)
	}
	r.aboutTarget()
	r.Version, r.Platform = f.Version, f.Platform
	return g.writeFile(w, r, offers, f)
}
