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

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

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
// only the state or an import block needs are not found.
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

// Why a folder is not a module.
var (
	errNoFolder = errors.New("it does not exist")
	errNoFiles  = errors.New("there is no .tf file in it")
)

// Extensions of Terraform's files, and of OpenTofu's that hide them.
var (
	moduleFiles = map[string]string{".tf": ".tofu", ".tf.json": ".tofu.json"}
	testFiles   = map[string]string{".tftest.hcl": ".tofutest.hcl", ".tftest.json": ".tofutest.json"}
)

// readModule reads the module in a folder and the local modules that it calls, each
// once. The first one is the root module, whose tests are read too: clients look
// for them beside it and in tests/.
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
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w", dir, errNoFolder)
	}
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
	var testFolders []string
	if root {
		testFolders = []string{dir, filepath.Join(dir, "tests")}
	}
	for _, folder := range testFolders {
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

// list returns the files in a folder with one of the extensions by name, those that
// override others last. Like clients, it ignores temporary files of editors.
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

// requireProviders adds the providers that a module declares, and those it uses
// without declaring them.
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

// readCalls reads the local modules that the module in folder dir calls.
func (r *configurationReader) readCalls(m *module, dir string) error {
	for _, key := range slices.Sorted(maps.Keys(m.calls)) {
		c := m.calls[key]
		source := filepath.ToSlash(c.source)
		if source == "" {
			r.note(c.what, c.from, "it has no source in quotes: name the providers it needs yourself")
			continue
		}
		if !strings.HasPrefix(source, "./") && !strings.HasPrefix(source, "../") {
			r.note(c.what, c.from, c.source+" is not a local module and was not looked into: name the providers it needs yourself, or let init write a lock file")
			continue
		}
		err := r.readModule(filepath.Join(dir, filepath.FromSlash(source)))
		if errors.Is(err, errNoFolder) || errors.Is(err, errNoFiles) {
			r.note(c.what, c.from, "its folder "+err.Error())
		} else if err != nil {
			return err
		}
	}
	return nil
}

// require adds a provider, given its name in a module.
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
