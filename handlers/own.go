package handlers

import (
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

// providerPending tells whether some of what lies under an address has not been
// read yet: what is not found may be there in a moment.
func (g *Registry) providerPending(r *request, a index.ProviderAddress, own bool) bool {
	if own && !g.byName() {
		a.Hostname = ""
	}
	nameless := index.ProviderAddress{Namespace: a.Namespace, Type: a.Type}
	return r.snapshot.ProviderPending(a) || own && r.snapshot.ProviderPending(nameless)
}

// modulePending is the same of one of the registry's own modules.
func (g *Registry) modulePending(r *request, a index.ModuleAddress) bool {
	if !g.byName() {
		a.Hostname = ""
	}
	nameless := index.ModuleAddress{Namespace: a.Namespace, Name: a.Name, System: a.System}
	return r.snapshot.ModulePending(a) || r.snapshot.ModulePending(nameless)
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
