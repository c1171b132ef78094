package handlers

import (
	"fmt"
	"slices"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
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
func (g *Registry) ownProviderAt(r *request, a index.ProviderAddress) *index.Provider {
	if g.byName() {
		return r.snapshot.OwnProvider(a)
	}
	a.Hostname = ""
	return r.snapshot.Provider(a)
}

// ownModuleAt is the same of a module.
func (g *Registry) ownModuleAt(r *request, a index.ModuleAddress) *index.Module {
	if g.byName() {
		return r.snapshot.OwnModule(a)
	}
	a.Hostname = ""
	return r.snapshot.Module(a)
}

// providerPending reports whether some of what lies under an address has not been
// read yet: what is not found may be there in a moment. Then it is wanted.
func (g *Registry) providerPending(r *request, a index.ProviderAddress, own bool) bool {
	pending := func(a index.ProviderAddress) bool { return r.snapshot.ProviderPending(a, r.asked) }
	return wantIf(r, pending, r.asked, g.providerAddresses(a, own))
}

// providerListPending reports whether the list of versions may lack some that
// clients know: without them they would choose an older one.
func (g *Registry) providerListPending(r *request, a index.ProviderAddress, own bool) bool {
	return wantIf(r, r.snapshot.ProviderListPending, "", g.providerAddresses(a, own))
}

// modulePending is providerPending for one of the registry's own modules.
func (g *Registry) modulePending(r *request, a index.ModuleAddress) bool {
	pending := func(a index.ModuleAddress) bool { return r.snapshot.ModulePending(a, r.asked) }
	return wantIf(r, pending, r.asked, g.moduleAddresses(a))
}

// wantModule reports whether the version that r asks for is pending under an
// address in the tree. Then it is wanted.
func wantModule(r *request, a index.ModuleAddress) bool {
	pending := func(a index.ModuleAddress) bool { return r.snapshot.ModulePending(a, r.asked) }
	return wantIf(r, pending, r.asked, [2]index.ModuleAddress{a, a})
}

// moduleListPending is providerListPending for one of the registry's own modules.
func (g *Registry) moduleListPending(r *request, a index.ModuleAddress) bool {
	return wantIf(r, r.snapshot.ModuleListPending, "", g.moduleAddresses(a))
}

// providerAddresses are those in the tree under which a provider may lie.
func (g *Registry) providerAddresses(a index.ProviderAddress, own bool) [2]index.ProviderAddress {
	if !own {
		return [2]index.ProviderAddress{a, a}
	}
	nameless := index.ProviderAddress{Namespace: a.Namespace, Type: a.Type}
	if !g.byName() {
		a = nameless
	}
	return [2]index.ProviderAddress{a, nameless}
}

// moduleAddresses are the same of a module.
func (g *Registry) moduleAddresses(a index.ModuleAddress) [2]index.ModuleAddress {
	nameless := index.ModuleAddress{Namespace: a.Namespace, Name: a.Name, System: a.System}
	if !g.byName() {
		a = nameless
	}
	return [2]index.ModuleAddress{a, nameless}
}

// wantIf reports whether one of the addresses is pending, and notes them, with
// the version, as what the request waits for.
func wantIf[A interface {
	comparable
	fmt.Stringer
}](r *request, pending func(A) bool, version string, addresses [2]A) bool {
	if !pending(addresses[0]) && (addresses[1] == addresses[0] || !pending(addresses[1])) {
		return false
	}
	r.wanted = []index.Wanted{{Address: addresses[0], Version: version}, {Address: addresses[1], Version: version}}
	return true
}

// onProvider is what the rules are asked about a provider.
func (g *Registry) onProvider(a index.ProviderAddress, own bool) access.Address {
	asked := access.Address{Own: own, Namespace: a.Namespace, Name: a.Type}
	if !own {
		asked.Hostname = string(a.Hostname)
	}
	return asked
}

// onModule is what they are asked about a module.
func (g *Registry) onModule(a index.ModuleAddress, own bool) access.Address {
	asked := access.Address{Own: own, Namespace: a.Namespace, Name: a.Name, System: a.System}
	if !own {
		asked.Hostname = string(a.Hostname)
	}
	return asked
}
