package pages

import (
	"slices"
	"strings"

	version "github.com/hashicorp/go-version"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index/moduledoc"
)

// A change is a difference between the interfaces of two versions of a module, as
// callers see it.
type change struct {
	Kind changeKind

	// What names the kind of thing that has changed: "input", "output", "provider",
	// "submodule", "client", or a kind of resource. Name is its name. Submodule is the path of the submodule
	// that it belongs to, empty for the root.
	What, Name, Submodule string

	Details []detail

	// URL leads to the newest of what is named; empty: there is no such page.
	URL string

	// At is the place of a resource.
	At moduledoc.Position

	// Breaking reports that a configuration for the older version may need a change to
	// use the newer one.
	Breaking bool
}

// A changeKind says whether something was added, removed or changed.
type changeKind string

const (
	added   changeKind = "added"
	removed changeKind = "removed"
	changed changeKind = "changed"
)

// A detail is a property that has changed. If From and To are empty, Of is a sentence.
type detail struct {
	Of, From, To string
}

// compareInterfaces returns the changes between the interfaces of two versions of a
// module: breaking changes first, then in the order of the modules.
func compareInterfaces(from, to *moduledoc.Package) []change {
	c := comparer{}
	c.client(from.Root.RequiredVersion, to.Root.RequiredVersion)
	c.module(&from.Root, &to.Root)
	for i := range to.Submodules {
		if from.Module(to.Submodules[i].Path) == nil {
			c.add(change{Kind: added, What: "submodule", Name: to.Submodules[i].Path})
		}
	}
	for i := range from.Submodules {
		old := &from.Submodules[i]
		c.submodule = ""
		now := to.Module(old.Path)
		if now == nil {
			c.add(change{Kind: removed, What: "submodule", Name: old.Path, Breaking: true})
			continue
		}
		c.submodule = old.Path
		c.client(old.RequiredVersion, now.RequiredVersion)
		c.module(old, now)
	}
	slices.SortStableFunc(c.found, func(a, b change) int {
		switch {
		case a.Breaking == b.Breaking:
			return 0
		case a.Breaking:
			return -1
		}
		return 1
	})
	return c.found
}

// A comparer gathers changes of one module after another.
type comparer struct {
	submodule string
	found     []change
}

func (c *comparer) add(one change) {
	one.Submodule = c.submodule
	c.found = append(c.found, one)
}

