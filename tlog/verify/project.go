package verify

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/lockfile"
)

// A Project has the files that init has left in the folder of a configuration.
type Project struct {
	Folder    string
	Providers []Provider
	Modules   []Module
	Strays    []lockfile.Stray
}

// A Provider is locked or, by clients without lock files, installed.
type Provider struct {
	Address  address.Address
	Version  string
	Hashes   []string // of the lock file
	From     string   // FILE:LINE, or the folder in which it is installed
	Packages []InstalledPackage
}

// An InstalledPackage is a provider's package that lies unpacked in a folder.
type InstalledPackage struct {
	Platform address.Platform
	Folder   string
}

// A Module is an installed package of a module, and the call that it was installed for.
type Module struct {
	lockfile.InstalledCall
	Folder string // of the package
}

// DefaultData is the folder in which clients keep what they have installed, unless TF_DATA_DIR
// names another one.
const DefaultData = ".terraform"

// ReadProject reads what init has left in a folder. data is DefaultData or the value of
// TF_DATA_DIR. known is false if init has left nothing.
func ReadProject(folder, data string) (p Project, known bool, err error) {
	p.Folder = folder
	if !filepath.IsAbs(data) {
		data = filepath.Join(folder, data)
	}
	locked, err := lockfile.Read(filepath.Join(folder, lockfile.Name))
	hasLock := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return p, false, err
	}
	installed, err := installedProviders(data)
	if err != nil {
		return p, false, err
	}
	for _, l := range locked {
		if l.Legacy {
			continue // it is in no registry
		}
		one := Provider{Address: l.Address, Version: l.Version, Hashes: l.Hashes, From: l.From}
		for _, i := range installed {
			if i.Address == l.Address && i.Version == l.Version {
				one.Packages = i.Packages
			}
		}
		p.Providers = append(p.Providers, one)
	}
	if !hasLock { // Terraform 0.13 writes none
		p.Providers = installed
	}
	calls, strays, err := lockfile.ReadInstalled(folder, data)
	hasModules := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return p, false, err
	}
	for _, c := range calls {
		p.Modules = append(p.Modules, Module{c, filepath.Join(data, "modules", c.Key)})
	}
	p.Strays = strays
	return p, hasLock || hasModules || len(installed) > 0, nil
}

// installedProviders returns the providers in a client's folder: HOSTNAME/NAMESPACE/TYPE/
// VERSION/OS_ARCH in providers or, by Terraform 0.13, in plugins. The last folder may be a
// link into a plugin cache.
func installedProviders(data string) (all []Provider, err error) {
	for _, name := range []string{"providers", "plugins"} {
		root := filepath.Join(data, name)
		paths := []string{""}
		for range 5 {
			var below []string
			for _, path := range paths {
				names, err := folders(filepath.Join(root, path))
				if err != nil {
					return nil, err
				}
				for _, name := range names {
					below = append(below, filepath.Join(path, name))
				}
			}
			paths = below
		}
		for _, path := range paths {
			parts := strings.Split(filepath.ToSlash(path), "/")
			a, notAddress := address.ParseProvider(parts[0], parts[1], parts[2])
			v, notVersion := address.ParseProviderVersion(parts[3])
			platform, notPlatform := address.ParsePlatformName(parts[4])
			if notAddress != nil || notVersion != nil || notPlatform != nil {
				continue // no client looks there
			}
			folder := InstalledPackage{platform, filepath.Join(root, path)}
			if last := len(all) - 1; last >= 0 && all[last].Address == a && all[last].Version == v.String() {
				all[last].Packages = append(all[last].Packages, folder)
				continue
			}
			all = append(all, Provider{Address: a, Version: v.String(), From: filepath.Join(root, path), Packages: []InstalledPackage{folder}})
		}
	}
	return all, nil
}

// folders returns the names of the folders in a folder, and of links to folders.
func folders(dir string) (names []string, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		isFolder := e.IsDir()
		if e.Type()&fs.ModeSymlink != 0 {
			info, err := os.Stat(filepath.Join(dir, e.Name()))
			if errors.Is(err, fs.ErrNotExist) {
				continue // the plugin cache has gone: init will fill it again
			}
			if err != nil {
				return nil, err
			}
			isFolder = info.IsDir()
		}
		if isFolder {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// FindProjects returns the folders below root, and root itself, in which init has left
// something. It follows no links, and does not look into the folders of clients.
func FindProjects(root, data string) (found []string, err error) {
	err = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case !e.IsDir():
			return nil
		case path != root && (e.Name() == ".git" || e.Name() == DefaultData || isData(path, data)):
			return filepath.SkipDir
		}
		names := []string{filepath.Join(path, lockfile.Name)}
		if !filepath.IsAbs(data) || path == root { // an absolute one belongs to the folder in which the client runs
			in := data
			if !filepath.IsAbs(in) {
				in = filepath.Join(path, in)
			}
			names = append(names, filepath.Join(in, "modules", "modules.json"), filepath.Join(in, "providers"), filepath.Join(in, "plugins"))
		}
		for _, name := range names {
			_, err := os.Stat(name)
			if err == nil {
				found = append(found, path)
				return nil
			}
			if !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("looking for projects: %w", err)
	}
	return found, nil
}

// isData reports whether a path may be the folder of a client: data is absolute, or relative to
// the folder of a configuration.
func isData(path, data string) bool {
	path, err := filepath.Abs(path)
	if filepath.IsAbs(data) {
		return err == nil && path == filepath.Clean(data)
	}
	return err == nil && strings.HasSuffix(path, string(filepath.Separator)+filepath.Clean(data))
}
