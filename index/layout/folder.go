package layout

import (
	"path"
	"slices"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// A Folder is a directory whose path is an address, or the beginning of one.
type Folder struct {
	Part     tree.Part
	Dir      string // in its part
	Report   string // the path a report names
	Hostname string // empty without HOSTNAME
	Names    []string
	Address  address.Address // once the path has been parsed
}

// Providers returns the folder in which the folders of providers are.
func Providers(t tree.Tree) Folder { return Folder{Part: t.Providers, Dir: ".", Report: "providers"} }

// Modules returns the folder in which the folders of modules are.
func Modules(t tree.Tree) Folder { return Folder{Part: t.Modules, Dir: ".", Report: "modules"} }

// kind returns the part of the tree, providers or modules.
func (f *Folder) kind() string {
	kind, _, _ := strings.Cut(f.Report, "/")
	return kind
}

// IsModule reports whether the path is the address of a module, or the beginning of one.
func (f *Folder) IsModule() bool { return f.kind() == "modules" }

// IsWhole reports whether the path has all names of an address.
func (f *Folder) IsWhole() bool {
	if f.IsModule() {
		return len(f.Names) == 3
	}
	return len(f.Names) == 2
}

// ParseAddress parses a path that is whole.
func (f *Folder) ParseAddress() (address.Address, error) {
	if f.IsModule() {
		return address.ParseModule(f.Hostname, f.Names[0], f.Names[1], f.Names[2])
	}
	return address.ParseProvider(f.Hostname, f.Names[0], f.Names[1])
}

// Compare orders folders as a walk finds them.
func (f *Folder) Compare(other Folder) int {
	return slices.Compare(tree.SplitPath(f.Report), tree.SplitPath(other.Report))
}

// IsNormal reports whether the folder's path is the address as clients compare it, with the
// hostname as users write it or as clients request it.
func (f *Folder) IsNormal() bool {
	a := f.Address
	names := []string{a.Namespace, a.Name}
	if a.IsModule() {
		names = append(names, a.System)
	}
	return slices.Equal(f.Names, names) && (f.Hostname == string(a.Hostname) || f.Hostname == address.DisplayHostname(a.Hostname))
}

// Below returns the folder of that name in f, on the way to an address.
func (f Folder) Below(name string) Folder {
	next := Folder{Part: f.Part, Dir: tree.InFolder(f.Dir, name), Report: path.Join(f.Report, name), Hostname: f.Hostname, Names: f.Names}
	if len(f.Names) == 0 && f.Hostname == "" && address.IsHostname(name) {
		next.Hostname = name
	} else {
		next.Names = append(f.Names[:len(f.Names):len(f.Names)], name)
	}
	return next
}

// FolderOf returns the folder of an address below f in which a path of a report lies. ok reports
// whether the path lies in one.
func (f Folder) FolderOf(report string) (found Folder, ok bool) {
	if !tree.IsBelow(report, f.Report) {
		return f, false
	}
	found = f
	for _, name := range tree.SplitPath(strings.TrimPrefix(report, f.Report)) {
		if !found.IsWhole() {
			found = found.Below(name)
		}
	}
	if !found.IsWhole() {
		return found, false
	}
	var err error
	found.Address, err = found.ParseAddress()
	return found, err == nil
}

// IsOnWay reports whether a path lies at or below a folder, in any spelling.
func IsOnWay(folder, report string) bool {
	names, above := strings.Split(report, "/"), strings.Split(folder, "/")
	return len(above) <= len(names) && slices.EqualFunc(above, names[:len(above)], address.SameName)
}

// Covers reports whether an address may lie in a folder whose path is the beginning of an
// address.
func (f *Folder) Covers(a address.Address) bool {
	if f.IsModule() != a.IsModule() {
		return false
	}
	if f.Hostname != "" {
		if hostname, err := address.ParseHostname(f.Hostname); err != nil || hostname != a.Hostname {
			return false
		}
	} else if len(f.Names) > 0 && a.Hostname != "" {
		return false
	}
	for i, name := range []string{a.Namespace, a.Name, a.System} {
		if i < len(f.Names) && !strings.EqualFold(f.Names[i], name) {
			return false
		}
	}
	return true
}
