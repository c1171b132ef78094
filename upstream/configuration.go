package upstream

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	svchost "github.com/hashicorp/terraform-svchost"
	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// A Configuration says how the configurations of a client are read.
//
// They are read with the clients' own parser, HCL, and not with
// terraform-config-inspect: that knows neither OpenTofu's files nor ephemeral
// resources, actions and tests, has no line for what is required, and panics
// on a variable whose default is 1e400.
type Configuration struct {
	Fs afero.Fs

	// Tofu reads them as OpenTofu does: its own files count, and hide those of
	// Terraform that have the same name.
	Tofu bool

	// DefaultHost is the registry of providers that are named without one. If
	// empty it is TerraformHost, or with Tofu OpenTofuHost.
	DefaultHost svchost.Hostname
}

// Unresolved is something that may need a provider that is not among the
// requirements.
type Unresolved struct {
	What string `json:"what"`
	From string `json:"from"`
	Why  string `json:"why"`
}

func (u Unresolved) String() string { return u.From + ": " + u.What + ": " + u.Why }

// maxModules bounds how many modules a configuration calls, each counted as
// often as it is called.
const maxModules = 10_000

// Requirements returns the providers that the configuration in a folder needs,
// with those of the modules that it or its tests call: local ones, and all
// others where init has put them. What cannot be found out is returned too. An
// error is about a configuration that no client could read either.
//
// A provider that only the state knows is not seen, nor are files that init does
// not read: Terraform's Stacks and queries.
func (c Configuration) Requirements(dir string) ([]Requirement, []Unresolved, error) {
	if c.DefaultHost == "" {
		c.DefaultHost = TerraformHost
		if c.Tofu {
			c.DefaultHost = OpenTofuHost
		}
	}
	dir = filepath.Clean(dir)
	p := &project{
		Configuration: c, root: dir,
		modules: make(map[string]*moduleFolder),
		found:   make(map[address.Address]Requirement),
		noted:   make(map[Unresolved]bool),
	}
	root, err := p.module(dir)
	if err != nil {
		return nil, nil, err
	}
	if root.empty {
		return nil, nil, errors.New(dir + ": " + root.emptiness())
	}
	if p.installed, err = c.installedModules(dir); err != nil {
		return nil, nil, err
	}
	if err := p.visit(root, "", []string{dir}); err != nil {
		return nil, nil, err
	}
	if err := p.visitTests(); err != nil {
		return nil, nil, err
	}
	requirements := slices.SortedFunc(maps.Values(p.found), func(a, b Requirement) int {
		return strings.Compare(a.Address.String(), b.Address.String())
	})
	unresolved := slices.SortedFunc(maps.Keys(p.noted), func(a, b Unresolved) int {
		return strings.Compare(a.String(), b.String())
	})
	return requirements, unresolved, nil
}

// A project is a configuration on its way from files to requirements.
type project struct {
	Configuration
	root      string
	installed map[string]installedModule
	modules   map[string]*moduleFolder // by folder
	visited   int
	found     map[address.Address]Requirement
	noted     map[Unresolved]bool
}

// module reads a folder once.
func (p *project) module(dir string) (*moduleFolder, error) {
	if m := p.modules[dir]; m != nil {
		return m, nil
	}
	m, err := p.readModule(dir)
	if err == nil {
		p.modules[dir] = m
	}
	return m, err
}

// visit takes up what a module needs, and then what it calls. The key is what
// clients call it in modules.json, above are the folders that lead to it.
func (p *project) visit(m *moduleFolder, key string, above []string) error {
	p.declare(m.declared)
	p.use(m.used, m.declared)
	p.note(m.unresolved...)
	for _, call := range m.calls {
		child := call.name
		if key != "" {
			child = key + "." + child
		}
		if err := p.visitCall(call, child, above); err != nil {
			return err
		}
	}
	return nil
}

