package handlers

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/pull"
)

// resolveModules resolves a request of the module registry protocol, or of the API
// beside it:
//
//	"" or search or :namespace or :namespace/:name
//	:namespace/:name/:system
//	:namespace/:name/:system/:version
//	:namespace/:name/:system/versions
//	:namespace/:name/:system/usage
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
	case len(s) == 4 && s[3] == "usage":
		r.Kind, answer = KindUsage, (*Registry).answerUsage
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
		r.target = g.targetOf(r.self, a.WithHostname(r.original))
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
	r.module()
	if r.listPending() {
		return errPending
	}
	m, err := g.offers(r).Module(r.target.place)
	if err != nil {
		return g.listFailed(w, r, err)
	}
	setAge(w, m.Age)
	return g.writeDocument(w, r, m.List(), links{})
}

// answerNewestModule redirects tools that ask for a module without a version, as the
// public registry does. The redirect is to a path: on another host, clients would drop
// their token (checklist 30).
func (g *Registry) answerNewestModule(w http.ResponseWriter, r *request) error {
	r.module()
	if r.listPending() {
		return errPending
	}
	m, err := g.offers(r).Module(r.target.place)
	switch {
	case errors.Is(err, pull.ErrNotOffered):
		return g.pendingOrNotFound(w, r)
	case err != nil:
		return g.listFailed(w, r, err)
	}
	r.Version = m.Latest().Version
	r.aboutTarget()
	c := Content{Caching: r.revalidate()}
	c.Redirect(w, http.StatusFound, filePath(g.pagePrefix+r.root, r.target.WithHostname(""), r.Version, "download"))
	r.answered(r.Request, http.StatusFound, 0)
	return nil
}

// answerModuleDownload answers with the location of a module's package, once the package
// is there. Clients show an error of this request, but no error of the request for the
// package. If the package comes in slowly, they get its location and wait there, where
// they have no limit.
func (g *Registry) answerModuleDownload(w http.ResponseWriter, r *request) error {
	r.module()
	t, offers := &r.target, g.offers(r)
	p := modulePackage{Address: t.Address, version: t.version, size: maxTokenDownload + 1} // of an unknown size
	v, err := offers.ModuleVersion(t.place, t.version)
	switch {
	case err == nil:
		p = modulePackage{t.place.WithHostname(v.Hostname), v.Version, v.Archive.Name, v.Folder, v.Archive.Size}
	case errors.Is(err, pull.ErrUnfinished):
		if p.archive, p.folder, err = offers.ModuleFolder(t.place, t.version); err != nil {
			return moduleNotFetched(t.Address, t.version, err)
		}
	default:
		return g.versionFailed(r, err)
	}
	r.aboutTarget()
	r.Version = p.version
	return g.writeModuleLocation(w, r, p)
}

// findModule returns a version of a module to describe, once the tree has it. An empty
// version is the latest in the tree, or the latest of all if the tree has none. The module is
// returned with an error too, or nil if the tree has none.
func (g *Registry) findModule(r *request, version string) (*index.Module, *index.ModuleVersion, error) {
	m := r.module()
	found := m.Version(version)
	if m != nil && version == "" {
		found = m.Latest()
	}
	place := r.target.place
	latest := func() (string, error) {
		all, err := g.offers(r).Module(place)
		if err != nil {
			return "", err
		}
		return all.Latest().Version, nil
	}
	fetch := func(version string) error {
		_, err := g.offers(r).ModuleVersion(place, version)
		return err
	}
	if err := g.requireVersion(r, version, found != nil, latest, fetch); err != nil {
		return m, nil, err
	}
	return m, found, nil
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
	g.countLocated(r, p.version, "")
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
	place := index.Place{Address: t.Address, Hosted: t.place.Hosted}
	m := r.snapshot.Module(place)
	if m.Version(t.version) == nil {
		// Earlier releases also handed out paths without HOSTNAME for modules under the
		// registry's name.
		place, m = t.place, r.module()
	}
	offers := g.offers(r)
	f, err := offers.ModulePackage(place, t.version)
	switch {
	case err != nil:
		return g.versionFailed(r, err)
	case f.Name != t.file:
		return fail(http.StatusNotFound, "%s %s is packed as %s", t.Address, t.version, f.Name)
	}
	if m != nil {
		r.address = &m.Address
	}
	r.aboutTarget()
	r.Version = t.version
	return g.writeFile(w, r, offers, f)
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
