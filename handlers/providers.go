package handlers

import (
	"net/http"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
)

// resolveProviders resolves a request of the provider registry protocol, or of the
// API beside it:
//
//	"" or search or :namespace
//	:namespace/:type
//	:namespace/:type/:version
//	:namespace/:type/versions
//	:namespace/:type/usage
//	:namespace/:type/:version/download/:os/:arch
//	:namespace/:type/:version/ where publishing is on
func (g *Registry) resolveProviders(r *request, s []string) (answerer, error) {
	var answer answerer
	var version string
	var platform address.Platform
	switch {
	case len(s) == 1:
		return g.resolveProviderList(r, s[0])
	case len(s) == 2:
		r.Kind, answer = KindProviderDetail, (*Registry).answerProviderDetail
	case len(s) == 3 && s[2] == "versions":
		r.Kind, answer = KindProviderVersions, (*Registry).answerProviderVersions
	case len(s) == 3 && s[2] == "usage":
		r.Kind, answer = KindUsage, (*Registry).answerUsage
	case len(s) == 3:
		r.Kind, answer, version = KindProviderDetail, (*Registry).answerProviderDetail, s[2]
	case len(s) == 6 && s[3] == "download":
		r.Kind, answer = KindProviderDownload, (*Registry).answerProviderDownload
		version, platform = s[2], address.Platform{OS: s[4], Arch: s[5]}
	case len(s) == 4 && (g.Publisher == nil || r.root != ""):
		return nil, errNotFound
	case len(s) == 4 && s[3] == "":
		r.Kind, answer, version = KindStaging, (*Registry).answerStaging, s[2]
	case len(s) == 4:
		return nil, methodNotAllowed(allowPut, "this path accepts these methods only: "+allowPut)
	default:
		return nil, errNotFound
	}
	// Clients send the normal form; others may not (checklist 23).
	a, err := address.ParseProvider("", s[0], s[1])
	if err != nil {
		return nil, fail(http.StatusNotFound, "that is not the address of a provider: use NAMESPACE/TYPE")
	}
	r.target = g.targetOf(r.self, a.WithHostname(r.original))
	r.target.version, r.target.platform = version, platform
	if r.Kind == KindStaging {
		return answer, g.authorizeChange(r, access.Publish)
	}
	return answer, g.authorize(r)
}

func (g *Registry) answerProviderVersions(w http.ResponseWriter, r *request) error {
	r.provider()
	if r.listPending() {
		return errPending
	}
	p, err := g.offers(r).Provider(r.target.place)
	switch {
	case err != nil:
		return g.listFailed(w, r, err)
	case p.Versions() == nil:
		return fail(http.StatusNotFound, "no release of %s is signed, so that only the network mirror offers it", p.Address)
	}
	setAge(w, p.Age)
	return g.writeDocument(w, r, p.Versions(), links{})
}

func (g *Registry) answerProviderDownload(w http.ResponseWriter, r *request) error {
	t, a := &r.target, r.target.Address
	if release := r.provider().Release(t.version); release != nil {
		a = t.WithHostname(release.Hostname)
	}
	d, err := g.offers(r).Download(t.place, t.version, t.platform)
	if err != nil {
		return g.versionFailed(r, err)
	}
	r.aboutTarget()
	r.Version, r.Platform = t.version, t.platform.String()
	g.countLocated(r, r.Version, r.Platform)
	return g.writeDocument(w, r, d, g.downloadLinks(r, a))
}

// findRelease returns a release of a provider to describe, once the tree has a package of
// it. An empty version is the latest in the tree, or the latest of all if the tree has
// none. The provider is returned with an error too, or nil if the tree has none.
func (g *Registry) findRelease(r *request, version string) (*index.Provider, *index.Release, error) {
	p := r.provider()
	found := p.Release(version)
	if p != nil && version == "" {
		found = p.Latest()
	}
	place := r.target.place
	latest := func() (string, error) {
		all, err := g.offers(r).Provider(place)
		if err != nil {
			return "", err
		}
		return all.Latest().Version, nil
	}
	fetch := func(version string) error { return g.offers(r).FetchRelease(place, version) }
	if err := g.requireVersion(r, version, found != nil, latest, fetch); err != nil {
		return p, nil, err
	}
	return p, found, nil
}
