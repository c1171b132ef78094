package handlers

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/registryhcl"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/fill"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// folderPatience is how long a request waits for the folder of a module in a package
// after it has waited for the package. Both are within the ten seconds that clients
// allow (checklist 25).
const folderPatience = time.Second

// A presentModule is a module in the tree, and its metadata. Both may be nil.
type presentModule struct {
	*index.Module
	Metadata *registryhcl.File
}

// versions returns the versions in the tree.
func (m presentModule) versions() []*index.ModuleVersion {
	if m.Module == nil {
		return nil
	}
	return m.Versions
}

// mergedModuleVersions returns the list of the versions of m, which may be nil, and of
// the versions that the origin offers.
func (g *Registry) mergedModuleVersions(r *request, m *index.Module) (mergedDocument, error) {
	present := presentModule{m, g.metadata(r)}
	return g.mergedList(r, KindModuleVersions, present, m != nil, func(further []wire.ProviderVersion) mergedDocument {
		var d mergedDocument
		d.Document, d.latest = index.ModuleVersions(r.target.Address, present.versions(), versionsOf(withoutWithdrawn(further, present.Metadata)), present.Metadata)
		return d
	})
}

// answerMergedModuleVersions answers with the merged list, or with the list of m if the
// origin fails.
func (g *Registry) answerMergedModuleVersions(w http.ResponseWriter, r *request, m *index.Module) error {
	d, err := g.mergedModuleVersions(r, m)
	if err != nil && m != nil {
		return g.writeDocument(w, r, m.List(), links{})
	}
	return g.writeMergedList(w, r, d, err)
}

// newestModule returns the version to use if a request names none: the newest of all
// that clients are offered. m may be nil.
func (g *Registry) newestModule(r *request, m *index.Module) (string, error) {
	if !g.fetches(r) {
		return m.Latest().Version, nil
	}
	d, err := g.mergedModuleVersions(r, m)
	switch {
	case err == nil && d.latest != "":
		return d.latest, nil
	case m != nil:
		return m.Latest().Version, nil
	case err != nil && r.pending():
		return "", errPending
	case err == nil, errors.Is(err, upstream.ErrNotFound):
		return "", neitherHas(r, err)
	}
	return "", upstreamFailed(err)
}

// fetchModule has the Upstream fetch the version that r names. It waits no longer than
// a client does.
func (g *Registry) fetchModule(r *request, version string, m *index.Module) (*fill.FilledModule, error) {
	ctx, cancel := context.WithDeadline(g.forClient(r), r.waiting().Add(Patience))
	defer cancel()
	filled, err := g.Upstream.FillModule(ctx, r.target.Address, version, m)
	switch {
	case err != nil:
		return nil, cmp.Or(r.outOfTime(ctx), moduleNotFetched(r.target.Address, version, err))
	case filled.New:
		g.fetched(r.target.Address)
	}
	return filled, nil
}

// answerFetchedModule answers with the location of a module's package, once the package
// is there. Clients show an error of this request, but no error of the request for the
// package. If fetching takes long, they get the location of the package, where they
// wait without a limit.
func (g *Registry) answerFetchedModule(w http.ResponseWriter, r *request, m *index.Module) error {
	t := &r.target
	p := modulePackage{Address: t.Address, version: t.version}
	filled, err := g.fetchModule(r, t.version, m)
	switch {
	case err == nil:
		p.archive, p.folder, p.size = filled.Name, filled.Folder, filled.Size
	case errors.Is(err, errStillFetching):
		ctx, cancel := context.WithTimeout(g.forClient(r), folderPatience)
		defer cancel()
		if p.folder, err = g.Upstream.ModuleFolder(ctx, t.Address, t.version); err != nil {
			return moduleNotFetched(t.Address, t.version, err)
		}
		p.archive, p.size = fetchedArchive, maxTokenDownload+1 // the size is unknown
	default:
		return err
	}
	r.address, r.Version = &t.Address, t.version
	return g.writeModuleLocation(w, r, p)
}

// fetchedArchive is the name of every package that an Upstream fetches.
const fetchedArchive = "archive.tar.gz"

// answerFetchedArchive answers with a package that the snapshot does not have, once the
// Upstream has fetched it.
func (g *Registry) answerFetchedArchive(w http.ResponseWriter, r *request, m *index.Module) error {
	t := &r.target
	if t.file != fetchedArchive {
		return fail(http.StatusNotFound, "%s %s is packed as %s", t.Address, t.version, fetchedArchive)
	}
	filled, err := g.Upstream.FillModule(g.forClient(r), t.Address, t.version, m)
	switch {
	case err != nil && r.pending():
		return errPending
	case err != nil:
		return moduleNotFetched(t.Address, t.version, err)
	case filled.New:
		g.fetched(t.Address)
	}
	r.address, r.Version = &t.Address, t.version
	return g.writeOpened(w, r, filled.File, filled.Open)
}

// findModule returns a version of a module to describe, and has it fetched first if the
// tree does not have it. An empty version is the latest in the tree, or the latest of
// the origin if the tree has none. If only the version is missing, findModule returns
// the module with the error.
func (g *Registry) findModule(r *request, version string) (*index.Module, *index.ModuleVersion, error) {
	m := r.module()
	found := m.Version(version)
	if m != nil && version == "" {
		found = m.Latest()
	}
	switch {
	case (found != nil || version == "") && r.listPending(): // it is not known either whether a version is withdrawn
		return nil, nil, errPending
	case found != nil:
		return m, found, nil
	}
	if version == "" && g.fetches(r) {
		var err error
		if version, err = g.newestModule(r, nil); err != nil {
			return nil, nil, err
		}
	}
	if r.target.version = version; !g.fetches(r) || !g.mayFetchVersion(r) {
		return m, nil, g.versionNotFound(nil, r, m != nil)
	}
	if _, err := g.fetchModule(r, version, m); err != nil {
		return m, nil, err
	}
	return nil, nil, errPending // the next snapshot has it
}