// client compares the constraints on the client's version.
func (c *comparer) client(from, to string) {
	if sameConstraints(from, to) {
		return
	}
	c.add(change{
		Kind: changed, What: "client", Name: "terraform", Breaking: narrows(from, to),
		Details: []detail{{"version", orAny(from), orAny(to)}},
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
		one := change{Kind: added, What: "input", Name: to.Name, Breaking: to.Required()}
		if to.Required() {
			one.Details = []detail{{Of: "required"}}
		}
		c.add(one)
		return
	case to == nil:
		c.add(change{Kind: removed, What: "input", Name: from.Name, Breaking: true})
		return
	}
	one := change{Kind: changed, What: "input", Name: to.Name}
	note := func(breaking bool, d detail) {
		one.Details = append(one.Details, d)
		one.Breaking = one.Breaking || breaking
	}
	if !sameType(from, to) {
		note(!acceptsType(to, from), detail{"type", orAny(from.Type), orAny(to.Type)})
	}
	switch {
	case from.Required() && !to.Required():
		note(false, detail{"default", "required", to.Default})
	case !from.Required() && to.Required():
		note(true, detail{"default", from.Default, "required"})
	case from.Default != to.Default:
		note(false, detail{"default", from.Default, to.Default})
	}
	switch {
	case from.Nullable && !to.Nullable:
		// With a default, null means the default.
		note(to.Required(), detail{Of: "null is no longer accepted"})
	case !from.Nullable && to.Nullable:
		note(false, detail{Of: "null is now accepted"})
	}
	if from.Sensitive != to.Sensitive {
		note(false, flag("sensitive", to.Sensitive))
	}
	if from.Ephemeral != to.Ephemeral {
		note(from.Ephemeral, flag("ephemeral", to.Ephemeral))
	}
	if !slices.Equal(from.Validations, to.Validations) {
		note(false, detail{Of: "validation rules changed"})
	}
	if from.Deprecated == "" && to.Deprecated != "" {
		note(false, detail{Of: "deprecated: " + to.Deprecated})
	}
	if len(one.Details) > 0 {
		c.add(one)
	}
}

func (c *comparer) output(from, to *moduledoc.Output) {
	switch {
	case from == nil:
		c.add(change{Kind: added, What: "output", Name: to.Name})
		return
	case to == nil:
		c.add(change{Kind: removed, What: "output", Name: from.Name, Breaking: true})
		return
	}
	one := change{Kind: changed, What: "output", Name: to.Name}
	// A caller that passes a sensitive value on has to mark its own output too.
	if from.Sensitive != to.Sensitive {
		one.Details = append(one.Details, flag("sensitive", to.Sensitive))
		one.Breaking = one.Breaking || to.Sensitive
	}
	if from.Ephemeral != to.Ephemeral {
		one.Details = append(one.Details, flag("ephemeral", to.Ephemeral))
		one.Breaking = one.Breaking || to.Ephemeral
	}
	if from.Deprecated == "" && to.Deprecated != "" {
		one.Details = append(one.Details, detail{Of: "deprecated: " + to.Deprecated})
	}
	if len(one.Details) > 0 {
		c.add(one)
	}
}

func (c *comparer) provider(from, to *moduledoc.Provider) {
	switch {
	case from == nil:
		c.add(change{Kind: added, What: "provider", Name: to.Name, Details: []detail{{Of: strings.TrimSpace(to.Source + " " + to.Version)}}})
		return
	case to == nil:
		c.add(change{Kind: removed, What: "provider", Name: from.Name})
		return
	}
	one := change{Kind: changed, What: "provider", Name: to.Name}
	if from.Source != to.Source {
		one.Details = append(one.Details, detail{"source", from.Source, to.Source})
		one.Breaking = true // the resources in the state belong to another provider
	}
	if !sameConstraints(from.Version, to.Version) {
		one.Details = append(one.Details, detail{"version", orAny(from.Version), orAny(to.Version)})
		one.Breaking = one.Breaking || narrows(from.Version, to.Version)
	}
	if len(one.Details) > 0 {
		c.add(one)
	}
}

// flag returns the detail of a property that is either set or not.
func flag(name string, on bool) detail {
	if on {
		return detail{Of: "now " + name}
	}
	return detail{Of: "no longer " + name}
}

func orAny(s string) string {
	if s == "" {
		return "any"
	}
	return s
}

// sameType reports whether two variables have the same type, whatever the layout. No
// type means any type. Defaults of optional attributes are part of a type.
func sameType(a, b *moduledoc.Variable) bool {
	return a.Type == b.Type || slices.Equal(typeWords(orAny(a.Type)), typeWords(orAny(b.Type)))
}

// typeWords returns a type as it is written, without its layout.
func typeWords(typ string) (words []string) {
	tokens, _ := hclsyntax.LexExpression([]byte(typ), "", hcl.InitialPos)
	for _, token := range tokens {
		switch token.Type {
		case hclsyntax.TokenNewline, hclsyntax.TokenComma, hclsyntax.TokenComment, hclsyntax.TokenEOF:
		default:
			words = append(words, string(token.Bytes))
		}
	}
	return words
}

// acceptsType reports whether the new variable accepts every value that the old one
// accepted. A type that cannot be read, or is too long to be read, may accept anything
// or nothing.
func acceptsType(now, old *moduledoc.Variable) bool {
	n, errNow := now.Constraint()
	o, errOld := old.Constraint()
	return errNow == nil && errOld == nil && accepts(n, o)
}

// accepts reports whether every value of the old type certainly fits the new one, and
// the new type ignores no attribute.
func accepts(now, old cty.Type) bool {
	switch {
	case now == cty.DynamicPseudoType, now.Equals(old):
		return true
	case now == cty.String && (old == cty.Number || old == cty.Bool):
		return true // clients convert them
	case now.IsListType() && old.IsListType(), now.IsSetType() && old.IsSetType(), now.IsMapType() && old.IsMapType():
		return accepts(now.ElementType(), old.ElementType())
	case now.IsObjectType() && old.IsObjectType():
		for name, typ := range old.AttributeTypes() {
			if !now.HasAttribute(name) || !accepts(now.AttributeType(name), typ) {
				return false
			}
			if old.AttributeOptional(name) && !now.AttributeOptional(name) {
				return false
			}
		}
		for name := range now.AttributeTypes() {
			if !old.HasAttribute(name) && !now.AttributeOptional(name) {
				return false
			}
		}
		return true
	}
	return false
}

// sameConstraints reports whether two constraints mean the same.
func sameConstraints(a, b string) bool {
	if a == b {
		return true
	}
	ca, errA := address.ParseConstraints(a)
	cb, errB := address.ParseConstraints(b)
	return errA == nil && errB == nil && ca.String() == cb.String()
}

// narrows reports whether the constraints to refuse a version that from allows. Only
// their boundaries make a difference, so it tries only the versions around the
// boundaries.
func narrows(from, to string) bool {
	old, errOld := address.ParseConstraints(from)
	now, errNow := address.ParseConstraints(to)
	if errOld != nil || errNow != nil {
		return false // a constraint that cannot be read may allow anything
	}
	for _, v := range boundaryVersions(from + "," + to) {
		if old.Cover(v) && !now.Cover(v) {
			return true
		}
	}
	return false
}

// boundaryVersions returns the versions that constraints name, and the versions next to
// them.
func boundaryVersions(constraints string) []*version.Version {
	versions := []*version.Version{version.Must(version.NewVersion("0.0.0"))}
	for part := range strings.SplitSeq(constraints, ",") {
		v, err := version.NewVersion(strings.TrimLeft(strings.TrimSpace(part), "<>=!~ "))
		if err != nil {
			continue
		}
		versions = append(versions, v)
		segments := v.Core().Segments64()
		for i := range 3 {
			for _, step := range []int64{-1, 1} {
				next := slices.Clone(segments[:3])
				if next[i] += step; next[i] < 0 {
					continue
				}
				clear(next[i+1:])
				if step < 0 {
					for j := i + 1; j < 3; j++ {
						next[j] = 1 << 20 // the last version before it
					}
				}
				if v, err := version.NewVersion(joinSegments(next)); err == nil { // a number that is too large makes no version
					versions = append(versions, v)
				}
			}
		}
	}
	return versions
}
