package handlers

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
)

// serveModules is the module registry protocol:
//
//	:namespace/:name/:system/versions
//	:namespace/:name/:system/download
//	:namespace/:name/:system/:version/download
//	:namespace/:name/:system/:version/archive.tar.gz or .zip
//	:hostname/:namespace/:name/:system/:version/archive.tar.gz or .zip
func (g *Registry) serveModules(w http.ResponseWriter, r *request) error {
	s := r.segments
	switch {
	case len(s) == 4 && s[3] == "versions":
		r.Kind = KindModuleVersions
		m, err := g.ownModule(r, s[0], s[1], s[2])
		if err != nil {
			return err
		}
		a := m.Address
		a.Hostname = r.self
		if g.listPending(r, a, true) {
			return pending
		}
		return g.writeDocument(w, r, m.List(), links{})

	case len(s) == 4 && s[3] == "download":
		r.Kind = KindModuleDownload
		m, err := g.ownModule(r, s[0], s[1], s[2])
		if err != nil {
			return err
		}
		a := m.Address
		a.Hostname = r.self
		if g.listPending(r, a, true) {
			return pending
		}
		return g.redirectToNewest(w, r, m)

	case len(s) == 5 && s[4] == "download":
		r.Kind = KindModuleDownload
		m, v, err := g.ownModuleVersion(r, s)
		if err != nil {
			return err
		}
		return g.writeLocation(w, r, m, v)

	case len(s) == 5 && isModuleArchive(s[4]):
		return g.serveModuleFile(w, r, "", s)

	case len(s) == 6 && isModuleArchive(s[5]) && s[0] != "":
		return g.serveModuleFile(w, r, s[0], s[1:])
	}
	return notFound
}

func isModuleArchive(name string) bool { return strings.HasPrefix(name, "archive.") }

// redirectToNewest answers tools that ask for a module without a version.
func (g *Registry) redirectToNewest(w http.ResponseWriter, r *request, m *index.Module) error {
	v := m.Newest()
	r.Version = v.Version
	a := m.Address
	set(w,
		"Location", g.baseFor(r)+g.prefix+"/modules/"+a.Namespace+"/"+a.Name+"/"+a.System+"/"+v.Version+"/download",
		"Cache-Control", r.revalidate(),
		contentTypeOptions, noSniff)
	w.WriteHeader(http.StatusFound)
	r.answered(r.Request, http.StatusFound, 0)
	return nil
}

// writeLocation tells where the package of a module is: where it is in the tree,
// which is the same whatever name the registry is asked by.
func (g *Registry) writeLocation(w http.ResponseWriter, r *request, m *index.Module, v *index.ModuleVersion) error {
	base := g.baseFor(r)
	a := m.Address
	a.Hostname = v.Hostname
	location := moduleFile(base+g.prefix, a, v.Version, v.Archive.Name)
	folder := ""
	if v.Folder != "" {
		// Clients take the folder off again: what they ask for, and what a link is
		// signed for, ends in the archive's name (checklist 89).
		folder = "//" + v.Folder
	}
	if r.private {
		file := location[len(base)+len(g.prefix):]
		signed, err := g.Links.AppendQuery([]byte(location+folder), g.Tree, file, g.Links.Expiry(time.Now()))
		if err != nil {
			return unavailable("the registry cannot sign links at the moment: try again in a moment", err)
		}
		set(w, "X-Terraform-Get", string(signed), "Cache-Control", r.revalidate(), contentTypeOptions, noSniff)
		if v.Folder == "" && r.downloadsWithToken(v.Archive.Size) { // which knows no folders
			return writeTokenLocation(w, r, location)
		}
	} else {
		set(w, "X-Terraform-Get", location+folder, "Cache-Control", r.revalidate(), contentTypeOptions, noSniff)
	}
	// 204 with this header works in every client (checklist 82).
	w.WriteHeader(http.StatusNoContent)
	r.answered(r.Request, http.StatusNoContent, 0)
	return nil
}

