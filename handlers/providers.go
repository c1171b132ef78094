package handlers

import (
	"net/http"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// resolveProviders resolves a request of the provider registry protocol:
//
//	:namespace/:type/versions
//	:namespace/:type/:version/download/:os/:arch
func (g *Registry) resolveProviders(r *request, s []string) (answerer, error) {
	var answer answerer
	var version string
	var platform address.Platform
	switch {
	case len(s) == 3 && s[2] == "versions":
		r.Kind, answer = KindProviderVersions, (*Registry).answerProviderVersions
	case len(s) == 6 && s[3] == "download":
		r.Kind, answer = KindProviderDownload, (*Registry).answerProviderDownload
		version, platform = s[2], address.Platform{OS: s[4], Arch: s[5]}
	default:
		return nil, errNotFound
	}
	// Clients send the normal form; others may not (checklist 23).
	a, err := address.ParseProvider("", s[0], s[1])
	if err != nil {
		return nil, fail(http.StatusNotFound, "that is not the address of a provider: use NAMESPACE/TYPE")
	}
	r.target = g.hostedAs(r.self, a)
	r.target.version, r.target.platform = version, platform
	return answer, g.authorize(r)
}

func (g *Registry) answerProviderVersions(w http.ResponseWriter, r *request) error {
	p := r.provider()
	switch {
	case p == nil:
		return g.absent(w, r)
	case r.listPending():
		return errPending
	case p.Versions() == nil:
		return fail(http.StatusNotFound, "no release of %s is signed, so that only the network mirror offers it", p.Address)
	}
	return g.writeDocument(w, r, p.Versions(), links{})
}

func (g *Registry) answerProviderDownload(w http.ResponseWriter, r *request) error {
	p := r.provider()
	if p == nil {
		return g.absent(w, r)
	}
	release := p.Release(r.target.version)
	if release == nil {
		return r.versionAbsent(p.Address)
	}
	pkg := release.Package(r.target.platform.OS, r.target.platform.Arch)
	if pkg == nil || pkg.Download() == nil {
		return fail(http.StatusNotFound, "%s %s has no package for this platform", p.Address, release.Version)
	}
	r.Version, r.Platform = release.Version, pkg.File.Platform
	return g.writeDocument(w, r, pkg.Download(), g.downloadLinks(r, p.Address.At(release.Hostname)))
}
