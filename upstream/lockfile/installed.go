package lockfile

import (
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
// configuration in a folder, without duplicate versions. known is false if init has not
// been run there.
func readInstalled(dir string) (modules []InstalledModule, known bool, err error) {
	name := filepath.Join(dir, filepath.FromSlash(InstalledName))
	content, err := disk{}.read(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, false, nil
	case err != nil:
		return nil, false, err
	}
	if modules, err = parseInstalled(content); err != nil {
		return nil, false, fmt.Errorf("%s: %w: let `init` write it again, or remove it", name, err)
	}
	return modules, true, nil
}

// An InstalledCall is a call of a registry's module, whose package a client has installed.
type InstalledCall struct {
	// Key has the names of the calls that lead to the module, with dots between them. The
	// package is in a folder of this name beside the file.
	Key string

	InstalledModule
}

// ReadInstalled reads the file in which a client records the installed modules. Modules that
// are local or do not come from a registry are left out.
func ReadInstalled(name string) ([]InstalledCall, error) {
	content, err := disk{}.read(name)
	if err != nil {
		return nil, err
	}
	calls, err := parseInstalledCalls(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: let `init` write it again, or remove it", name, err)
	}
	return calls, nil
}

// parseInstalled reads the modules in the content of modules.json.
func parseInstalled(content []byte) (modules []InstalledModule, err error) {
	calls, err := parseInstalledCalls(content)
	for _, c := range calls {
		if !slices.Contains(modules, c.InstalledModule) {
			modules = append(modules, c.InstalledModule)
		}
	}
	return modules, err
}

// parseInstalledCalls reads the content of modules.json. Modules that are local or do not
// come from a registry have no version in it.
func parseInstalledCalls(content []byte) (calls []InstalledCall, err error) {
	var file struct {
		Modules []struct{ Key, Source, Version string }
	}
	if err := json.Unmarshal(content, &file); err != nil {
		return nil, errors.New("it is not what clients write")
	}
	for _, m := range file.Modules {
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
