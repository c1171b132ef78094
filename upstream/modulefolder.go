package upstream

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/afero"
)

// A moduleFolder is what all files of a module say, overrides applied.
type moduleFolder struct {
	declared   map[string]declaration
	used       []use
	calls      []moduleCall
	unresolved []Unresolved
	empty      bool
	tofuOnly   bool // it has files, of OpenTofu
}

func (m *moduleFolder) emptiness() string {
	if m.tofuOnly {
		return "it has .tofu files only: read it as OpenTofu's"
	}
	return "there is no .tf file in it"
}

// Extensions of a client's files, and of those of OpenTofu that hide them.
var (
	moduleExtensions = map[string]string{".tf": ".tofu", ".tf.json": ".tofu.json"}
	testExtensions   = map[string]string{".tftest.hcl": ".tofutest.hcl", ".tftest.json": ".tofutest.json"}
)

func (c Configuration) readModule(dir string) (*moduleFolder, error) {
	names, err := c.list(dir, moduleExtensions)
	if err != nil {
		return nil, err
	}
	m := &moduleFolder{declared: make(map[string]declaration), empty: len(names) == 0}
	if m.empty && !c.Tofu {
		c.Tofu = true
		others, err := c.list(dir, moduleExtensions)
		m.tofuOnly = len(others) > 0
		return m, err
	}
	for _, overriding := range []bool{false, true} { // overrides come last
		for _, name := range names {
			base := stem(name, moduleExtensions)
			if overriding != (base == "override" || strings.HasSuffix(base, "_override")) {
				continue
			}
			f, err := c.readModuleFile(filepath.Join(dir, name), moduleFileSchema)
			if err != nil {
				return nil, err
			}
			if err := m.add(f, overriding); err != nil {
				return nil, err
			}
		}
	}
	m.dropImports()
	return m, nil
}

// dropImports leaves the provider of what is imported to the resource's block,
// where there is one.
func (m *moduleFolder) dropImports() {
	blocks := make(map[string]bool)
	for _, u := range m.used {
		blocks[u.of] = blocks[u.of] || !u.imports
	}
	m.used = slices.DeleteFunc(m.used, func(u use) bool { return u.imports && blocks[u.of] })
}

// add takes up what a file says. What overrides takes the place of an entry of
// required_providers as a whole, and of single arguments of other blocks.
func (m *moduleFolder) add(f *moduleFile, overriding bool) error {
	for _, u := range f.used {
		i := -1
		if overriding && u.of != "" {
			i = slices.IndexFunc(m.used, func(other use) bool { return other.of == u.of && !other.imports })
		}
		switch {
		case i < 0:
			m.used = append(m.used, u)
		case u.explicit:
			m.used[i] = u
		}
	}
	m.unresolved = append(m.unresolved, f.unresolved...)
	for _, name := range slices.Sorted(maps.Keys(f.declared)) {
		d, known := f.declared[name], m.declared[name]
		if known.from != "" && !overriding {
			return fmt.Errorf("%s: provider %s is declared at %s already: remove one of the two", d.from, name, known.from)
		}
		m.declared[name] = d
	}
	for _, call := range f.calls {
		i := slices.IndexFunc(m.calls, func(other moduleCall) bool { return other.name == call.name })
		switch {
		case i < 0:
			m.calls = append(m.calls, call)
		case overriding:
			m.calls[i].source = cmp.Or(call.source, m.calls[i].source)
			m.calls[i].version = cmp.Or(call.version, m.calls[i].version)
		default:
			return fmt.Errorf("%s: module %q is called at %s already: give one of the two another name", call.from, call.name, m.calls[i].from)
		}
	}
	return nil
}

// A moduleTest is a file of tests, and the key of its modules in
// modules.json.
type moduleTest struct {
	*moduleFile
	key string
}

// readTests reads the tests of a root module, beside it and in the folder where
// clients look for them.
func (c Configuration) readTests(root string) ([]moduleTest, error) {
	var tests []moduleTest
	for _, folder := range []string{".", "tests"} {
		names, err := c.list(filepath.Join(root, folder), testExtensions)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			f, err := c.readModuleFile(filepath.Join(root, folder, name), testSchema)
			if err != nil {
				return nil, err
			}
			base := stem(name, testExtensions)
			if folder != "." {
				base = folder + "." + base
			}
			tests = append(tests, moduleTest{f, "test." + base})
		}
	}
	return tests, nil
}

func (c Configuration) readModuleFile(name string, schema *hcl.BodySchema) (*moduleFile, error) {
	content, err := readRegular(c.Fs, name, maxHCL)
	if err != nil {
		return nil, err
	}
	return parseModuleFile(name, content, schema)
}

// list returns the names of files in a folder that have one of the extensions,
// in order.
func (c Configuration) list(dir string, extensions map[string]string) ([]string, error) {
	infos, err := afero.ReadDir(c.Fs, dir)
	if err != nil {
		return nil, err
	}
	present := make(map[string]bool)
	for _, info := range infos {
		name := info.Name()
		ignored := strings.HasPrefix(name, ".") || strings.HasSuffix(name, "~") ||
			strings.HasPrefix(name, "#") && strings.HasSuffix(name, "#") // editors', for clients too
		if !info.IsDir() && !ignored {
			present[name] = true
		}
	}
	var names []string
	for name := range present {
		for ours, tofu := range extensions {
			base, is := strings.CutSuffix(name, ours)
			hidden := c.Tofu && present[base+tofu]
			if is && !hidden || c.Tofu && strings.HasSuffix(name, tofu) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names, nil
}

// stem is a file's name without its extension.
func stem(name string, extensions map[string]string) string {
	for ours, tofu := range extensions {
		for _, extension := range []string{ours, tofu} {
			if base, is := strings.CutSuffix(name, extension); is {
				return base
			}
		}
	}
	return name
}
