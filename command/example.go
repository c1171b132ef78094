package command

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	tfaddr "github.com/hashicorp/terraform-registry-address"
	"github.com/zclconf/go-cty/cty"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
)

// An example is a provider or a module of the tree, as configurations name it.
type example struct {
	Name, Source, Version string
	Arguments             string // for the required variables of a module
}

// provider returns a hosted provider or, in a tree that is only a mirror, a
// mirrored one; nil if there is neither.
func (w welcome) provider() (mirrored *example) {
	host := w.authorityOf(w.host())
	_, unusable := address.ParseHostname(host)
	for _, o := range w.report.Offered {
		if o.Kind != index.KindProvider {
			continue
		}
		a, err := address.Parse(o.Address)
		switch {
		case err != nil:
		case w.hosts(a) && o.Signature != "none" && unusable == nil:
			return &example{Name: a.Name, Source: host + "/" + a.WithHostname("").String(), Version: w.newest(o)}
		case mirrored == nil && a.Hostname != "" && !w.hosts(a):
			mirrored = &example{Name: a.Name, Source: o.Address, Version: w.newest(o)}
		}
	}
	return mirrored
}

// module returns a hosted module; nil if there is none.
func (w welcome) module() *example {
	for _, o := range w.report.Offered {
		if o.Kind != index.KindModule {
			continue
		}
		a, err := address.Parse(o.Address)
		if err != nil || !w.hosts(a) {
			continue
		}
		// In a module's source, clients take a part without a dot for a namespace, so
		// localhost has to be written as a number.
		host := w.host()
		if host == "localhost" {
			host = "127.0.0.1"
		}
		e := &example{Name: a.Name, Source: w.authorityOf(host) + "/" + a.WithHostname("").String(), Version: w.newest(o)}
		if _, err := tfaddr.ParseModuleSource(e.Source); err != nil {
			continue
		}
		if w.variables != nil {
			e.Arguments = arguments(w.variables(o.Address, e.Version))
		}
		return e
	}
	return nil
}

// hosts reports whether the address belongs to this registry.
func (w welcome) hosts(a address.Address) bool {
	return a.Hostname == "" || a.Hostname.ForDisplay() == displayName(w.authorityOf(w.host()))
}

// newest returns the newest version of the address that is not a pre-release, or else the
// newest version. A report lists the newest first.
func (w welcome) newest(first index.Offer) string {
	for _, o := range w.report.Offered {
		if o.Kind == first.Kind && o.Address == first.Address && !strings.Contains(o.Version, "-") {
			return o.Version
		}
	}
	return first.Version
}

// arguments sets the variables in a module block. Clients refuse to plan without
// them.
func arguments(variables []exampleVariable) string {
	if len(variables) == 0 {
		return ""
	}
	var unformatted strings.Builder
	for _, v := range variables {
		fmt.Fprintf(&unformatted, "%s = %s\n", v.name, v.value)
	}
	text := "\n  # Required by the module; the values are examples.\n"
	for line := range strings.Lines(string(hclwrite.Format([]byte(unformatted.String())))) {
		text += "  " + line
	}
	return text
}

// An exampleVariable is a required variable of a module, with a value of its type.
type exampleVariable struct{ name, value string }

// exampleVariables returns the required variables of a module version, sorted by name.
// They are only for an example, so variables that cannot be read are left out.
func exampleVariables(ctx context.Context, s *index.Snapshot, text, version string) []exampleVariable {
	a, err := address.Parse(text)
	if err != nil {
		return nil
	}
	v := s.Module(index.PlaceOf(a)).Version(version)
	if v == nil {
		return nil
	}
	module, err := s.Describe(ctx, v)
	if err != nil {
		return nil
	}
	var required []exampleVariable
	for _, variable := range module.Root.Variables {
		if !variable.Required() || !hclsyntax.ValidIdentifier(variable.Name) { // clients refuse other names
			continue
		}
		kind, err := variable.Constraint()
		if err != nil {
			kind = cty.String
		}
		value := hclwrite.TokensForValue(exampleValue(kind)).Bytes()
		required = append(required, exampleVariable{variable.Name, string(value)})
	}
	slices.SortFunc(required, func(a, b exampleVariable) int { return cmp.Compare(a.name, b.name) })
	return required
}

// exampleValue returns a small value of a type.
func exampleValue(t cty.Type) cty.Value {
	switch {
	case t == cty.Number:
		return cty.NumberIntVal(1)
	case t == cty.Bool:
		return cty.False
	case t.IsListType() || t.IsSetType():
		return cty.EmptyTupleVal
	case t.IsMapType():
		return cty.EmptyObjectVal
	case t.IsTupleType():
		var values []cty.Value
		for _, element := range t.TupleElementTypes() {
			values = append(values, exampleValue(element))
		}
		return cty.TupleVal(values)
	case t.IsObjectType():
		values := make(map[string]cty.Value)
		for name, attribute := range t.AttributeTypes() {
			if !t.AttributeOptional(name) {
				values[name] = exampleValue(attribute)
			}
		}
		return cty.ObjectVal(values)
	}
	return cty.StringVal("example")
}
