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

// A target is what a request names: a provider or a module, or a version or file
// of one. It is resolved once a request, and nothing is looked up before the rules
// allow it, so that the time of an answer does not tell what exists.
//
// What is hosted, and under which name:
//
//  1. What lies under no HOSTNAME in the tree is hosted, under every name that the
//     registry is asked by.
//  2. What lies under one of the configured Hostnames is hosted too, under this
//     name, merged with what lies under no HOSTNAME. If both have a version, the
//     one under the HOSTNAME is offered.
//  3. Without configured Hostnames, the same holds for the name that the registry
//     is asked by, if there are no Rules. With Rules, 1 is all that is hosted:
//     hosted and mirrored addresses have different rules, and a name that a client
//     chooses must not turn one into the other.
//  4. Everything else is mirrored.
//
// Requests name a target in three ways:
//
//   - The provider and module registry protocols name what is hosted under the name
//     that the registry is asked by (hostedAs).
//   - The mirror's paths have a HOSTNAME, and so have those below registries/. If it is
//     a name of the registry, they name what is hosted under it, otherwise what is
//     mirrored (named).
//   - The URLs of files in answers, and signed links, name the place in the tree
//     (located), so that they always lead to the same file: there is no merging,
//     and the name that the registry is asked by does not matter.
type target struct {
	// Address in the path: it has a HOSTNAME if the path has one.
	address.Address

	version  string // empty: all versions
	platform address.Platform
	file     string // empty: it is not a file

	under  svchost.Hostname // where it lies in the tree; empty: under no HOSTNAME
	merged bool             // with what lies under no HOSTNAME
	hosted bool             // by 1 to 3; otherwise it is mirrored

	// What the rules say. Answers about a private target differ from client to
	// client, and have signed links. One that is not readable is answered as if it
	// did not exist.
	readable, private bool
}

// hostedAs returns a target that is hosted under a name of the registry.
func (g *Registry) hostedAs(name svchost.Hostname, a address.Address) target {
	t := target{Address: a, hosted: true}
	if g.Rules == nil || len(g.Hostnames) > 0 {
		t.under, t.merged = name, true
	}
	return t
}

// named returns the target of an address, where self is the name that the registry is
// asked by: without a HOSTNAME it is hosted.
func (g *Registry) named(self svchost.Hostname, a address.Address) target {
	switch {
	case a.Hostname == "":
		return g.hostedAs(self, a)
	case g.isName(self, a.Hostname):
		return g.hostedAs(a.Hostname, a)
	}
	return target{Address: a, under: a.Hostname}
}

// located returns the target that lies at an address in the tree. Only the
// configuration decides whether it is hosted.
func (g *Registry) located(a address.Address) target {
	return target{Address: a, under: a.Hostname, hosted: a.Hostname == "" || slices.Contains(g.Hostnames, a.Hostname)}
}

// resource is what the rules are asked about.
func (t *target) resource() access.Resource {
	if t.hosted {
		return access.Resource{Address: t.At(""), Hosted: true}
	}
	return access.Resource{Address: t.Address}
}

// provider returns the provider that r names, or nil, and notes its address.
func (r *request) provider() *index.Provider {
	lookup := r.snapshot.Provider
	if r.target.merged {
		lookup = r.snapshot.HostedProvider
	}
	p := lookup(r.target.At(r.target.under))
	if p != nil {
		r.address = &p.Address
	}
	return p
}

// module returns the module that r names, or nil, and notes its address.
func (r *request) module() *index.Module {
	lookup := r.snapshot.Module
	if r.target.merged {
		lookup = r.snapshot.HostedModule
	}
	m := lookup(r.target.At(r.target.under))
	if m != nil {
		r.address = &m.Address
	}
	return m
}

// pending reports whether some of the target has not been read yet: what is not
// found may be there in a moment.
func (r *request) pending() bool {
	t := &r.target
	if r.Kind == KindProviderFile && t.version == "" {
		f, err := address.ParseReleaseFile(t.Name, t.file)
		if err != nil {
			return false
		}
		t.version = f.Version.String()
	}
	return r.snapshot.Pending(t.At(t.under), t.version) || t.merged && r.snapshot.Pending(t.At(""), t.version)
}

// listPending reports whether the list of versions may lack some that clients have
// been told of: without them, they would choose an older one.
func (r *request) listPending() bool {
	t := &r.target
	return r.snapshot.ListPending(t.At(t.under)) || t.merged && r.snapshot.ListPending(t.At(""))
}

// unknown reports whether nothing is known of the target, because its folder could not be
// read since the start: it may be there, or be withdrawn, and nothing is fetched in its place.
func (r *request) unknown() bool {
	t := &r.target
	if t.Name == "" { // of several addresses
		return false
	}
	return r.snapshot.Unknown(t.At(t.under)) || t.merged && r.snapshot.Unknown(t.At(""))
}

// wanted is what r waits for.
func (r *request) wanted() []index.Wanted {
	t := &r.target
	version := cmp.Or(r.Version, t.version)
	if r.Kind == KindModuleDetail || r.Kind == KindProviderDetail {
		version = "" // a detail lists them all
	}
	list := []index.Wanted{{Address: t.At(t.under), Version: version}}
	if t.merged {
		list = append(list, index.Wanted{Address: t.At(""), Version: version})
	}
	return list
}

// absent answers a request for what the snapshot does not have.
func (g *Registry) absent(w http.ResponseWriter, r *request) error {
	if r.pending() {
		return errPending
	}
	return g.missing(w, r)
}

// checkSpelling returns the answer for a version that is not written as in lists, which is
// how clients ask for it.
func (t *target) checkSpelling() error {
	if v, err := address.ParseModuleVersion(t.version); err == nil && v.String() != t.version {
		return fail(http.StatusNotFound, "versions are written out here: ask for %s", v)
	}
	return nil
}

// missing answers a request for what does not exist or may not be read: these
// answers must not differ.
func (g *Registry) missing(w http.ResponseWriter, r *request) error {
	t := &r.target
	also := "" // which depends on the configuration alone
	if g.Upstream != nil && !t.hosted && !g.Upstream.Mirrors(t.Address) {
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
