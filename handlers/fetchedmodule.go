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

// folderPatience is how long a request that has waited for a package waits for the
// folder in it, within the ten seconds that clients give it (checklist 25).
const folderPatience = time.Second

// A presentModule is what the tree has of a module, and says about it. Both may be nil.
type presentModule struct {
	*index.Module
	Metadata *registryhcl.File
}

// versions are those in the tree.
func (m presentModule) versions() []*index.ModuleVersion {
	if m.Module == nil {
		return nil
	}
	return m.Versions
}

// mergedModuleVersions returns the list of the versions of m, which may be nil, and of
// those that the origin offers.
func (g *Registry) mergedModuleVersions(r *request, m *index.Module) (mergedDocument, error) {
	present := presentModule{m, g.metadata(r)}
	return g.mergedList(r, KindModuleVersions, present, m != nil, func(further []wire.ProviderVersion) mergedDocument {
		var d mergedDocument
		d.Document, d.latest = index.ModuleVersions(r.target.Address, present.versions(), versionsOf(withoutWithdrawn(further, present.Metadata)), present.Metadata)
		return d
	})
}

// answerMergedModuleVersions answers with that list. If the origin fails, it is that of
// m.
func (g *Registry) answerMergedModuleVersions(w http.ResponseWriter, r *request, m *index.Module) error {
	d, err := g.mergedModuleVersions(r, m)
	if err != nil && m != nil {
		return g.writeDocument(w, r, m.List(), links{})
	}
	return g.writeMergedList(w, r, d, err)
}

// newestModule returns the version of m, which may be nil, that is used if none is
// requested: of all that clients are offered.
func (g *Registry) newestModule(r *request, m *index.Module) (string, error) {
	if !g.fills(r) {
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

// fillModule has the Upstream get the version that r names. It waits no longer than a
// client does.
func (g *Registry) fillModule(r *request, version string, m *index.Module) (*fill.FilledModule, error) {
	ctx, cancel := context.WithDeadline(g.forClient(r), r.waiting().Add(Patience))
	defer cancel()
	filled, err := g.Upstream.FillModule(ctx, r.target.Address, version, m)
	switch {
	case err != nil:
		return nil, cmp.Or(r.outOfTime(ctx), moduleNotFetched(r.target.Address, version, err))
	case filled.New:
		g.filled(r.target.Address)
	}
	return filled, nil
}

// answerFetchedModule says where the package of a module will be, once it is there.
// Clients show an error of this request, and none of the request for the package. If
// that takes long they are sent there, where they wait without a limit.
func (g *Registry) answerFetchedModule(w http.ResponseWriter, r *request, m *index.Module) error {
	t := &r.target
	p := modulePackage{Address: t.Address, version: t.version}
	filled, err := g.fillModule(r, t.version, m)
	switch {
	case err == nil:
		p.archive, p.folder, p.size = filled.Name, filled.Folder, filled.Size
	case errors.Is(err, errStillFetching):
		ctx, cancel := context.WithTimeout(g.forClient(r), folderPatience)
		defer cancel()
		if p.folder, err = g.Upstream.ModuleFolder(ctx, t.Address, t.version); err != nil {
			return moduleNotFetched(t.Address, t.version, err)
		}
		p.archive, p.size = filledArchive, maxTokenDownload+1 // its size is not known
	default:
		return err
	}
	r.address, r.Version = &t.Address, t.version
	return g.writeModuleLocation(w, r, p)
}

// filledArchive is the name of every package that an Upstream gets.
const filledArchive = "archive.tar.gz"

// answerFetchedArchive answers with the package of a module that the snapshot does not
// have, once the Upstream has it.
func (g *Registry) answerFetchedArchive(w http.ResponseWriter, r *request, m *index.Module) error {
	t := &r.target
	if t.file != filledArchive {
		return fail(http.StatusNotFound, "%s %s is packed as %s", t.Address, t.version, filledArchive)
	}
	filled, err := g.Upstream.FillModule(g.forClient(r), t.Address, t.version, m)
	switch {
	case err != nil && r.pending():
		return errPending
	case err != nil:
		return moduleNotFetched(t.Address, t.version, err)
	case filled.New:
		g.filled(t.Address)
	}
	r.address, r.Version = &t.Address, t.version
	return g.writeOpened(w, r, filled.File, filled.Open)
}

// findModule returns a version of a module to describe, and has it fetched first if the
// tree does not have it; an empty version is the latest in the tree, or if there is none,
// that of the origin. If there is the module without that version, it is returned with
// the error.
func (g *Registry) findModule(r *request, version string) (*index.Module, *index.ModuleVersion, error) {
	m := r.module()
	found := m.Version(version)
	if m != nil && version == "" {
		found = m.Latest()
	}
	switch {
	case (found != nil || version == "") && r.listPending(): // nor is it known what is withdrawn
		return nil, nil, errPending
	case found != nil:
		return m, found, nil
	}
	if version == "" && g.fills(r) {
		var err error
		if version, err = g.newestModule(r, nil); err != nil {
			return nil, nil, err
		}
	}
	if r.target.version = version; !g.fills(r) || !g.mayFetch(r) {
		return m, nil, g.versionAbsent(nil, r, m != nil)
	}
	if _, err := g.fillModule(r, version, m); err != nil {
		return m, nil, err
	}
	return nil, nil, errPending // the next snapshot has it
}
