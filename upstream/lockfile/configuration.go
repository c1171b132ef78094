package lockfile

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// maxModules limits the number of folders of a configuration: symlinks can make it
// infinite.
const maxModules = 10_000

// An Unresolved is a part of a configuration that may need further providers.
type Unresolved struct {
	What string `json:"what"` // such as module "vpc"
	From string `json:"from"` // FILE:LINE
	Why  string `json:"why"`

	call   bool
	site   site   // of the call
	source string // of the call; empty: unknown
}

// IsCall reports whether the part may need further modules, too.
func (u Unresolved) IsCall() bool { return u.call }

// String returns one line for users.
func (u Unresolved) String() string { return u.From + ": " + u.What + ": " + u.Why }

// A Configuration lists the providers and modules that a configuration needs from
// registries, as far as they are known: the needs of a registry's module are known when
// its package is added. It is not safe for concurrent use.
type Configuration struct {
	tofu       bool
	required   map[address.Address]Requirement
	unresolved []Unresolved
	visited    map[place]bool
	calls      []ModuleCall    // not taken yet
	taken      map[string]bool // by address, folder and constraints of a call

	graph     callGraph
	installed []InstalledModule
	records   map[string]installedRecord // in modules.json, by their keys
}

// A place is a folder of a module, in a package by its name or on the disk.
type place struct{ in, dir string }

// ReadConfiguration reads the configuration in a folder. It finds the providers that
// the configuration requires, the providers of the local modules that it, its tests or
// these modules call, and the modules of registries that all of them call. With tofu,
// files are read as in OpenTofu, whose own files hide Terraform's.
//
// An error means that clients cannot read the configuration either. Providers that only
// the state or an import block needs are not found.
//
// terraform-config-inspect is not used: it knows neither OpenTofu's files nor ephemeral
// resources, actions and tests, has no lines for requirements, and panics on a variable
// whose default is 1e400.
func ReadConfiguration(dir string, tofu bool) (*Configuration, error) {
	dir = filepath.Clean(dir)
	c := newConfiguration(tofu)
	c.graph.root = place{disk{}.shown("."), dir}
	if err := c.readModule(disk{}, dir, true); err != nil {
		return nil, err
	}
	var err error
	c.installed, c.records, err = readInstalled(dir)
	return c, err
}

// CallingModule returns a configuration that only calls a module.
func CallingModule(call ModuleCall, tofu bool) *Configuration {
	c := newConfiguration(tofu)
	c.call(call)
	return c
}

func newConfiguration(tofu bool) *Configuration {
	return &Configuration{tofu: tofu, required: make(map[address.Address]Requirement), visited: make(map[place]bool), taken: make(map[string]bool), graph: newCallGraph()}
}

// Requirements returns the required providers, ordered by address, each with the
// constraints of everything that requires it.
func (c *Configuration) Requirements() []Requirement {
	return slices.SortedFunc(maps.Values(c.required), func(a, b Requirement) int {
		return strings.Compare(a.Address.String(), b.Address.String())
	})
}

