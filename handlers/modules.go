package handlers

import (
	"net/http"
	"strings"
	"time"

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
		m, err := g.ownModule(r, s[0], s[1], s[2], "")
		if err != nil {
			return err
		}
		a := m.Address
		a.Hostname = r.self
		if g.moduleListPending(r, a) {
			return pending
		}
		return g.writeDocument(w, r, m.List(), links{})

	case len(s) == 5 && s[4] == "download":
		r.Kind = KindModuleDownload
		m, v, err := g.ownModuleVersion(r, s, "")
		if err != nil {
			return err
		}
		return g.writeLocation(w, r, m, v)

	case len(s) == 5 && strings.HasPrefix(s[4], "archive."):
		r.Kind = KindModuleArchive
		m, v, err := g.ownModuleVersion(r, s, s[4])
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

// writeLocation tells where the package of a module is.
func (g *Registry) writeLocation(w http.ResponseWriter, r *request, m *index.Module, v *index.ModuleVersion) error {
	file := v.Version + "/" + v.Archive.Name
	location := g.PublicURL + g.moduleFolder(m.Address) + file
	if v.Folder != "" {
		// Clients take the folder off again: what they ask for, and what a link is
		// signed for, ends in the archive's name (checklist 89).
		location += "//" + v.Folder
	}
	if r.private {
		signed, err := g.Links.AppendQuery([]byte(location), g.realm(r), g.signedModule(m, file), g.Links.Expiry(time.Now()))
		if err != nil {
			return unavailable("the registry cannot sign links at the moment: try again in a moment", err)
		}
		set(w, "X-Terraform-Get", string(signed), "Cache-Control", r.revalidate())
		if v.Folder == "" && r.downloadsWithToken(v.Archive.Size) { // which knows no folders
			return writeTokenLocation(w, r, location)
		}
	} else {
		set(w, "X-Terraform-Get", location, "Cache-Control", r.revalidate())
	}
	// 204 with this header works in every client (checklist 82).
	w.WriteHeader(http.StatusNoContent)
	r.answered(r.Request, http.StatusNoContent, 0)
	return nil
}

// moduleFolder is the path of all that is a module's.
func (g *Registry) moduleFolder(a index.ModuleAddress) string {
	return g.prefix + "/modules/" + a.Namespace + "/" + a.Name + "/" + a.System + "/"
}

// signedModule is what a link to a file of a module is signed for: the path alone
// does not tell modules of two names of the registry apart. Nil is one that is
// not there, to which there are no links.
func (g *Registry) signedModule(m *index.Module, file string) string {
	if m == nil {
		return ""
	}
	return string(m.Address.Hostname) + g.moduleFolder(m.Address) + file
}

// ownModule finds a module of the registry itself that r may read, in whatever
// case it is written (checklist 78). If r asks for a package, file is where that
// lies below the module: a link may open it.
func (g *Registry) ownModule(r *request, namespace, name, system, file string) (*index.Module, error) {
	a := index.ModuleAddress{Hostname: r.self, Namespace: namespace, Name: name, System: system}
	m := g.ownModuleAt(r, a)
	if m == nil {
		parsed, err := index.ParseModuleAddress("", namespace, name, system)
		if err != nil {
			return nil, fail(http.StatusNotFound, "that is not the address of a module: use NAMESPACE/NAME/SYSTEM")
		}
		a = parsed
		a.Hostname = r.self
		m = g.ownModuleAt(r, a)
	}
	var readable bool
	var err error
	if file == "" {
		readable, err = g.mayRead(r, g.onModule(a))
	} else {
		readable, err = g.mayReadFile(r, g.onModule(a), g.signedModule(m, file))
	}
	if err != nil {
		return nil, err
	}
	if readable && m != nil {
		r.module = &m.Address
		return m, nil
	}
	if readable && g.modulePending(r, a) {
		return nil, pending
	}
	return nil, fail(http.StatusNotFound, "this registry has no module %s/%s/%s", a.Namespace, a.Name, a.System)
}

// ownModuleVersion finds the version that the first four segments of the path
// name; file is the fifth if that is a file's.
func (g *Registry) ownModuleVersion(r *request, s []string, file string) (*index.Module, *index.ModuleVersion, error) {
	r.asked = s[3]
	if file != "" {
		file = s[3] + "/" + file
	}
	m, err := g.ownModule(r, s[0], s[1], s[2], file)
	if err != nil {
		return nil, nil, err
	}
	v := m.Version(s[3])
	a := m.Address
	a.Hostname = r.self
	if v == nil && g.modulePending(r, a) {
		return nil, nil, pending
	}
	if v == nil {
		return nil, nil, fail(http.StatusNotFound, "%s has no such version", m.Address)
	}
	r.Version = v.Version
	return m, v, nil
}
