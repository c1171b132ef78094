package upstream

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// A moduleFile is what one file of a configuration says about providers and
// modules.
type moduleFile struct {
	declared   map[string]declaration // by the name that the module calls it
	used       []use
	calls      []moduleCall
	unresolved []Unresolved
}

// A declaration is an entry of required_providers.
type declaration struct {
	source, constraints, from string
	partial                   bool // some of it could not be read, so it says nothing
}

// A use is of a provider by the module's name for it. A provider block may
// constrain its version, as was the way before required_providers.
type use struct {
	name, constraints, from string

	of       string // the block it is for, if a resource's or the like: resource.TYPE.NAME
	explicit bool   // by an argument, not by the type
	imports  bool   // for a resource that may have a block of its own, which counts then
}

type moduleCall struct{ name, source, version, from string }

// The blocks that need a provider. In files of tests only their runs count:
// init installs the modules of these, but no providers for other blocks.
var moduleFileSchema = &hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{
	{Type: "terraform"},
	{Type: "provider", LabelNames: []string{"name"}},
	{Type: "resource", LabelNames: []string{"type", "name"}},
	{Type: "data", LabelNames: []string{"type", "name"}},
	{Type: "ephemeral", LabelNames: []string{"type", "name"}},
	{Type: "action", LabelNames: []string{"type", "name"}},
	{Type: "check", LabelNames: []string{"name"}},
	{Type: "import"},
	{Type: "module", LabelNames: []string{"name"}},
}}

var (
	testSchema      = &hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{{Type: "run", LabelNames: []string{"name"}}}}
	terraformSchema = &hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{{Type: "required_providers"}}}
	checkSchema     = &hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{{Type: "data", LabelNames: []string{"type", "name"}}}}
	runSchema       = &hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{{Type: "module"}}}
	valueSchema     = &hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: "version"}, {Name: "source"}, {Name: "provider"}, {Name: "to"}}}
)

// parseModuleFile reads a file by the schema of its kind.
func parseModuleFile(name string, content []byte, schema *hcl.BodySchema) (*moduleFile, error) {
	file, err := parseHCL(name, content)
	if err != nil {
		return nil, err
	}
	m := &moduleFile{declared: make(map[string]declaration)}
	return m, located(name, m.read(file.Body, schema, content))
}

func (m *moduleFile) read(body hcl.Body, schema *hcl.BodySchema, src []byte) hcl.Diagnostics {
	content, _, diags := body.PartialContent(schema)
	for _, block := range content.Blocks {
		from := position(block.DefRange)
		values, _, _ := block.Body.PartialContent(valueSchema)
		switch block.Type {
		case "terraform":
			inner, _, more := block.Body.PartialContent(terraformSchema)
			diags = append(diags, more...)
			for _, b := range inner.Blocks {
				diags = append(diags, m.readRequired(b.Body, src)...)
			}
		case "provider":
			constraints, _ := m.text(values.Attributes["version"], "provider "+block.Labels[0], src)
			m.used = append(m.used, use{name: block.Labels[0], constraints: constraints, from: from})
		case "resource", "data", "ephemeral", "action":
			m.use(block.Type, block.Labels[0], block.Labels[1], values, from, src)
		case "import":
			// What lies in a module is that module's to require.
			if typ, name := reference(values.Attributes["to"], src); typ != "" && typ != "module" {
				m.use("resource", typ, name, values, from, src)
				m.used[len(m.used)-1].imports = true
			}
		case "check":
			diags = append(diags, m.read(block.Body, checkSchema, src)...)
		case "module":
			m.readCall(block.Labels[0], values, from, src)
		case "run":
			inner, _, more := block.Body.PartialContent(runSchema)
			diags = append(diags, more...)
			for _, b := range inner.Blocks {
				values, _, _ := b.Body.PartialContent(valueSchema)
				m.readCall(block.Labels[0], values, position(b.DefRange), src)
			}
		}
	}
	return diags
}

