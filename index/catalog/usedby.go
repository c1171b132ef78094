package catalog

import (
	"unique"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// A UsedBy says which modules use a module or provider. It never changes.
type UsedBy struct {
	callers map[unique.Handle[address.Address]][]Caller
}

// A Caller is a module that calls a module or requires a provider.
type Caller struct {
	Entry      int    // its place among the entries
	Part       string // the path of the submodule that does so; empty for the root
	Constraint string // on the version; empty if there is none
}

// NewUsedBy returns what these modules use, of their latest versions.
func NewUsedBy(entries []*Entry) *UsedBy {
	u := &UsedBy{callers: make(map[unique.Handle[address.Address]][]Caller)}
	for i, e := range entries {
		for _, use := range e.uses {
			u.callers[use.of] = append(u.callers[use.of], Caller{i, use.by.Value(), use.with.Value()})
		}
	}
	return u
}

// Of returns the modules that use a module or provider, in the order of the entries. Its
// address has the HOSTNAME by which configurations name it.
func (u *UsedBy) Of(a address.Address) []Caller { return u.callers[unique.Make(a)] }