// ownModule finds a module of the registry itself that r may read, in whatever
// case it is written (checklist 78).
func (g *Registry) ownModule(r *request, namespace, name, system string) (*index.Module, error) {
	a, err := address.ParseModule("", namespace, name, system)
	a.Hostname = r.self
	if err != nil {
		return nil, notModuleAddress
	}
	readable, err := g.mayRead(r, resource(a, true))
	if err != nil {
		return nil, err
	}
	if readable {
		if m := g.ownModuleAt(r, a); m != nil {
			r.module = &m.Address
			return m, nil
		}
		if g.pending(r, a, true) {
			return nil, pending
		}
	}
	return nil, noSuchModule(a)
}

var notModuleAddress = fail(http.StatusNotFound, "that is not the address of a module: use NAMESPACE/NAME/SYSTEM")

func noSuchModule(a address.Address) error {
	return fail(http.StatusNotFound, "this registry has no module %s/%s/%s", a.Namespace, a.Name, a.System)
}

// ownModuleVersion finds the version that the first four segments of the path
// name.
func (g *Registry) ownModuleVersion(r *request, s []string) (*index.Module, *index.ModuleVersion, error) {
	r.asked = s[3]
	m, err := g.ownModule(r, s[0], s[1], s[2])
	if err != nil {
		return nil, nil, err
	}
	v := m.Version(s[3])
	a := m.Address
	a.Hostname = r.self
	if v == nil && g.pending(r, a, true) {
		return nil, nil, pending
	}
	if v == nil {
		return nil, nil, fail(http.StatusNotFound, "%s has no such version", m.Address)
	}
	r.Version = v.Version
	return m, v, nil
}

// serveModuleFile answers with a package that the last five segments of the path
// name, hosted if they are under no hostname.
func (g *Registry) serveModuleFile(w http.ResponseWriter, r *request, host string, s []string) error {
	r.Kind = KindModuleArchive
	a, err := address.ParseModule(host, s[0], s[1], s[2])
	if err != nil {
		return notModuleAddress
	}
	version, name := s[3], s[4]
	r.asked = version
	// By the configuration alone: a name that the client chose makes nothing the
	// registry's own.
	asked := resource(a, g.isHosted(a.Hostname))
	link := g.verifyModuleLink(r, a, version, name)
	if link == nil {
		r.private = !g.rules.Public(asked)
		return g.writeModuleFile(w, r, r.snapshot.Module(a), a, version, name)
	}
	readable, err := g.mayReadFile(r, asked, link)
	if err != nil {
		return err
	}
	if !readable {
		return noSuchModule(a)
	}
	m := r.snapshot.Module(a)
	if a.Hostname == "" && g.byName() && (m == nil || m.Version(version) == nil) {
		// Where earlier releases said that those under the registry's name are.
		a.Hostname = r.self
		if m = g.ownModuleAt(r, a); m == nil && g.pending(r, a, true) {
			return pending
		}
	}
	return g.writeModuleFile(w, r, m, a, version, name)
}

// writeModuleFile answers with a package of the module m, which is nil if there is
// none at the address.
func (g *Registry) writeModuleFile(w http.ResponseWriter, r *request, m *index.Module, a address.Address, version, name string) error {
	var v *index.ModuleVersion
	if m != nil {
		r.module = &m.Address
		v = m.Version(version)
	}
	switch {
	case v == nil && wantModule(r, a):
		return pending
	case m == nil:
		return noSuchModule(a)
	case v == nil:
		return fail(http.StatusNotFound, "%s has no such version", m.Address)
	}
	r.Version = v.Version
	if v.Archive.Name != name {
		return fail(http.StatusNotFound, "%s %s is packed as %s", m.Address, v.Version, v.Archive.Name)
	}
	err := g.writeFile(w, r, v.Archive)
	if errors.Is(err, replaced) {
		a = m.Address
		a.Hostname = v.Hostname
		r.wanted = []index.Wanted{{Address: a, Version: v.Version}}
	}
	return err
}
