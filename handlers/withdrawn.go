package handlers

import (
	"cmp"
	"net/http"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/registryhcl"
)

// A version that registry.hcl withdraws is in no list and no document. A lock file or
// an exact constraint leads to a request for it, which is answered with 410 and the
// reason. Only VERSION.json of a mirror is empty instead, since an error there stops
// clients that chain this mirror with another source (checklist 66).

// metadata returns the registry.hcl of the target of r, or nil if there is none.
func (g *Registry) metadata(r *request) *registryhcl.File {
	return r.snapshot.Metadata(g.listedPlace(r))
}

// listedPlace returns the place whose registry.hcl holds for the target of r. Files of hosted
// packages are named by their place in the tree. For them, it is the place that clients saw
// when they asked for the list. It has all folders of the target's place.
func (g *Registry) listedPlace(r *request) index.Place {
	p := r.target.place
	if name := cmp.Or(p.Hostname, r.self); p.Hosted || name == r.self {
		if listed := g.hostedPlace(name, p.Address); listed.Merged {
			return listed
		}
	}
	return p
}

// Withdrawn returns the versions of a provider or module that are in the tree and
// withdrawn, the newest first. It finds them even if no version is offered, so that
// Module and Provider find nothing. Its errors are the errors of Module and Provider.
func (v *View) Withdrawn(a address.Address) ([]index.WithdrawnVersion, error) {
	if err := v.resolve(a); err != nil {
		return nil, err
	}
	return v.request.withdrawnVersions(), nil
}

// Metadata returns the registry.hcl of the last look-up, or nil, even if no version is offered.
func (v *View) Metadata() *registryhcl.File {
	return v.request.snapshot.Metadata(v.request.target.place)
}

// withdrawnVersions returns the versions of the target that are in the tree and
// withdrawn, the newest first.
func (r *request) withdrawnVersions() []index.WithdrawnVersion {
	return r.snapshot.WithdrawnVersions(r.target.place)
}

// listNotFound answers a request for a list that the snapshot does not have. If all
// versions in the tree are withdrawn, the answer says so.
func (g *Registry) listNotFound(w http.ResponseWriter, r *request) error {
	withdrawn := r.withdrawnVersions()
	if len(withdrawn) == 0 || r.pending() {
		return g.pendingOrNotFound(w, r)
	}
	name, newest := r.target.resource().Address, withdrawn[0]
	if why := newest.Notice.String(); why != "" {
		return fail(http.StatusGone, "all versions of %s are withdrawn, the newest one: %s", name, why)
	}
	return fail(http.StatusGone, "all versions of %s are withdrawn", name)
}

// withdrawn returns the answer for a withdrawn version, whether or not its files are in
// the tree. It returns nil for any other version.
func (g *Registry) withdrawn(r *request, text string) error {
	m := g.metadata(r)
	if m == nil || len(m.Withdrawn) == 0 {
		return nil
	}
	parse := address.ParseProviderVersion
	if r.target.IsModule() {
		parse = address.ParseModuleVersion
	}
	v, err := parse(text)
	if err != nil {
		return nil
	}
	n := m.WithdrawnVersion(v)
	if n == nil {
		return nil
	}
	name := r.target.resource().Address
	if why := n.String(); why != "" {
		return fail(http.StatusGone, "%s %s is withdrawn: %s", name, v, why)
	}
	return fail(http.StatusGone, "%s %s is withdrawn: use another version", name, v)
}

// fileWithdrawn is withdrawn for a file of a provider's release.
func (g *Registry) fileWithdrawn(r *request) error {
	if m := g.metadata(r); m == nil || len(m.Withdrawn) == 0 {
		return nil // the usual case, in which names need not be parsed
	}
	f, err := address.ParseReleaseFile(r.target.Name, r.target.file)
	if err != nil {
		return nil
	}
	return g.withdrawn(r, f.Version.String())
}

// versionNotFound answers a request for a version that the snapshot does not have.
// known reports whether it has other versions.
func (g *Registry) versionNotFound(w http.ResponseWriter, r *request, known bool) error {
	if err := g.withdrawn(r, r.target.version); err != nil {
		return err
	}
	if !known || r.pending() {
		return g.pendingOrNotFound(w, r)
	}
	if err := r.target.checkSpelling(); err != nil {
		return err
	}
	return fail(http.StatusNotFound, "%s has no such version", *r.address)
}
