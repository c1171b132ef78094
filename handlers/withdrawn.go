package handlers

import (
	"net/http"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/registryhcl"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A version that registry.hcl withdraws is in no list and no document. A request for it,
// which a lock file or an exact constraint leads to, is answered with 410 and the reason.
// Only VERSION.json of a mirror is empty instead, since an error there stops clients
// that chain this mirror with another source (checklist 66).

// metadata is what registry.hcl says about the target of r, which is nil if there is
// none. For the files of what is hosted, which are named by their place in the tree,
// it is what clients were told when they asked for the list.
func (g *Registry) metadata(r *request) *registryhcl.File {
	t := &r.target
	name := t.under
	if name == "" {
		name = r.self
	}
	merges := g.Rules == nil || len(g.Hostnames) > 0
	if t.merged || merges && (t.hosted || name == r.self) {
		return r.snapshot.HostedMetadata(t.At(name))
	}
	return r.snapshot.Metadata(t.At(t.under))
}

// Withdrawn returns the versions of a provider or module that lie in the tree and are
// withdrawn, the newest first: also where nothing else of it is offered, so that
// Module and Provider find nothing. The error is that of those.
func (v *View) Withdrawn(a address.Address) ([]index.WithdrawnVersion, error) {
	kind := KindProviderVersions
	if a.IsModule() {
		kind = KindModuleVersions
	}
	if err := v.resolve(kind, a); err != nil {
		return nil, err
	}
	return v.request.withdrawnVersions(), nil
}

// withdrawnVersions are the versions of the target that lie in the tree and are withdrawn,
// the newest first.
func (r *request) withdrawnVersions() []index.WithdrawnVersion {
	t := &r.target
	if t.merged {
		return r.snapshot.HostedWithdrawnVersions(t.At(t.under))
	}
	return r.snapshot.WithdrawnVersions(t.At(t.under))
}

// listAbsent answers a request for the list of what the snapshot does not have. If all that
// lies in the tree is withdrawn, the answer says so.
func (g *Registry) listAbsent(w http.ResponseWriter, r *request) error {
	withdrawn := r.withdrawnVersions()
	if len(withdrawn) == 0 || r.pending() {
		return g.absent(w, r)
	}
	name, newest := r.target.resource().Address, withdrawn[0]
	if why := newest.Notice.String(); why != "" {
		return fail(http.StatusGone, "all versions of %s are withdrawn, the newest one: %s", name, why)
	}
	return fail(http.StatusGone, "all versions of %s are withdrawn", name)
}

// withdrawn returns the answer for a version that is withdrawn, whether its files are
// in the tree or not; nil for any other.
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
		return nil // most often, and names need not be parsed
	}
	f, err := address.ParseReleaseFile(r.target.Name, r.target.file)
	if err != nil {
		return nil
	}
	return g.withdrawn(r, f.Version.String())
}

// versionAbsent answers a request for a version that the snapshot does not have.
// known reports whether it has others.
func (g *Registry) versionAbsent(w http.ResponseWriter, r *request, known bool) error {
	if err := g.withdrawn(r, r.target.version); err != nil {
		return err
	}
	if !known || r.pending() {
		return g.absent(w, r)
	}
	if err := r.target.checkSpelling(); err != nil {
		return err
	}
	return fail(http.StatusNotFound, "%s has no such version", *r.address)
}

// withoutWithdrawn drops versions that m withdraws from a list.
func withoutWithdrawn(list []wire.ProviderVersion, m *registryhcl.File) []wire.ProviderVersion {
	kept, _ := index.WithoutWithdrawn(m, list, nil)
	return kept
}