// readCall reads the source of a module. Since Terraform 1.15 and OpenTofu 1.8
// it can be an expression; init has evaluated it, so the name is kept.
func (m *moduleFile) readCall(name string, values *hcl.BodyContent, from string, src []byte) {
	c := moduleCall{name: name, from: from}
	for attribute, to := range map[string]*string{"source": &c.source, "version": &c.version} {
		if a := values.Attributes[attribute]; a != nil {
			text, ok := literal(a.Expr, src)
			if !ok {
				text = sourceOf(a.Expr, src)
			}
			*to = text
		}
	}
	m.calls = append(m.calls, c)
}

// readRequired reads a required_providers block.
func (m *moduleFile) readRequired(body hcl.Body, src []byte) hcl.Diagnostics {
	entries, diags := body.JustAttributes()
	names := make([]string, 0, len(entries))
	for name := range entries {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		d := declaration{from: position(entries[name].Range)}
		if text, ok := literal(entries[name].Expr, src); ok { // the way of Terraform 0.12
			d.constraints = text
			m.declared[name] = d
			continue
		}
		pairs, more := hcl.ExprMap(entries[name].Expr)
		diags = append(diags, more...)
		for _, pair := range pairs {
			a := &hcl.Attribute{Name: keyOf(pair.Key, src), Expr: pair.Value, Range: entries[name].Range}
			ok := true
			switch a.Name { // the others are configuration_aliases, and what is to come
			case "source":
				d.source, ok = m.text(a, "provider "+name, src)
			case "version":
				d.constraints, ok = m.text(a, "provider "+name, src)
			}
			d.partial = d.partial || !ok
		}
		m.declared[name] = d
	}
	return diags
}

// text returns an attribute that must be written out. It is noted as unresolved
// if it is not.
func (m *moduleFile) text(a *hcl.Attribute, what string, src []byte) (string, bool) {
	if a == nil {
		return "", true
	}
	text, ok := literal(a.Expr, src)
	if !ok {
		m.unresolved = append(m.unresolved, Unresolved{
			What: what, From: position(a.Range),
			Why: fmt.Sprintf("its %s is not a string in quotes: name the provider yourself", a.Name),
		})
	}
	return text, ok
}

// use notes the provider of a resource: what its argument says, or the beginning
// of its type.
func (m *moduleFile) use(kind, typ, name string, values *hcl.BodyContent, from string, src []byte) {
	u := use{from: from, of: kind + "." + typ + "." + name}
	u.name, _ = reference(values.Attributes["provider"], src)
	if u.explicit = u.name != ""; !u.explicit {
		u.name, _, _ = strings.Cut(typ, "_")
	}
	m.used = append(m.used, u)
}

// reference returns the first two names of a reference like aws.west,
// aws.by_region[each.key] or, in JSON, "aws.west".
func reference(a *hcl.Attribute, src []byte) (first, second string) {
	if a == nil {
		return "", ""
	}
	if text, ok := literal(a.Expr, src); ok {
		text, _, _ = strings.Cut(text, "[")
		first, rest, _ := strings.Cut(text, ".")
		second, _, _ := strings.Cut(rest, ".")
		return first, second
	}
	all := a.Expr.Variables()
	if len(all) == 0 {
		return "", ""
	}
	if len(all[0]) > 1 {
		if step, ok := all[0][1].(hcl.TraverseAttr); ok {
			second = step.Name
		}
	}
	return all[0].RootName(), second
}

// keyOf returns a key of an object, in quotes or not.
func keyOf(expr hcl.Expression, src []byte) string {
	if key, ok := expr.(*hclsyntax.ObjectConsKeyExpr); ok {
		if word := hcl.ExprAsKeyword(key); word != "" {
			return word
		}
		expr = key.Wrapped
	}
	text, _ := literal(expr, src)
	return text
}

// sourceOf is an expression as it is written.
func sourceOf(expr hcl.Expression, src []byte) string {
	return string(expr.Range().SliceBytes(src))
}
