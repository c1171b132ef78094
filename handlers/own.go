package handlers

import (
	"slices"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
)

// What is the registry's own lies in the tree under no hostname, and under the
// names the registry answers as. Unless those are configured, they are whatever
// clients ask by. Rules are about addresses, so a name that a client chooses must
// not make mirrored content the registry's own, for which there are other
// rules, nor the other way round: with rules and without configured names, its
// own is what lies under no hostname alone.

// byName tells whether what lies under the name it is asked by is the registry's
// own too.
func (g *Registry) byName() bool { return g.Rules == nil || len(g.Hostnames) > 0 }

// isHosted reports whether what lies under a hostname is the registry's own by its
// configuration, whatever name it is asked by. Without one it is.
func (g *Registry) isHosted(name svchost.Hostname) bool {
	return name == "" || slices.Contains(g.Hostnames, name)
}

// isSelf tells whether a hostname in a mirror's path is the registry's own.
func (g *Registry) isSelf(name svchost.Hostname, r *request) bool {
	if len(g.Hostnames) > 0 {
		return slices.Contains(g.Hostnames, name)
	}
	return name == r.self
}

// ownProviderAt is the registry's own provider when it is called a.Hostname, or
// nil.
func (g *Registry) ownProviderAt(r *request, a address.Address) *index.Provider {
	if g.byName() {
		return r.snapshot.HostedProvider(a)
	}
	a.Hostname = ""
	return r.snapshot.Provider(a)
}

// ownModuleAt is the same of a module.
func (g *Registry) ownModuleAt(r *request, a address.Address) *index.Module {
	if g.byName() {
		return r.snapshot.HostedModule(a)
	}
	a.Hostname = ""
	return r.snapshot.Module(a)
}

// pending reports whether some of what lies under an address has not been read
// yet: what is not found may be there in a moment. The request waits for it then.
func (g *Registry) pending(r *request, a address.Address, hosted bool) bool {
	pending := func(a address.Address) bool { return r.snapshot.Pending(a, r.asked) }
	return wantIf(r, pending, r.asked, g.treeAddresses(a, hosted))
}

// listPending reports whether the list of versions may lack some that clients
// know: without them they would choose an older one.
func (g *Registry) listPending(r *request, a address.Address, hosted bool) bool {
	return wantIf(r, r.snapshot.ListPending, "", g.treeAddresses(a, hosted))
}

// treeAddresses are those in the tree under which a provider or module may lie.
func (g *Registry) treeAddresses(a address.Address, hosted bool) [2]address.Address {
	switch {
	case !hosted:
		return [2]address.Address{a, a}
	case !g.byName():
		return [2]address.Address{a.At(""), a.At("")}
	}
	return [2]address.Address{a, a.At("")}
}

// wantModule reports whether the version that r asks for is pending under an
// address in the tree. The request waits for it then.
func wantModule(r *request, a address.Address) bool {
	pending := func(a address.Address) bool { return r.snapshot.Pending(a, r.asked) }
	return wantIf(r, pending, r.asked, [2]address.Address{a, a})
}

// wantIf reports whether one of the addresses is pending, and records them, with
// the version, as what the request waits for.
func wantIf(r *request, pending func(address.Address) bool, version string, addresses [2]address.Address) bool {
	if !pending(addresses[0]) && (addresses[1] == addresses[0] || !pending(addresses[1])) {
		return false
	}
	r.wanted = []index.Wanted{{Address: addresses[0], Version: version}, {Address: addresses[1], Version: version}}
	return true
}

// resource is what the rules are asked about.
func resource(a address.Address, hosted bool) access.Resource {
	if hosted {
		a.Hostname = ""
	}
	return access.Resource{Address: a, Hosted: hosted}
}