func (p *project) visitCall(call moduleCall, key string, above []string) error {
	what := fmt.Sprintf("module %q", call.name)
	dir, why := p.locate(call, key, above[len(above)-1])
	if why != "" {
		p.note(Unresolved{what, call.from, why})
		return nil
	}
	if slices.Contains(above, dir) {
		return fmt.Errorf("%s: %s calls itself", call.from, what)
	}
	if p.visited++; p.visited > maxModules {
		return fmt.Errorf("%s: more than %d modules are called", p.root, maxModules)
	}
	m, err := p.module(dir)
	if errors.Is(err, fs.ErrNotExist) {
		p.note(Unresolved{what, call.from, "its folder " + dir + " does not exist"})
		return nil
	}
	if err != nil {
		return err
	}
	if m.empty {
		p.note(Unresolved{what, call.from, "its folder " + dir + ": " + m.emptiness()})
		return nil
	}
	// A copy: siblings append to the same.
	return p.visit(m, key, append(slices.Clone(above), dir))
}

// visitTests takes up the modules that the root module's tests run: init
// installs what these need too.
func (p *project) visitTests() error {
	tests, err := p.readTests(p.root)
	if err != nil {
		return err
	}
	for _, test := range tests {
		for _, call := range test.calls {
			// Tests name folders as seen from the root module.
			if err := p.visitCall(call, test.key+"."+call.name, []string{p.root}); err != nil {
				return err
			}
		}
	}
	return nil
}

// declare takes up the providers that a module declares.
func (p *project) declare(declared map[string]declaration) {
	for _, name := range slices.Sorted(maps.Keys(declared)) {
		if d := declared[name]; !d.partial {
			p.add(name, d, d.constraints, d.from)
		}
	}
}

// use takes up the providers that are used but not declared, and constraints
// in provider blocks of any.
func (p *project) use(used []use, declared map[string]declaration) {
	seen := make(map[string]bool)
	for _, u := range used {
		d, ok := declared[u.name]
		if d.partial || u.constraints == "" && (ok || seen[u.name]) {
			continue // one place is enough to say where it comes from
		}
		seen[u.name] = true
		p.add(u.name, d, u.constraints, u.from)
	}
}

// add takes up one provider that a module calls by name.
func (p *project) add(name string, d declaration, constraints, from string) {
	if d.source == "" {
		if name == "terraform" { // has terraform_data and terraform_remote_state
			return
		}
		d.source = name
	}
	address, err := parseSource(d.source, p.DefaultHost)
	if err == nil && builtIn(address) {
		return
	}
	var parsed Constraints
	if err == nil {
		parsed, err = ParseConstraints(constraints)
	}
	if err != nil {
		p.note(Unresolved{"provider " + name, from, err.Error()})
		return
	}
	r := p.found[address]
	r.Address, r.Constraints = address, r.Constraints.And(parsed)
	if !slices.Contains(r.From, from) {
		r.From = append(r.From, from)
	}
	p.found[address] = r
}

func (p *project) note(all ...Unresolved) {
	for _, u := range all {
		p.noted[u] = true
	}
}

// locate finds the folder of a module that another one, in folder dir, calls.
func (p *project) locate(call moduleCall, key, dir string) (folder, why string) {
	source := filepath.ToSlash(call.source)
	if strings.HasPrefix(source, "./") || strings.HasPrefix(source, "../") {
		return filepath.Join(dir, filepath.FromSlash(source)), ""
	}
	if call.source == "" {
		return "", "it has no source"
	}
	m, ok := p.installed[key]
	if !ok {
		return "", fmt.Sprintf("%s is not installed: run `%s get` first", call.source, p.client())
	}
	if !m.serves(call) {
		return "", fmt.Sprintf("what is installed is another module than %s, or another version: run `%s get` first", call.source, p.client())
	}
	if filepath.IsAbs(m.Dir) {
		return filepath.Clean(m.Dir), ""
	}
	return filepath.Join(p.root, filepath.FromSlash(m.Dir)), ""
}

func (c Configuration) client() string {
	if c.Tofu {
		return "tofu"
	}
	return "terraform"
}