// Unresolved returns the parts that were not read: calls of modules that have not been
// taken or do not come from a registry, and entries with expressions instead of
// strings.
func (c *Configuration) Unresolved() []Unresolved {
	all := slices.Clone(c.unresolved)
	for _, call := range c.calls {
		all = append(all, Unresolved{What: call.what, From: call.From[0], Why: call.Address.String() + " comes from a registry and was not looked into: mirror it too with --modules, name the providers it needs yourself, or let init write a lock file", call: true})
	}
	slices.SortFunc(all, func(a, b Unresolved) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(all)
}

// Installed returns the modules that clients have installed for the configuration.
func (c *Configuration) Installed() []InstalledModule { return c.installed }

// Folders returns the folders on the disk that were read: the folder of the
// configuration itself, and the folders of the local modules that it calls.
func (c *Configuration) Folders() (dirs []string) {
	for at := range c.visited {
		if at.in == (disk{}).shown(".") {
			dirs = append(dirs, at.dir)
		}
	}
	slices.Sort(dirs)
	return dirs
}

// Calls takes the known calls of modules that have not been taken, without duplicates.
// The calls of the called modules become known when their packages are added.
func (c *Configuration) Calls() []ModuleCall {
	calls := c.calls
	c.calls = nil
	for i, call := range calls {
		for _, m := range c.installed {
			if m.Address == call.Address && call.Allow(m.Version) {
				calls[i].Installed = append(calls[i].Installed, m.Version)
			}
		}
	}
	return calls
}

// Add adds the needs of the called module, given the package of one of its versions. An
// error means that clients cannot use the package.
func (c *Configuration) Add(call ModuleCall, p *Package) error {
	dir := path.Join(p.Folder, call.Folder)
	if dir == "" {
		dir = "."
	}
	at, id := place{p.shown("."), dir}, call.String()
	if !slices.Contains(c.graph.added[at], id) {
		c.graph.added[at] = append(c.graph.added[at], id)
	}
	err := c.readModule(p, dir, false)
	if submodules := p.submodules(); call.argument && call.Folder == "" && errors.Is(err, ErrNoConfiguration) && len(submodules) > 0 {
		// Some modules have only submodules.
		err = nil
		for _, dir := range submodules {
			err = errors.Join(err, c.readModule(p, dir, false))
		}
	}
	return err
}

// call adds a call of a module, unless there is an equal one.
func (c *Configuration) call(call ModuleCall) {
	id := call.String()
	if i := slices.IndexFunc(c.calls, func(other ModuleCall) bool { return other.String() == id }); i >= 0 {
		c.calls[i].From = append(c.calls[i].From, call.From...)
		return
	}
	if !c.taken[id] {
		c.taken[id] = true
		c.calls = append(c.calls, call)
	}
}

func (c *Configuration) note(what, from, why string) {
	c.unresolved = append(c.unresolved, Unresolved{What: what, From: from, Why: why})
}

func (c *Configuration) noteCall(m moduleCall, at place, why string) {
	c.unresolved = append(c.unresolved, Unresolved{m.what, m.from, why, true, site{at, m.name}, m.source})
}

// ErrNoConfiguration means that a folder has no file that the client reads as
// configuration.
var ErrNoConfiguration = errors.New("there is no .tf file in it")

var errNoFolder = errors.New("it does not exist")

// Extensions of Terraform's files, and the extensions of OpenTofu's files that hide
// them.
var (
	moduleFiles = map[string]string{".tf": ".tofu", ".tf.json": ".tofu.json"}
	testFiles   = map[string]string{".tftest.hcl": ".tofutest.hcl", ".tftest.json": ".tofutest.json"}
)

// readModule reads the module in a folder and the local modules that it calls, each
// once. It reads the tests of the root module, too: clients look for them in its folder
// and in tests/.
func (c *Configuration) readModule(in folders, dir string, root bool) error {
	at := place{in.shown("."), dir}
	if c.visited[at] {
		return nil
	}
	c.visited[at] = true
	if len(c.visited) > maxModules {
		return fmt.Errorf("%s: more than %d modules are called", in.shown(dir), maxModules)
	}
	files, err := c.list(in, dir, moduleFiles)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w", in.shown(dir), errNoFolder)
	}
	if err != nil {
		return err
	}
	if len(files) == 0 {
		if tofu, _ := (&Configuration{tofu: true}).list(in, dir, moduleFiles); len(tofu) > 0 {
			return fmt.Errorf("%s: %w, only .tofu files: read it as OpenTofu's", in.shown(dir), ErrNoConfiguration)
		}
		return fmt.Errorf("%s: %w", in.shown(dir), ErrNoConfiguration)
	}
	m := module{declared: make(map[string]declaration), calls: make(map[string]moduleCall)}
	for _, file := range files {
		if err := m.readFile(in, file, moduleSchema); err != nil {
			return err
		}
	}
	var testFolders []string
	if root {
		testFolders = []string{dir, filepath.Join(dir, "tests")}
	}
	for _, folder := range testFolders {
		tests, err := c.list(in, folder, testFiles)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, file := range tests {
			m.test = testKey(dir, file)
			if err := m.readFile(in, file, testSchema); err != nil {
				return err
			}
		}
	}
	c.requireProviders(&m)
	return c.readCalls(&m, in, dir)
}

// testKey returns the key under which clients record what the runs of a test call. The names of
// files keep other extensions, such as .tftest.json.
func testKey(root, file string) string {
	name, _ := filepath.Rel(root, file) // of a file below it
	name = strings.TrimSuffix(filepath.ToSlash(name), ".tftest.hcl")
	return "test." + strings.ReplaceAll(name, "/", ".")
}

