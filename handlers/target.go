package handlers

import (
	"cmp"
	"net/http"
	"slices"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
)

// A target is the provider or module that a request names, or a version or file of one. It
// is resolved once a request. Nothing is looked up before the rules allow it, so that the
// time of an answer does not tell what exists.
//
// Which packages are hosted, and under which name:
//
//  1. Packages under no HOSTNAME in the tree are hosted, under every name of the
//     registry in requests.
//  2. Packages under one of the configured Hostnames are hosted too, under this name. They
//     are merged with the packages under no HOSTNAME. If both have a version, the version
//     under the HOSTNAME is offered.
//  3. Without configured Hostnames, the same holds for the name in the request, if there
//     are no Rules. With Rules, only 1 applies: hosted and mirrored addresses have
//     different rules, and a name that a client chooses must not turn one into the other.
//     With a Log they have different entries, too: it holds for the LogNames alone.
//  4. All other packages are mirrored.
//
// Requests name a target in three ways:
//
//   - The provider and module registry protocols name packages that are hosted under the
//     registry's name in the request (hostedAs).
//   - The paths of the mirror and below registries/ have a HOSTNAME. If it is a name of the
//     registry, they name a package that is hosted under it, and otherwise a mirrored one
//     (named).
//   - The URLs of files in answers, and signed links, name the place in the tree
//     (located), so that they always lead to the same file: there is no merging, and the
//     registry's name in the request makes no difference.
type target struct {
	// Address is the address in the path. It has a HOSTNAME if the path has one.
	address.Address

	version  string // empty: all versions
	platform address.Platform
	file     string // empty: it is not a file

	place index.Place // hosted by rules 1 to 3

	// The result of the rules. Answers about a private target differ from client to
	// client, and have signed links. A target that is not readable is answered as if it
	// did not exist.
	readable, private bool
}

// hostedAs returns a target that is hosted under a name of the registry.
func (g *Registry) hostedAs(name svchost.Hostname, a address.Address) target {
	return target{Address: a, place: g.hostedPlace(name, a)}
}

// hostedPlace returns the place of what is hosted under a name of the registry.
func (g *Registry) hostedPlace(name svchost.Hostname, a address.Address) index.Place {
	if len(g.Hostnames) > 0 || g.Rules == nil && (g.Log == nil || slices.Contains(g.LogNames, name)) {
		return index.Place{Address: a.WithHostname(name), Merged: true, Hosted: true}
	}
	return index.Place{Address: a.WithHostname(""), Hosted: true}
}

// targetOf returns the target of an address. self is the registry's name in the request.
// An address without a HOSTNAME is hosted.
func (g *Registry) targetOf(self svchost.Hostname, a address.Address) target {
	switch {
	case a.Hostname == "":
		return g.hostedAs(self, a)
	case g.isName(self, a.Hostname):
		return g.hostedAs(a.Hostname, a)
	}
	return target{Address: a, place: index.PlaceOf(a)}
}

// located returns the target at an address in the tree. Only the configuration decides
// whether it is hosted.
func (g *Registry) located(a address.Address) target {
	hosted := a.Hostname == "" || slices.Contains(g.Hostnames, a.Hostname)
	return target{Address: a, place: index.Place{Address: a, Hosted: hosted}}
}

// resource returns the resource for the rules.
func (t *target) resource() access.Resource {
	if t.place.Hosted {
		return access.Resource{Address: t.WithHostname(""), Hosted: true}
	}
	return access.Resource{Address: t.Address}
}

// provider returns the provider that r names, or nil, and notes its address.
func (r *request) provider() *index.Provider {
	p := r.snapshot.Provider(r.target.place)
	if p != nil {
		r.address = &p.Address
	}
	return p
}

// module returns the module that r names, or nil, and notes its address.
func (r *request) module() *index.Module {
	m := r.snapshot.Module(r.target.place)
	if m != nil {
		r.address = &m.Address
	}
	return m
}

