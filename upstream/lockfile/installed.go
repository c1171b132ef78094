package lockfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

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

// parseInstalled reads the content of modules.json. Modules that are local or do not
// come from a registry have no version in it.
func parseInstalled(content []byte) (modules []InstalledModule, err error) {
	var file struct {
		Modules []struct{ Source, Version string }
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
		if one := (InstalledModule{a, v.String()}); !slices.Contains(modules, one) {
			modules = append(modules, one)
		}
	}
	return modules, nil
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
