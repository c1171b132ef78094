package upstream

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	version "github.com/hashicorp/go-version"
	tfaddr "github.com/hashicorp/terraform-registry-address"
)

// An installedModule is an entry of modules.json, where init notes which module
// it has put where.
type installedModule struct {
	Key     string // names of calls, from the root module on, with dots
	Source  string // written out: a registry's module with its hostname
	Version string // of a registry's module
	Dir     string // as seen from the root module
}

// installedModules reads what init has left in a root module's folder. Where
// TF_DATA_DIR has put it elsewhere it is not found.
func (c Configuration) installedModules(dir string) (map[string]installedModule, error) {
	name := filepath.Join(dir, ".terraform", "modules", "modules.json")
	content, err := readRegular(c.Fs, name, maxHCL)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var document struct{ Modules []installedModule }
	if err := json.Unmarshal(content, &document); err != nil {
		return nil, fmt.Errorf("%s: %w: remove it, and run `%s get`", name, err, c.client())
	}
	modules := make(map[string]installedModule, len(document.Modules))
	for _, m := range document.Modules {
		modules[m.Key] = m
	}
	return modules, nil
}

// serves tells whether the module is still what the call asks for. Only of a
// registry's modules is that known: other sources are noted in another form than
// they are written in.
func (m installedModule) serves(call moduleCall) bool {
	if _, err := tfaddr.ParseModuleSource(call.source); err != nil {
		return true
	}
	if m.Source != call.source && !strings.HasSuffix(m.Source, "/"+call.source) {
		return false
	}
	v, err := version.NewVersion(m.Version)
	if err != nil {
		return false
	}
	// Of modules, unlike of providers, clients compare versions as go-version does.
	wanted, err := version.NewConstraint(call.version)
	return err != nil || wanted.Check(v) // nothing is no constraint, nor is an expression
}
