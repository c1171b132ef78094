package lockfile

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	hcljson "github.com/hashicorp/hcl/v2/json"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// maxFile bounds a file of a configuration, in bytes. Generated ones can be large.
const maxFile = 16 << 20

// maxModules bounds the folders of a configuration: symlinks can make an endless
// number of them.
const maxModules = 10_000

// An Unresolved is a part of a configuration that may need further providers.
type Unresolved struct {
	What string `json:"what"` // such as module "vpc"
	From string `json:"from"` // FILE:LINE
	Why  string `json:"why"`
}

// String is one line for users.
func (u Unresolved) String() string { return u.From + ": " + u.What + ": " + u.Why }

// ReadConfiguration returns the providers that the configuration in a folder
// requires, ordered by address, together with those of the local modules that it,
// its tests or these modules call. What was not looked into is returned too:
// modules from elsewhere, and entries with expressions in place of strings. With
// tofu, files are read as OpenTofu does, where those of its own hide Terraform's.
//
// An error means that clients cannot read the configuration either. Providers that
// only the state needs are not found.
//
// terraform-config-inspect is not used: it knows neither OpenTofu's files nor
// ephemeral resources, actions and tests, has no lines for what is required, and
// panics on a variable whose default is 1e400.
func ReadConfiguration(dir string, tofu bool) ([]Requirement, []Unresolved, error) {
	r := configurationReader{tofu: tofu, required: make(map[address.Address]Requirement), visited: make(map[string]bool)}
	if err := r.readModule(filepath.Clean(dir)); err != nil {
		return nil, nil, err
	}
	requirements := slices.SortedFunc(maps.Values(r.required), func(a, b Requirement) int {
		return strings.Compare(a.Address.String(), b.Address.String())
	})
	slices.SortFunc(r.unresolved, func(a, b Unresolved) int { return strings.Compare(a.String(), b.String()) })
	return requirements, slices.Compact(r.unresolved), nil
}

// A configurationReader collects what the modules of a configuration require.
type configurationReader struct {
	tofu       bool
	required   map[address.Address]Requirement
	unresolved []Unresolved
	visited    map[string]bool // folders of modules
}

func (r *configurationReader) note(what, from, why string) {
	r.unresolved = append(r.unresolved, Unresolved{what, from, why})
}

// errNoFiles means that a folder is not a module.
var errNoFiles = errors.New("there is no .tf file in it")

// The extensions of files in Terraform, and of those in OpenTofu that hide them.
var (
	moduleFiles = map[string]string{".tf": ".tofu", ".tf.json": ".tofu.json"}
	testFiles   = map[string]string{".tftest.hcl": ".tofutest.hcl", ".tftest.json": ".tofutest.json"}
)

// readModule adds what the module in a folder requires, and then the local modules
// that it calls, each once. The first module is the root module: its tests are
// read too, which clients look for beside it and in tests/.
func (r *configurationReader) readModule(dir string) error {
	if r.visited[dir] {
		return nil
	}
	root := len(r.visited) == 0
	r.visited[dir] = true
	if len(r.visited) > maxModules {
		return fmt.Errorf("%s: more than %d local modules are called", dir, maxModules)
	}
	files, err := r.list(dir, moduleFiles)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		if tofu, _ := (&configurationReader{tofu: true}).list(dir, moduleFiles); len(tofu) > 0 {
			return fmt.Errorf("%s: %w, only .tofu files: read it as OpenTofu's", dir, errNoFiles)
		}
		return fmt.Errorf("%s: %w", dir, errNoFiles)
	}
	m := module{declared: make(map[string]declaration), calls: make(map[string]moduleCall)}
	for _, file := range files {
		if err := m.readFile(file, moduleSchema); err != nil {
			return err
		}
	}
	for _, folder := range []string{dir, filepath.Join(dir, "tests")} {
		if !root {
			break
		}
		tests, err := r.list(folder, testFiles)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, file := range tests {
			if err := m.readFile(file, testSchema); err != nil {
				return err
			}
		}
	}
	r.requireProviders(&m)
	return r.readCalls(&m, dir)
}

// list returns the files in a folder with one of the extensions, in order, those
// that override others last. Files of editors are ignored, as by clients.
func (r *configurationReader) list(dir string, extensions map[string]string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	present := make(map[string]bool)
	for _, entry := range entries {
		name := entry.Name()
		ignored := strings.HasPrefix(name, ".") || strings.HasSuffix(name, "~") || strings.HasPrefix(name, "#") && strings.HasSuffix(name, "#")
		present[name] = !entry.IsDir() && !ignored
	}
	var files, overrides []string
	for _, entry := range entries {
		name := entry.Name()
		for extension, tofu := range extensions {
			base, ok := strings.CutSuffix(name, extension)
			ok = ok && !(r.tofu && present[base+tofu])
			if !ok && r.tofu {
				base, ok = strings.CutSuffix(name, tofu)
			}
			switch {
			case !ok || !present[name]:
			case base == "override" || strings.HasSuffix(base, "_override"):
				overrides = append(overrides, filepath.Join(dir, name))
			default:
				files = append(files, filepath.Join(dir, name))
			}
		}
	}
	return append(files, overrides...), nil
}

