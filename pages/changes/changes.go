// Package changes says what differs between two versions of a module: its interface, its
// resources, its files, and what its changelog says of that.
package changes

import (
	"cmp"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/caddy-terraform/caddy-terraform-registry/index/moduledoc"
)

// A Change is a difference between the interfaces of two versions of a module, as
// callers see it.
type Change struct {
	Kind Kind

	// What names the kind of thing that has changed: "input", "output", "provider",
	// "submodule", "client", or a kind of resource. Name is its name. Submodule is the path of the submodule
	// that it belongs to, empty for the root.
	What, Name, Submodule string

	Details []Detail

	// At is the place of a resource.
	At moduledoc.Position

	// Breaking reports that a configuration for the older version may need a change to
	// use the newer one.
	Breaking bool
}

// rank orders changes: breaking ones are the first.
func (c *Change) rank() int {
	if c.Breaking {
		return 0
	}
	return 1
}

// note adds a detail.
func (c *Change) note(breaking bool, d Detail) {
	c.Details = append(c.Details, d)
	c.Breaking = c.Breaking || breaking
}

// noteDeprecation adds that the newer version of an input or output is deprecated, and the older is not.
func (c *Change) noteDeprecation(from, to string) {
	if from == "" && to != "" {
		c.note(false, Detail{Of: "deprecated: " + to})
	}
}

// A Kind says whether something was added, removed or changed.
type Kind string

// The kinds of changes.
const (
	Added   Kind = "added"
	Removed Kind = "removed"
	Changed Kind = "changed"
)

// A Detail is a property that has changed. If From and To are empty, Of is a sentence.
type Detail struct {
	Of, From, To string
}

// Interfaces returns the changes between the interfaces of two versions of a
// module: breaking changes first, then in the order of the modules.
func Interfaces(from, to *moduledoc.Package) []Change {
	c := comparer{}
	c.client(from.Root.RequiredVersion, to.Root.RequiredVersion)
	c.module(&from.Root, &to.Root)
	for i := range to.Submodules {
		if from.Module(to.Submodules[i].Path) == nil {
			c.add(Change{Kind: Added, What: "submodule", Name: to.Submodules[i].Path})
		}
	}
	for i := range from.Submodules {
		old := &from.Submodules[i]
		c.submodule = ""
		now := to.Module(old.Path)
		if now == nil {
			c.add(Change{Kind: Removed, What: "submodule", Name: old.Path, Breaking: true})
			continue
		}
		c.submodule = old.Path
		c.client(old.RequiredVersion, now.RequiredVersion)
		c.module(old, now)
	}
	slices.SortStableFunc(c.found, func(a, b Change) int { return cmp.Compare(a.rank(), b.rank()) })
	return c.found
}

// Resources returns the resources that were added to the modules of a package or
// removed from them. Whether a removal breaks anything is for the author to say, as a moved
// block may name another resource in its place.
func Resources(from, to *moduledoc.Package) (found []Change) {
	c := comparer{}
	compare := func(old, now *moduledoc.Module) {
		name := func(r *moduledoc.Resource) string { return string(r.Mode) + " " + r.Type + "." + r.Name }
		pair(old.Resources, now.Resources, name, func(was, is *moduledoc.Resource) {
			switch {
			case was == nil:
				c.add(Change{Kind: Added, What: string(is.Mode), Name: is.Type + "." + is.Name, At: is.At})
			case is == nil:
				c.add(Change{Kind: Removed, What: string(was.Mode), Name: was.Type + "." + was.Name, At: was.At})
			}
		})
	}
	compare(&from.Root, &to.Root)
	for i := range to.Submodules {
		if old := from.Module(to.Submodules[i].Path); old != nil {
			c.submodule = old.Path
			compare(old, &to.Submodules[i])
		}
	}
	return c.found
}

// A comparer gathers changes of one module after another.
type comparer struct {
	submodule string
	found     []Change
	effort    int // see narrows
}

func (c *comparer) add(one Change) {
	one.Submodule = c.submodule
	c.found = append(c.found, one)
}

// addChanged adds a change if it has details.
func (c *comparer) addChanged(one Change) {
	if len(one.Details) > 0 {
		c.add(one)
	}
}

// client compares the constraints on the client's version.
func (c *comparer) client(from, to string) {
	if sameConstraints(from, to) {
		return
	}
	c.add(Change{
		Kind: Changed, What: "client", Name: "terraform", Breaking: c.narrows(from, to),
		Details: []Detail{{"version", orAny(from), orAny(to)}},
	})
}

func (c *comparer) module(from, to *moduledoc.Module) {
	pair(from.Variables, to.Variables, func(v *moduledoc.Variable) string { return v.Name }, c.variable)
	pair(from.Outputs, to.Outputs, func(o *moduledoc.Output) string { return o.Name }, c.output)
	pair(from.Providers, to.Providers, func(p *moduledoc.Provider) string { return p.Name }, c.provider)
}

// pair calls compare for each name in two lists: first in the order of to, then for the
// names that only from has. compare gets nil for an element that a list lacks.
func pair[T any](from, to []T, name func(*T) string, compare func(from, to *T)) {
	old := make(map[string]*T, len(from))
	for i := range from {
		old[name(&from[i])] = &from[i]
	}
	for i := range to {
		n := name(&to[i])
		compare(old[n], &to[i])
		delete(old, n)
	}
	for i := range from {
		if old[name(&from[i])] == &from[i] {
			compare(&from[i], nil)
		}
	}
}