// inTree reports whether the tree has the provider or module that r names, and notes its
// address.
func (r *request) inTree() bool {
	if r.target.IsModule() {
		return r.module() != nil
	}
	return r.provider() != nil
}

// pending reports whether a part of the target has not been read yet: something that is
// not found may be there in a moment.
func (r *request) pending() bool {
	if r.Kind == KindProviderFile && !r.fileVersion() {
		return false
	}
	return r.snapshot.Pending(r.target.place, r.target.version)
}

// fileVersion sets the version of the target to the version of a provider's file. It
// reports whether the file has one.
func (r *request) fileVersion() bool {
	f, err := address.ParseReleaseFile(r.target.Name, r.target.file)
	if err == nil {
		r.target.version = f.Version.String()
	}
	return err == nil
}

// listPending reports whether the list of versions may lack some that clients have been
// told of. Without them, clients would choose an older version.
func (r *request) listPending() bool {
	return r.snapshot.ListPending(r.target.place)
}

// unknown reports whether nothing is known of the target, because its folder, or the folder
// of a registry.hcl that may withdraw it, could not be read since the start. It may exist or
// be withdrawn, so it is not served, and nothing is fetched in its place.
func (g *Registry) unknown(r *request) bool {
	several := r.target.Name == ""
	return !several && r.snapshot.Unknown(g.listedPlace(r))
}

// awaitedVersions returns the versions that r waits for.
func (r *request) awaitedVersions() []index.Selection {
	t := &r.target
	version := cmp.Or(r.Version, t.version)
	if r.Kind == KindModuleDetail || r.Kind == KindProviderDetail {
		version = "" // a detail lists all versions
	}
	list := []index.Selection{{Address: t.place.Address, Version: version}}
	if t.place.Merged {
		list = append(list, index.Selection{Address: t.WithHostname(""), Version: version})
	}
	return list
}

// pendingOrNotFound answers a request for something that the snapshot does not have.
func (g *Registry) pendingOrNotFound(w http.ResponseWriter, r *request) error {
	if r.pending() {
		return errPending
	}
	return g.notFound(w, r)
}

// checkSpelling returns the answer for a version that is not written as in lists.
// Clients always ask for the version in a list.
func (t *target) checkSpelling() error {
	if v, err := address.ParseModuleVersion(t.version); err == nil && v.String() != t.version {
		return fail(http.StatusNotFound, "versions are written out here: ask for %s", v)
	}
	return nil
}

// notFound answers a request for something that does not exist or that the user may not
// read. These answers must not differ.
func (g *Registry) notFound(w http.ResponseWriter, r *request) error {
	t := &r.target
	also := "" // depends only on the configuration
	if g.Upstream != nil && !t.place.Hosted && !g.fetches(t, r.snapshot) {
		also = ", and does not fetch it from its origin"
	}
	if err := t.checkSpelling(); err != nil {
		return err
	}
	switch r.Kind {
	case KindProviderVersions, KindProviderDownload, KindProviderDetail:
		return fail(http.StatusNotFound, "this registry has no provider %s%s", t.resource().Address, also)
	case KindModuleVersions, KindModuleDownload, KindModuleArchive, KindModuleDetail:
		return fail(http.StatusNotFound, "this registry has no module %s%s", t.resource().Address, also)
	case KindTlogLookup:
		return fail(http.StatusNotFound, "the transparency log has no entry of %s %s", t.resource().Address, t.version)
	case KindUsage:
		kind := "provider"
		if t.IsModule() {
			kind = "module"
		}
		return fail(http.StatusNotFound, "this registry has no %s %s%s", kind, t.resource().Address, also)
	case KindMirrorIndex:
		return fail(http.StatusNotFound, "this mirror has no provider %s%s", t, also)
	case KindMirrorArchives:
		if _, err := address.ParseProviderVersion(t.version); err != nil {
			return fail(http.StatusNotFound, "that is not a version: use MAJOR.MINOR.PATCH")
		}
		return g.writeDocument(w, r, emptyArchives, links{})
	}
	return fail(http.StatusNotFound, "%s has no such file", t)
}