// list returns the names of the files in a folder with one of the extensions. Files
// that override others come last. Like clients, it ignores temporary files of editors.
func (c *Configuration) list(in folders, dir string, extensions map[string]string) ([]string, error) {
	names, err := in.list(dir)
	if err != nil {
		return nil, err
	}
	present := make(map[string]bool)
	for _, name := range names {
		present[name] = !strings.HasPrefix(name, ".") && !strings.HasSuffix(name, "~") && !(strings.HasPrefix(name, "#") && strings.HasSuffix(name, "#"))
	}
	var files, overrides []string
	for _, name := range names {
		for extension, tofu := range extensions {
			base, ok := strings.CutSuffix(name, extension)
			ok = ok && !(c.tofu && present[base+tofu])
			if !ok && c.tofu {
				base, ok = strings.CutSuffix(name, tofu)
			}
			switch {
			case !ok || !present[name]:
			case base == "override" || strings.HasSuffix(base, "_override"):
				overrides = append(overrides, in.file(dir, name))
			default:
				files = append(files, in.file(dir, name))
			}
		}
	}
	return append(files, overrides...), nil
}

// requireProviders adds the providers that a module declares, and the providers that it
// uses without declaring them.
func (c *Configuration) requireProviders(m *module) {
	c.unresolved = append(c.unresolved, m.unresolved...)
	for _, name := range slices.Sorted(maps.Keys(m.declared)) {
		if d := m.declared[name]; !d.partial {
			c.require(name, d, d.constraints, d.from)
		}
	}
	for _, u := range m.used {
		d, declared := m.declared[u.name]
		if d.partial || declared && u.constraints == "" {
			continue
		}
		m.declared[u.name] = d // the first use is enough to locate it
		c.require(u.name, d, u.constraints, u.from)
	}
}

// readCalls reads the local modules that the module in a folder calls, and adds its
// calls of other modules.
func (c *Configuration) readCalls(m *module, in folders, dir string) error {
	for _, key := range slices.Sorted(maps.Keys(m.calls)) {
		if err := c.readCall(m.calls[key], in, dir); err != nil {
			return err
		}
	}
	return nil
}

func (c *Configuration) readCall(m moduleCall, in folders, dir string) error {
	source, at := filepath.ToSlash(m.source), place{in.shown("."), dir}
	switch {
	case source == "":
		c.noteCall(m, at, "it has no source in quotes: name the providers it needs yourself")
		return nil
	case strings.HasPrefix(source, "./") || strings.HasPrefix(source, "../"):
		local, ok := in.join(dir, source)
		if !ok {
			c.note(m.what, m.from, source+" leads out of the package, which clients refuse")
			return nil
		}
		called := place{at.in, local}
		c.graph.local[called] = append(c.graph.local[called], site{at, m.name})
		err := c.readModule(in, local, false)
		if errors.Is(err, errNoFolder) || errors.Is(err, ErrNoConfiguration) {
			c.noteCall(m, at, "its folder "+err.Error())
			return nil
		}
		return err
	}
	a, folder, err := parseModuleSource(m.source, c.tofu)
	if err != nil {
		c.noteCall(m, at, m.source+" does not come from a registry and was not looked into: name the providers it needs yourself, or let init write a lock file")
		return nil
	}
	call := ModuleCall{Address: a, Folder: folder, From: []string{m.from}, what: m.what}
	if m.partial {
		err = errors.New("its version is not a string in quotes: name the module yourself")
	} else {
		call.constraints, err = address.ParseModuleConstraints(m.version)
	}
	if err != nil {
		c.noteCall(m, at, err.Error())
		return nil
	}
	c.graph.calls[call.String()] = append(c.graph.calls[call.String()], site{at, m.name})
	c.call(call)
	return nil
}

// require adds the provider with a name in a module.
func (c *Configuration) require(name string, d declaration, text, from string) {
	source := d.source
	if source == "" {
		if name == "terraform" { // terraform_data and terraform_remote_state are built in
			return
		}
		source = name
	}
	a, err := parseSource(source, defaultHost(c.tofu))
	if err == nil && isBuiltIn(a) {
		return
	}
	var parsed address.Constraints
	if err == nil {
		parsed, err = address.ParseConstraints(text)
	}
	if err != nil {
		c.note("provider "+name, from, err.Error())
		return
	}
	known := c.required[a]
	if !slices.Contains(known.From, from) {
		known.From = append(known.From, from)
	}
	c.required[a] = Requirement{Address: a, From: known.From, constraints: known.constraints.And(parsed)}
}
