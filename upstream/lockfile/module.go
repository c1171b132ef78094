package lockfile

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	hcljson "github.com/hashicorp/hcl/v2/json"
)

// A module has the statements about providers and modules in the files of one folder.
type module struct {
	declared   map[string]declaration // by the name of the provider in the module
	used       []use
	calls      map[string]moduleCall
	unresolved []Unresolved
	test       string // the key of the test that is read
}

// A declaration is an entry of required_providers.
type declaration struct {
	source, constraints, from string
	partial                   bool // it has an unresolved expression
}

// A use of a provider by its name in the module. Provider blocks may have constraints,
// as before required_providers existed.
type use struct{ name, constraints, from string }

type moduleCall struct {
	name                        string // in the keys of modules.json
	what, source, version, from string
	partial                     bool // its version is an expression
}

var (
	moduleSchema = &hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{
		{Type: "terraform"},
		{Type: "provider", LabelNames: []string{"name"}},
		{Type: "resource", LabelNames: []string{"type", "name"}},
		{Type: "data", LabelNames: []string{"type", "name"}},
		{Type: "ephemeral", LabelNames: []string{"type", "name"}},
		{Type: "action", LabelNames: []string{"type", "name"}},
		{Type: "check", LabelNames: []string{"name"}},
		{Type: "module", LabelNames: []string{"name"}},
	}}
	terraformSchema = &hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{{Type: "required_providers"}}}
	checkSchema     = &hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{{Type: "data", LabelNames: []string{"type", "name"}}}}
	valueSchema     = &hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: "version"}, {Name: "source"}, {Name: "provider"}}}

	// Of a test's blocks, only runs have modules that init installs.
	testSchema = &hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{{Type: "run", LabelNames: []string{"name"}}}}
	runSchema  = &hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{{Type: "module"}}}
)

// readFile adds the statements in a file. Files that override others come last: their
// entries of required_providers and sources of calls replace earlier ones.
func (m *module) readFile(in folders, path string, schema *hcl.BodySchema) error {
	content, err := in.read(path)
	if err != nil {
		return err
	}
	name := in.shown(path)
	var file *hcl.File
	var diags hcl.Diagnostics
	if strings.HasSuffix(name, ".json") {
		file, diags = hcljson.Parse(content, name)
	} else {
		file, diags = hclsyntax.ParseConfig(content, name, hcl.InitialPos)
	}
	if err := firstError(name, diags); err != nil {
		return err
	}
	return firstError(name, m.readBlocks(file.Body, schema))
}

func (m *module) readBlocks(body hcl.Body, schema *hcl.BodySchema) hcl.Diagnostics {
	content, _, diags := body.PartialContent(schema)
	for _, block := range content.Blocks {
		from := position(block.DefRange)
		values, _, _ := block.Body.PartialContent(valueSchema)
		switch block.Type {
		case "terraform":
			inner, _, more := block.Body.PartialContent(terraformSchema)
			diags = append(diags, more...)
			for _, required := range inner.Blocks {
				diags = append(diags, m.readRequired(required.Body)...)
			}
		case "provider":
			text, _ := m.text(values.Attributes["version"], "provider "+block.Labels[0])
			m.used = append(m.used, use{block.Labels[0], text, from})
		case "resource", "data", "ephemeral", "action":
			name := referencedProvider(values.Attributes["provider"])
			if name == "" {
				name, _, _ = strings.Cut(block.Labels[0], "_")
			}
			m.used = append(m.used, use{name: name, from: from})
		case "check":
			diags = append(diags, m.readBlocks(block.Body, checkSchema)...)
		case "module":
			what := fmt.Sprintf("module %q", block.Labels[0])
			m.readCall(what, moduleCall{name: block.Labels[0], what: what, from: from}, values)
		case "run":
			inner, _, more := block.Body.PartialContent(runSchema)
			diags = append(diags, more...)
			for _, b := range inner.Blocks {
				values, _, _ := b.Body.PartialContent(valueSchema)
				what := fmt.Sprintf("the module of run %q", block.Labels[0])
				m.readCall(what+" "+from, moduleCall{name: m.test + "." + block.Labels[0], what: what, from: position(b.DefRange)}, values)
			}
		}
	}
	return diags
}

// readCall adds a call of a module, or overrides the call with the same key. Since
// Terraform 1.15 and OpenTofu 1.8 the source may be an expression. It is then left
// empty.
func (m *module) readCall(key string, c moduleCall, values *hcl.BodyContent) {
	before, overrides := m.calls[key]
	if source := values.Attributes["source"]; source != nil {
		c.source, _ = literal(source.Expr)
	} else if overrides {
		c.source, c.from = before.source, before.from
	}
	if version := values.Attributes["version"]; version != nil {
		var ok bool
		c.version, ok = literal(version.Expr)
		c.partial = !ok
	} else {
		c.version, c.partial = before.version, before.partial
	}
	m.calls[key] = c
}

func (m *module) readRequired(body hcl.Body) hcl.Diagnostics {
	entries, diags := body.JustAttributes()
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		entry := entries[name]
		d := declaration{from: position(entry.Range)}
		if text, ok := literal(entry.Expr); ok { // constraints alone, as in Terraform 0.12
			d.constraints = text
			m.declared[name] = d
			continue
		}
		pairs, more := hcl.ExprMap(entry.Expr)
		diags = append(diags, more...)
		for _, pair := range pairs {
			key, _ := literal(pair.Key)
			value := &hcl.Attribute{Name: key, Expr: pair.Value, Range: entry.Range}
			ok := true
			switch key {
			case "source":
				d.source, ok = m.text(value, "provider "+name)
			case "version":
				d.constraints, ok = m.text(value, "provider "+name)
			}
			d.partial = d.partial || !ok
		}
		m.declared[name] = d
	}
	return diags
}

// text returns the value of an optional attribute. If the value is not a string, the
// attribute is added to the unresolved parts.
func (m *module) text(attribute *hcl.Attribute, what string) (string, bool) {
	if attribute == nil {
		return "", true
	}
	text, ok := literal(attribute.Expr)
	if !ok {
		m.unresolved = append(m.unresolved, Unresolved{What: what, From: position(attribute.Range), Why: "its " + attribute.Name + " is not a string in quotes: name the provider yourself"})
	}
	return text, ok
}

// referencedProvider returns the provider's name in references like aws.west,
// aws.by_region[each.key] or, in JSON, "aws.west".
func referencedProvider(attribute *hcl.Attribute) string {
	if attribute == nil {
		return ""
	}
	if references := attribute.Expr.Variables(); len(references) > 0 {
		return references[0].RootName()
	}
	text, _ := literal(attribute.Expr)
	if i := strings.IndexAny(text, ".["); i >= 0 {
		text = text[:i]
	}
	return text
}
