package handlers

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
)

// resolveModules resolves a request of the module registry protocol, or of the API
// beside it:
//
//	"" or search or :namespace or :namespace/:name
//	:namespace/:name/:system
//	:namespace/:name/:system/:version
//	:namespace/:name/:system/versions
//	:namespace/:name/:system/download
//	:namespace/:name/:system/:version/download
//	:namespace/:name/:system/:version/archive.tar.gz or .zip
//	:hostname/:namespace/:name/:system/:version/archive.tar.gz or .zip
func (g *Registry) resolveModules(r *request, s []string) (answerer, error) {
	var answer answerer
	var host, version, file string
	switch {
	case len(s) <= 2:
		return g.resolveModuleList(r, s)
	case len(s) == 3:
		r.Kind, answer = KindModuleDetail, (*Registry).answerModuleDetail
	case len(s) == 4 && s[3] == "versions":
		r.Kind, answer = KindModuleVersions, (*Registry).answerModuleVersions
	case len(s) == 4 && s[3] == "download":
		r.Kind, answer = KindModuleDownload, (*Registry).answerNewestModule
	case len(s) == 4:
		r.Kind, answer, version = KindModuleDetail, (*Registry).answerModuleDetail, s[3]
	case len(s) == 5 && s[4] == "download":
		r.Kind, answer, version = KindModuleDownload, (*Registry).answerModuleDownload, s[3]
	case len(s) == 5 && isModuleArchive(s[4]):
		r.Kind, answer, version, file = KindModuleArchive, (*Registry).answerModuleArchive, s[3], s[4]
	case len(s) == 6 && isModuleArchive(s[5]) && s[0] != "" && r.root == "":
		r.Kind, answer, version, file = KindModuleArchive, (*Registry).answerModuleArchive, s[4], s[5]
		host, s = s[0], s[1:]
	default:
		return nil, errNotFound
	}
	a, err := address.ParseModule(host, s[0], s[1], s[2])
	if err != nil {
		return nil, fail(http.StatusNotFound, "that is not the address of a module: use NAMESPACE/NAME/SYSTEM")
	}
	if host == "" {
		r.target = g.named(r.self, a.At(r.original))
	} else {
		r.target = g.located(a)
	}
	r.target.version, r.target.file = version, file
	if file != "" {
		return answer, g.authorizeFile(r)
	}
	return answer, g.authorize(r)
}

func isModuleArchive(name string) bool { return strings.HasPrefix(name, "archive.") }

func (g *Registry) answerModuleVersions(w http.ResponseWriter, r *request) error {
	m := r.module()
	switch {
	case r.listPending():
		return errPending
	case g.fetches(r):
		return g.answerMergedModuleVersions(w, r, m)
	case m == nil:
		return g.listNotFound(w, r)
	}
	return g.writeDocument(w, r, m.List(), links{})
}

// answerNewestModule redirects tools that ask for a module without a version, as the
// public registry does.
func (g *Registry) answerNewestModule(w http.ResponseWriter, r *request) error {
	m := r.module()
	switch {
	case m == nil && !g.fetches(r):
		return g.pendingOrNotFound(w, r)
	case r.listPending():
		return errPending
	}
	version, err := g.newestModule(r, m)
	if err != nil {
		return err
	}
	r.Version = version
	if m != nil {
		r.address = &m.Address
	} else {
		r.about(r.target.Address)
	}
	c := Content{Caching: r.revalidate()}
	c.Redirect(w, http.StatusFound, filePath(g.baseFor(r)+g.prefix+r.root, r.target.At(""), version, "download"))
	r.answered(r.Request, http.StatusFound, 0)
	return nil
}

// answerModuleDownload answers with the location of a module's package.
func (g *Registry) answerModuleDownload(w http.ResponseWriter, r *request) error {
	m := r.module()
	v := m.Version(r.target.version)
	switch {
	case v != nil:
	case g.fetches(r) && g.mayFetchVersion(r):
		return g.answerFetchedModule(w, r, m)
	default:
		return g.versionNotFound(w, r, m != nil)
	}
	r.Version = v.Version
	return g.writeModuleLocation(w, r, modulePackage{m.Address.At(v.Hostname), v.Version, v.Archive.Name, v.Folder, v.Archive.Size})
}

