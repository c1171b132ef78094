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
	r.target = g.named(r.self, a.At(r.original))
	r.target.version, r.target.platform = version, platform
	if r.Kind == KindStaging {
		return answer, g.authorizeChange(r, access.Publish)
	}
	return answer, g.authorize(r)
}

func (g *Registry) answerProviderVersions(w http.ResponseWriter, r *request) error {
	p := r.provider()
	switch {
	case r.listPending():
		return errPending
	case g.fetches(r):
		return g.answerMergedVersions(w, r, p)
	case p == nil:
		return g.listNotFound(w, r)
	}
	return g.writeProviderVersions(w, r, p)
}

// writeProviderVersions answers with the list of the releases in the tree.
func (g *Registry) writeProviderVersions(w http.ResponseWriter, r *request, p *index.Provider) error {
	if p.Versions() == nil {
		return fail(http.StatusNotFound, "no release of %s is signed, so that only the network mirror offers it", p.Address)
	}
	return g.writeDocument(w, r, p.Versions(), links{})
}

func (g *Registry) answerProviderDownload(w http.ResponseWriter, r *request) error {
	p := r.provider()
	release := p.Release(r.target.version)
	switch {
	case g.fetches(r) && (release != nil || g.mayFetchVersion(r)):
		return g.answerFetchedDownload(w, r, p, release)
	case release == nil:
		return g.versionNotFound(w, r, p != nil)
	}
	pkg := release.Package(r.target.platform.OS, r.target.platform.Arch)
	if pkg == nil || pkg.Download() == nil {
		return fail(http.StatusNotFound, "%s %s has no package for this platform", p.Address, release.Version)
	}
	r.Version, r.Platform = release.Version, pkg.File.Platform
	return g.writeDocument(w, r, pkg.Download(), g.downloadLinks(r, p.Address.At(release.Hostname)))
}
