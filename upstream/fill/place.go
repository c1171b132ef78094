package fill

import (
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
)

// A place is where in the tree the files of a provider lie. Folders may be there
// or not; they are made with the first file.
type place struct {
	address   address.Address
	providers index.Part
	keys      index.Part
	dir       string // of the provider, in providers
	keysFile  string // of the namespace, in keys
}

// place finds the folders of a provider by their meaning, since they may have
// been made by hand: beside ACME the index would take acme for a second folder
// of the same address.
func (f *Filler) place(a address.Address) (*place, error) {
	tree, err := f.tree.get()
	if err != nil {
		return nil, storageError(err)
	}
	hostname := a.Hostname.ForDisplay() // as `terraform providers mirror` writes it
	isHostname := func(name string) bool {
		h, err := address.ParseHostname(name)
		return err == nil && h == a.Hostname
	}
	isNamespace := func(name string) bool {
		parsed, err := address.ParseProvider("", name, a.Name)
		return err == nil && parsed.Namespace == a.Namespace
	}
	isType := func(name string) bool {
		parsed, err := address.ParseProvider("", a.Namespace, name)
		return err == nil && parsed.Name == a.Name
	}
	isKeys := func(name string) bool {
		namespace, ok := strings.CutSuffix(name, ".asc")
		return ok && isNamespace(namespace)
	}
	p := &place{address: a, providers: tree.Providers, keys: tree.Keys}
	p.dir = find(p.providers, ".", hostname, isHostname)
	p.dir = find(p.providers, p.dir, a.Namespace, isNamespace)
	p.dir = find(p.providers, p.dir, a.Name, isType)
	p.keysFile = find(p.keys, ".", hostname, isHostname)
	p.keysFile = find(p.keys, p.keysFile, a.Namespace+".asc", isKeys)
	return p, nil
}

// find is the path of what is called name in a folder, or is the same written
// otherwise.
func find(in index.Part, dir, name string, same func(string) bool) string {
	if _, err := in.Fs.Stat(path.Join(in.Dir, dir, name)); errors.Is(err, fs.ErrNotExist) {
		entries, _ := afero.ReadDir(in.Fs, path.Join(in.Dir, dir))
		for _, e := range entries {
			if same(e.Name()) {
				return path.Join(dir, e.Name())
			}
		}
	}
	return path.Join(dir, name)
}

// folders are those in which files of a version may lie. Of what is in both the
// index takes that of the first.
func (p *place) folders(version string) []string {
	return []string{path.Join(p.dir, version), p.dir}
}

// locate is the path of a file of a version; empty when there is none.
func (p *place) locate(version, name string) string {
	for _, dir := range p.folders(version) {
		name := path.Join(dir, name)
		if info, err := p.providers.Fs.Stat(path.Join(p.providers.Dir, name)); err == nil && info.Mode().IsRegular() {
			return name
		}
	}
	return ""
}

// packages are the paths of all packages of a version that are there.
func (p *place) packages(version string) (paths []string) {
	for _, dir := range p.folders(version) {
		entries, _ := afero.ReadDir(p.providers.Fs, path.Join(p.providers.Dir, dir))
		for _, e := range entries {
			if id, ok := parsePackageName(p.address.Name, e.Name()); ok && id.version == version {
				paths = append(paths, path.Join(dir, e.Name()))
			}
		}
	}
	return paths
}

// unpacked are the platforms of a version that are there as folders, which the
// index packs.
func (p *place) unpacked(version string) (names []string) {
	entries, _ := afero.ReadDir(p.providers.Fs, path.Join(p.providers.Dir, p.dir, version))
	for _, e := range entries {
		os, arch, _ := strings.Cut(e.Name(), "_")
		if _, err := address.ParsePlatform(os, arch); err != nil {
			continue
		}
		files, _ := afero.ReadDir(p.providers.Fs, path.Join(p.providers.Dir, p.dir, version, e.Name()))
		if slices.ContainsFunc(files, func(f fs.FileInfo) bool { return strings.HasPrefix(f.Name(), "terraform-provider-"+p.address.Name) }) {
			names = append(names, e.Name())
		}
	}
	return names
}

// A packageName is what the name of a package's file says.
type packageName struct {
	version  string
	platform address.Platform
}

// parsePackageName reads terraform-provider-TYPE_VERSION_OS_ARCH.zip.
func parsePackageName(typ, name string) (n packageName, ok bool) {
	rest, ours := strings.CutPrefix(name, "terraform-provider-"+typ+"_")
	rest, zip := strings.CutSuffix(rest, ".zip")
	parts := strings.Split(rest, "_")
	if !ours || !zip || len(parts) != 3 {
		return n, false
	}
	platform, err := address.ParsePlatform(parts[1], parts[2])
	if err != nil {
		return n, false
	}
	_, err = address.ParseProviderVersion(parts[0])
	return packageName{parts[0], platform}, err == nil
}

// maxHeld bounds the small files of a tree, as the index does.
const maxHeld = 1 << 20

// read returns a small file of a part; nil when there is none.
func read(in index.Part, name string, limit int64) ([]byte, error) {
	name = path.Join(in.Dir, name)
	info, err := in.Fs.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil || !info.Mode().IsRegular() { // to open a named pipe would wait for its writer
		return nil, ErrNotWritable
	}
	f, err := in.Fs.Open(name)
	if err != nil {
		return nil, storageError(err)
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, limit+1))
	switch {
	case err != nil:
		return nil, storageError(err)
	case int64(len(content)) > limit:
		return nil, ErrConflict
	}
	return content, nil
}