// A modulePackage is the place of a module's package in the tree.
type modulePackage struct {
	address.Address
	version string
	archive string // the name of its file
	folder  string // the module's folder in the package; empty for its root
	size    int64  // in bytes
}

// writeModuleLocation answers with the URL of a package. The URL contains the place in
// the tree, which is the same under all names of the registry.
func (g *Registry) writeModuleLocation(w http.ResponseWriter, r *request, p modulePackage) error {
	base := g.baseFor(r)
	location := filePath(base+g.prefix, p.Address, p.version, p.archive)
	get := location
	if p.folder != "" {
		// Clients remove the folder before they fetch the package, and link signatures
		// do not cover it (checklist 88, 89, 93).
		get += "//" + p.folder
	}
	if r.target.private {
		file := location[len(base)+len(g.prefix):]
		signed, err := g.Links.AppendQuery([]byte(get), g.Tree, file, g.Links.Expiry(time.Now()))
		if err != nil {
			return linksUnsigned(err)
		}
		get = string(signed)
	}
	set(w, "X-Terraform-Get", get, "Cache-Control", r.revalidate(), contentTypeOptions, noSniff)
	if r.target.private && p.folder == "" && r.downloadsWithToken(p.size) {
		return writeTokenLocation(w, r, location)
	}
	// 204 with this header works in every client (checklist 82).
	w.WriteHeader(http.StatusNoContent)
	r.answered(r.Request, http.StatusNoContent, 0)
	return nil
}

// answerModuleArchive answers with the package of a module's version.
func (g *Registry) answerModuleArchive(w http.ResponseWriter, r *request) error {
	t := &r.target
	if err := g.withdrawn(r, t.version); err != nil {
		return err
	}
	m := r.snapshot.Module(index.PlaceOf(t.Address))
	if m.Version(t.version) == nil {
		// Earlier releases also handed out paths without HOSTNAME for modules under the
		// registry's name.
		m = r.module()
	}
	v := m.Version(t.version)
	switch {
	case v != nil:
	case g.fetches(r) && g.mayFetchVersion(r):
		return g.answerFetchedArchive(w, r, m)
	default:
		return g.versionNotFound(w, r, m != nil)
	}
	r.address = &m.Address
	r.Version = v.Version
	if v.Archive.Name != t.file {
		return fail(http.StatusNotFound, "%s %s is packed as %s", m.Address, v.Version, v.Archive.Name)
	}
	return g.writeFile(w, r, v.Archive)
}

// maxTokenDownload is the size in bytes of a module package that OpenTofu is asked to
// fetch with its token. The whole download may take ten seconds. A line of a megabit a
// second transfers this much in that time.
const maxTokenDownload = 1 << 20

// downloadsWithToken reports whether the client fetches a module package with its token
// if the answer asks for it (use_registry_credentials, OpenTofu since 1.12; checklist
// 83, 84). That is better than a link: the URL has no secret and does not expire, and a
// revoked token is invalid at once.
func (r *request) downloadsWithToken(size int64) bool {
	version, ok := strings.CutPrefix(r.UserAgent(), "OpenTofu/1.")
	if !ok || size > maxTokenDownload || !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer ") {
		return false
	}
	minor, _, _ := strings.Cut(version, ".")
	n, err := strconv.Atoi(minor)
	return err == nil && n >= 12
}

// writeTokenLocation tells a client to fetch the package with its token. The header
// already has a link for other clients.
func writeTokenLocation(w http.ResponseWriter, r *request, location string) error {
	body, _ := json.Marshal(struct { // a string and a boolean always encode
		Location       string `json:"location"`
		UseCredentials bool   `json:"use_registry_credentials"`
	}{location, true})
	return r.write(w, http.StatusOK, Content{Type: jsonType, Body: body, Caching: r.revalidate()})
}
