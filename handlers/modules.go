package handlers

import (
	"net/http"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
)

// serveModules is the module registry protocol:
//
//	:namespace/:name/:system/versions
//	:namespace/:name/:system/:version/download
//	:namespace/:name/:system/:version/archive.tar.gz or .zip
func (g *Registry) serveModules(w http.ResponseWriter, r *request) error {
	s := r.segments
	switch {
	case len(s) == 4 && s[3] == "versions":
		r.Kind = KindModuleVersions
		m, err := r.ownModule(s[0], s[1], s[2])
		if err != nil {
			return err
		}
		return g.writeDocument(w, r, m.List(), "")

	case len(s) == 5 && s[4] == "download":
		r.Kind = KindModuleDownload
		m, v, err := r.ownModuleVersion(s)
		if err != nil {
			return err
		}
		// 204 with this header works in every client (checklist 82).
		a := m.Address
		set(w,
			"X-Terraform-Get", g.base+"/modules/"+a.Namespace+"/"+a.Name+"/"+a.System+"/"+v.Version+"/"+v.Archive.Name,
			"Cache-Control", "no-cache")
		w.WriteHeader(http.StatusNoContent)
		r.answered(r.Request, http.StatusNoContent, 0)
		return nil

	case len(s) == 5 && strings.HasPrefix(s[4], "archive."):
		r.Kind = KindModuleArchive
		m, v, err := r.ownModuleVersion(s)
		if err != nil {
			return err
		}
		if v.Archive.Name != s[4] {
			return fail(http.StatusNotFound, "%s %s is packed as %s", m.Address, v.Version, v.Archive.Name)
		}
		return g.writeFile(w, r, v.Archive)
	}
	return notFound
}

// ownModule finds a module of the registry itself, in whatever case it is
// written (checklist 78).
func (r *request) ownModule(namespace, name, system string) (*index.Module, error) {
	a := index.ModuleAddress{Hostname: r.self, Namespace: namespace, Name: name, System: system}
	if m := r.snapshot.OwnModule(a); m != nil {
		r.module = &m.Address
		return m, nil
	}
	a, err := index.ParseModuleAddress("", namespace, name, system)
	if err != nil {
		return nil, fail(http.StatusNotFound, "that is not the address of a module: use NAMESPACE/NAME/SYSTEM")
	}
	a.Hostname = r.self
	if m := r.snapshot.OwnModule(a); m != nil {
		r.module = &m.Address
		return m, nil
	}
	if r.snapshot.ModulePending(a) {
		return nil, pending
	}
	return nil, fail(http.StatusNotFound, "this registry has no module %s/%s/%s", a.Namespace, a.Name, a.System)
}

// ownModuleVersion finds the version that the first four segments name.
func (r *request) ownModuleVersion(s []string) (*index.Module, *index.ModuleVersion, error) {
	m, err := r.ownModule(s[0], s[1], s[2])
	if err != nil {
		return nil, nil, err
	}
	v := m.Version(s[3])
	if v == nil && r.snapshot.ModulePending(m.Address) {
		return nil, nil, pending
	}
	if v == nil {
		return nil, nil, fail(http.StatusNotFound, "%s has no such version", m.Address)
	}
	r.Version = v.Version
	return m, v, nil
}
