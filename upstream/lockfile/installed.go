package lockfile

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// InstalledName is the path, in the folder of a configuration, of the file in which
// clients record the installed modules.
const InstalledName = ".terraform/modules/modules.json"

// An InstalledModule is a module of a registry that a client has installed for a
// configuration, called directly or by another module.
type InstalledModule struct {
	Address address.Address // with its hostname
	Version string
}

// readInstalled returns the modules of registries that a client has installed for the
// configuration in a folder, without duplicate versions, and the records of all modules by their
// keys. There are none if init has not been run there.
func readInstalled(dir string) (modules []InstalledModule, records map[string]installedRecord, err error) {
	name := filepath.Join(dir, filepath.FromSlash(InstalledName))
	content, err := disk{}.read(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, nil
	case err != nil:
		return nil, nil, err
	}
	if modules, records, err = parseInstalled(content); err != nil {
		return nil, nil, fmt.Errorf("%s: %w: let `init` write it again, or remove it", name, err)
	}
	return modules, records, nil
}

// An InstalledCall is a call of a registry's module, whose package a client has installed.
type InstalledCall struct {
	// Key has the names of the calls that lead to the module, with dots between them. The
	// package is in a folder of this name beside the file.
	Key string

	InstalledModule
}

// A Stray is a call for which the client loads another folder than the one where its module
// was installed, or a module of a registry whose version is not known.
type Stray struct {
	Key, Source, Version string
	Dir                  string // empty: the version is not known
}

// ReadInstalled reads the file in which a client records the installed modules of the
// configuration in a folder. data is the folder in which the client keeps what it has
// installed. Modules that are local or do not come from a registry are left out, unless they
// are strays. A client loads what the file names, whatever it has installed.
func ReadInstalled(folder, data string) (calls []InstalledCall, strays []Stray, err error) {
	modules := filepath.Join(data, "modules")
	name := filepath.Join(modules, filepath.Base(InstalledName))
	content, err := disk{}.read(name)
	if err != nil {
		return nil, nil, err
	}
	records, err := parseRecords(content)
	if err == nil {
		calls, err = installedCalls(records)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w: let `init` write it again, or remove it", name, err)
	}
	if strays, err = findStrays(records, folder, modules); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	return calls, strays, nil
}

// findStrays compares the folders of records with those in which clients install modules.
func findStrays(records []installedRecord, folder, modules string) (strays []Stray, err error) {
	absolute := func(path string) (string, error) {
		if !filepath.IsAbs(path) {
			path = filepath.Join(folder, path)
		}
		return filepath.Abs(path)
	}
	if modules, err = filepath.Abs(modules); err != nil {
		return nil, err
	}
	dirs := make(map[string]string) // by key
	for _, r := range records {
		if dirs[r.Key], err = absolute(filepath.FromSlash(r.Dir)); err != nil {
			return nil, err
		}
	}
	root, err := absolute(".")
	if err != nil {
		return nil, err
	}
	for _, r := range records {
		switch dir := dirs[r.Key]; {
		case r.Key == "": // clients load the configuration whatever is written here
		case r.Version != "":
			installed := filepath.Join(modules, r.Key)
			if dir != installed && !strings.HasPrefix(dir, installed+string(filepath.Separator)) {
				strays = append(strays, Stray{r.Key, r.Source, r.Version, cmp.Or(r.Dir, ".")})
			}
		case isLocal(r.Source):
			parent := root
			if at := strings.LastIndexByte(r.Key, '.'); at >= 0 {
				if caller, known := dirs[r.Key[:at]]; known { // the caller of a test's module has no record
					parent = caller
				}
			}
			if !sameFolder(dir, filepath.Join(parent, filepath.FromSlash(r.Source))) {
				strays = append(strays, Stray{r.Key, r.Source, "", cmp.Or(r.Dir, ".")})
			}
		default:
			if _, _, notRegistry := parseModuleSource(r.Source, false); notRegistry == nil {
				strays = append(strays, Stray{Key: r.Key, Source: r.Source})
			}
		}
	}
	return strays, nil
}

func isLocal(source string) bool {
	source = strings.ReplaceAll(source, "\\", "/")
	return strings.HasPrefix(source, "./") || strings.HasPrefix(source, "../")
}

// sameFolder compares paths as clients write them, which resolve links.
func sameFolder(a, b string) bool {
	if a == b {
		return true
	}
	was, err := filepath.EvalSymlinks(a)
	is, bad := filepath.EvalSymlinks(b)
	return err == nil && bad == nil && was == is
}

// parseInstalled reads the content of modules.json.
func parseInstalled(content []byte) (modules []InstalledModule, records map[string]installedRecord, err error) {
	list, err := parseRecords(content)
	if err != nil {
		return nil, nil, err
	}
	records = make(map[string]installedRecord, len(list))
	for _, r := range list {
		records[r.Key] = r
	}
	calls, err := installedCalls(list)
	for _, c := range calls {
		if !slices.Contains(modules, c.InstalledModule) {
			modules = append(modules, c.InstalledModule)
		}
	}
	return modules, records, err
}

// An installedRecord is a call in modules.json, as the client has written it.
type installedRecord struct{ Key, Source, Version, Dir string }

// parseRecords reads the content of modules.json. Clients refuse two records of a call.
func parseRecords(content []byte) ([]installedRecord, error) {
	var file struct{ Modules []installedRecord }
	if err := json.Unmarshal(content, &file); err != nil {
		return nil, errors.New("it is not what clients write")
	}
	known := make(map[string]bool)
	for _, r := range file.Modules {
		if known[r.Key] {
			return nil, fmt.Errorf("it has the call %q twice", r.Key)
		}
		known[r.Key] = true
	}
	return file.Modules, nil
}

// installedCalls returns the calls of registries' modules. Modules that are local or do not
// come from a registry have no version.
func installedCalls(records []installedRecord) (calls []InstalledCall, err error) {
	for _, m := range records {
		if m.Version == "" {
			continue
		}
		// Terraform 0.12 leaves out the hostname.
		a, _, err := parseModuleSource(m.Source, false)
		v, bad := address.ParseModuleVersion(m.Version)
		if err != nil || bad != nil {
			return nil, fmt.Errorf("%q in version %q is not a module of a registry", m.Source, m.Version)
		}
		if strings.ContainsAny(m.Key, "/\\\x00") || m.Key == "." || m.Key == ".." {
			return nil, fmt.Errorf("%q is not the name of a call", m.Key)
		}
		calls = append(calls, InstalledCall{m.Key, InstalledModule{a, v.String()}})
	}
	return calls, nil
}

// HasConfiguration reports whether a folder has files that Terraform or OpenTofu reads
// as configuration.
func HasConfiguration(dir string) (bool, error) {
	c := Configuration{tofu: true}
	files, err := c.list(disk{}, dir, moduleFiles)
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return len(files) > 0, err
}