func (c *comparer) variable(from, to *moduledoc.Variable) {
	switch {
	case from == nil:
		one := Change{Kind: Added, What: "input", Name: to.Name, Breaking: to.Required()}
		if to.Required() {
			one.Details = []Detail{{Of: "required"}}
		}
		c.add(one)
		return
	case to == nil:
		c.add(Change{Kind: Removed, What: "input", Name: from.Name, Breaking: true})
		return
	}
	one := Change{Kind: Changed, What: "input", Name: to.Name}
	if !sameType(from, to) {
		one.note(!acceptsType(to, from), Detail{"type", orAny(from.Type), orAny(to.Type)})
	}
	switch {
	case from.Required() && !to.Required():
		one.note(false, Detail{"default", "required", to.Default})
	case !from.Required() && to.Required():
		one.note(true, Detail{"default", from.Default, "required"})
	case from.Default != to.Default:
		one.note(false, Detail{"default", from.Default, to.Default})
	}
	switch {
	case from.Nullable && !to.Nullable:
		// With a default, null means the default.
		one.note(to.Required(), Detail{Of: "null is no longer accepted"})
	case !from.Nullable && to.Nullable:
		one.note(false, Detail{Of: "null is now accepted"})
	}
	if from.Sensitive != to.Sensitive {
		one.note(false, flag("sensitive", to.Sensitive))
	}
	if from.Ephemeral != to.Ephemeral {
		one.note(from.Ephemeral, flag("ephemeral", to.Ephemeral))
	}
	if !slices.Equal(from.Validations, to.Validations) {
		one.note(false, Detail{Of: "validation rules changed"})
	}
	one.noteDeprecation(from.Deprecated, to.Deprecated)
	c.addChanged(one)
}

func (c *comparer) output(from, to *moduledoc.Output) {
	switch {
	case from == nil:
		c.add(Change{Kind: Added, What: "output", Name: to.Name})
		return
	case to == nil:
		c.add(Change{Kind: Removed, What: "output", Name: from.Name, Breaking: true})
		return
	}
	one := Change{Kind: Changed, What: "output", Name: to.Name}
	// A caller that passes a sensitive value on has to mark its own output too.
	if from.Sensitive != to.Sensitive {
		one.note(to.Sensitive, flag("sensitive", to.Sensitive))
	}
	if from.Ephemeral != to.Ephemeral {
		one.note(to.Ephemeral, flag("ephemeral", to.Ephemeral))
	}
	one.noteDeprecation(from.Deprecated, to.Deprecated)
	c.addChanged(one)
}

func (c *comparer) provider(from, to *moduledoc.Provider) {
	switch {
	case from == nil:
		c.add(Change{Kind: Added, What: "provider", Name: to.Name, Breaking: to.Aliases != "", Details: []Detail{{Of: strings.TrimSpace(to.Source + " " + to.Version)}}})
		return
	case to == nil:
		// A call that passes configurations which the module no longer declares is refused.
		c.add(Change{Kind: Removed, What: "provider", Name: from.Name, Breaking: from.Aliases != ""})
		return
	}
	one := Change{Kind: Changed, What: "provider", Name: to.Name}
	if !sameSource(from.Source, to.Source) {
		one.note(true, Detail{"source", from.Source, to.Source}) // the resources in the state belong to another provider
	}
	if !sameConstraints(from.Version, to.Version) {
		one.note(one.Breaking || c.narrows(from.Version, to.Version), Detail{"version", orAny(from.Version), orAny(to.Version)})
	}
	if from.Aliases != to.Aliases {
		one.note(true, Detail{"configurations", orNone(from.Aliases), orNone(to.Aliases)}) // calls have to pass exactly these
	}
	c.addChanged(one)
}

// flag returns the detail of a property that is either set or not.
func flag(name string, on bool) Detail {
	if on {
		return Detail{Of: "now " + name}
	}
	return Detail{Of: "no longer " + name}
}

func orNone(aliases string) string { return cmp.Or(aliases, "none") }

func orAny(s string) string { return cmp.Or(s, "any") }

// A Group has the changes of one module of a package.
type Group struct {
	Submodule string // its path; empty: the root
	Changes   []Change

	// Resources are the resources that were added or removed.
	Resources []Change
}

// Groups groups the changes of the interface and the changes of the resources by module: those
// with breaking changes first, and of them the root.
func Groups(changes, resources []Change) (groups []Group) {
	group := func(path string) *Group {
		for i := range groups {
			if groups[i].Submodule == path {
				return &groups[i]
			}
		}
		groups = append(groups, Group{Submodule: path})
		return &groups[len(groups)-1]
	}
	for _, c := range changes {
		g := group(c.Submodule)
		g.Changes = append(g.Changes, c)
	}
	for _, c := range resources {
		g := group(c.Submodule)
		g.Resources = append(g.Resources, c)
	}
	rank := func(g Group) int { // breaking changes are the first of a group
		if len(g.Changes) > 0 {
			return g.Changes[0].rank()
		}
		return 1
	}
	slices.SortStableFunc(groups, func(a, b Group) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Submodule, b.Submodule))
	})
	return groups
}

// maxDifference is how many added and how many removed names are returned.
const maxDifference = 5

// Names returns the names that one version has more and fewer than another: at the end of each
// list, how many are left out.
func Names(from, to []string) (added, removed []string) {
	return without(to, from), without(from, to)
}

// without returns the names in a that are not in b, shortened.
func without(a, b []string) []string {
	in := make(map[string]bool, len(b))
	for _, name := range b {
		in[name] = true
	}
	var list []string
	more := 0
	for _, name := range a {
		if in[name] {
			continue
		}
		in[name] = true // an output may have the name of an input
		if len(list) == maxDifference {
			more++
			continue
		}
		list = append(list, name)
	}
	if more > 0 {
		list = append(list, humanize.Comma(int64(more))+" more")
	}
	return list
}