func (r *configurationReader) requireProviders(m *module) {
	r.unresolved = append(r.unresolved, m.unresolved...)
	for _, name := range slices.Sorted(maps.Keys(m.declared)) {
		if d := m.declared[name]; !d.partial {
			r.require(name, d, d.constraints, d.from)
		}
	}
	for _, u := range m.used {
		d, declared := m.declared[u.name]
		if d.partial || declared && u.constraints == "" {
			continue
		}
		m.declared[u.name] = d // its first use is enough to say where it comes from
		r.require(u.name, d, u.constraints, u.from)
	}
}

// readCalls reads the local modules that one in folder dir calls.
func (r *configurationReader) readCalls(m *module, dir string) error {
	for _, key := range slices.Sorted(maps.Keys(m.calls)) {
		c := m.calls[key]
		source := filepath.ToSlash(c.source)
		if source == "" {
			r.note(c.what, c.from, "its source is not a string in quotes: name the providers it needs yourself")
			continue
		}
		if !strings.HasPrefix(source, "./") && !strings.HasPrefix(source, "../") {
			r.note(c.what, c.from, c.source+" is not a local module and was not looked into: name the providers it needs yourself, or let init write a lock file")
			continue
		}
		folder := filepath.Join(dir, filepath.FromSlash(source))
		err := r.readModule(folder)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			r.note(c.what, c.from, "its folder "+folder+" does not exist")
		case errors.Is(err, errNoFiles):
			r.note(c.what, c.from, "its folder "+err.Error())
		case err != nil:
			return err
		}
	}
	return nil
}

// require adds a provider by the name it has in a module.
func (r *configurationReader) require(name string, d declaration, text, from string) {
	source := d.source
	if source == "" {
		if name == "terraform" { // terraform_data and terraform_remote_state are built in
			return
		}
		source = name
	}
	a, err := parseSource(source, defaultHost(r.tofu))
	if err == nil && isBuiltIn(a) {
		return
	}
	var parsed constraints
	if err == nil {
		parsed, err = parseConstraints(text)
	}
	if err != nil {
		r.note("provider "+name, from, err.Error())
		return
	}
	known := r.required[a]
	if !slices.Contains(known.From, from) {
		known.From = append(known.From, from)
	}
	r.required[a] = Requirement{Address: a, From: known.From, constraints: known.constraints.and(parsed)}
}

// A module is what the files in one folder say about providers and modules.
type module struct {
	declared   map[string]declaration // by the name of the provider in the module
	used       []use
	calls      map[string]moduleCall
	unresolved []Unresolved
}

// A declaration is an entry of required_providers.
type declaration struct {
	source, constraints, from string
	partial                   bool // it has an expression, and is among the unresolved
}

// A use of a provider by its name in the module. A provider block may have
// constraints, as before there was required_providers.
type use struct{ name, constraints, from string }

type moduleCall struct{ what, source, from string }

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

	// Of a test's blocks, init installs the modules of its runs only.
	testSchema = &hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{{Type: "run", LabelNames: []string{"name"}}}}
	runSchema  = &hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{{Type: "module"}}}
)

// readFile adds what a file says. In a file that overrides others, an entry of
// required_providers and the source of a call replace those before.
func (m *module) readFile(name string, schema *hcl.BodySchema) error {
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return fmt.Errorf("%s: it is not a regular file of at most %d bytes", name, maxFile)
	}
	content, err := os.ReadFile(name)
	if err != nil {
		return err
	}
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
			m.readCall(what, moduleCall{what: what, from: from}, values)
		case "run":
			inner, _, more := block.Body.PartialContent(runSchema)
			diags = append(diags, more...)
			for _, b := range inner.Blocks {
				values, _, _ := b.Body.PartialContent(valueSchema)
				m.readCall("run "+from, moduleCall{what: fmt.Sprintf("the module of run %q", block.Labels[0]), from: position(b.DefRange)}, values)
			}
		}
	}
	return diags
}

// readCall adds a call of a module. The source can be an expression since
// Terraform 1.15 and OpenTofu 1.8, and is left empty then.
func (m *module) readCall(key string, c moduleCall, values *hcl.BodyContent) {
	source := values.Attributes["source"]
	if before, ok := m.calls[key]; ok && source == nil {
		c = before
	}
	if source != nil {
		c.source, _ = literal(source.Expr)
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

// text returns an optional attribute that must be a string, or else adds it to the
// unresolved.
func (m *module) text(attribute *hcl.Attribute, what string) (string, bool) {
	if attribute == nil {
		return "", true
	}
	text, ok := literal(attribute.Expr)
	if !ok {
		m.unresolved = append(m.unresolved, Unresolved{what, position(attribute.Range), "its " + attribute.Name + " is not a string in quotes: name the provider yourself"})
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
