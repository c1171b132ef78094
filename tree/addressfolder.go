package tree

import (
	"bytes"
	"cmp"
	"errors"
	"io/fs"
	"path"
	"slices"

	version "github.com/hashicorp/go-version"
	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// An AddressFolder is the folder of a provider or module in a tree.
type AddressFolder struct {
	Address address.Address

	// Path from the root, with slashes; for operators.
	Path string

	// Versions in the folder, whether they can be offered or not, the newest first.
	Versions []*version.Version

	part Part
	dir  string
	err  error // of the disk, the store or the tree's Guard: it is not known which folder it is
}

// NewAddressFolder returns a folder that has been found in a part of a tree.
func NewAddressFolder(a address.Address, report string, part Part, dir string, versions []*version.Version) AddressFolder {
	return AddressFolder{Address: a, Path: report, Versions: versions, part: part, dir: dir}
}

// ReportedKeys is the folder of keys, as Index.Changed takes it.
const ReportedKeys = "keys"

// ReportedFolder returns the folder of an address in its normal spelling, as
// Index.Changed takes it: providers/registry.terraform.io/hashicorp/aws.
func ReportedFolder(a address.Address) string {
	root, names := "providers", []string{a.Namespace, a.Name}
	if a.IsModule() {
		root, names = "modules", append(names, a.System)
	}
	if a.Hostname != "" {
		root = path.Join(root, address.DisplayHostname(a.Hostname))
	}
	return path.Join(root, path.Join(names...))
}

// A Guard tells whether folders that are not in a part of a tree are absent. The error is a
// StorageError that says why they may be there all the same. report is the path of the part in
// a report, and top are the names in it, at the top.
type Guard func(part Part, report string, top []string) error

// Guarded returns the tree for code that writes into it, and takes what it does not find there
// for absent. Folder asks the Guard about an address if there is neither its folder nor any
// above it. Otherwise the part is not empty, and a Guard has nothing to say.
func (t Tree) Guarded(by Guard) Tree {
	t.guard = by
	return t
}

// Folder returns the folder of an address, whether it exists or not. If the tree has several
// spellings of the folder, such as ACME and acme, it is the folder that a scan offers; a
// scan would report a second folder of one address. The result has no Versions, since Folder
// does not read the folder.
func (t Tree) Folder(a address.Address) AddressFolder {
	f := AddressFolder{Address: a, part: t.Providers}
	root, names := "providers", []string{a.Namespace, a.Name}
	if a.IsModule() {
		f.part, root, names = t.Modules, "modules", append(names, a.System)
	}
	s := spellingFinder{part: f.part}
	f.dir = s.findAddress(a, s.findHostname(a.Hostname), names)
	if f.err = s.failed; f.err == nil && !s.found && t.guard != nil {
		f.err = t.guard(f.part, root, s.top)
	}
	f.Path = path.Join(root, f.dir)
	return f
}

// A spellingFinder finds folders whose names are spellings of a given name.
type spellingFinder struct {
	part   Part
	failed error // an error of the disk or the store: a folder that was not found may exist

	found bool     // the folder of the address is there, or one above it
	top   []string // the names at the top of the part, unless something was found without them
}

// findAddress returns the path of an address's folder below the folder of its hostname.
func (s *spellingFinder) findAddress(a address.Address, hostname string, names []string) string {
	normal := path.Join(hostname, path.Join(names...))
	if s.hasVersions(a, normal) { // without looking for other spellings
		s.found = true
		return normal
	}
	dirs := []string{hostname}
	for i, name := range names {
		var next []string
		for _, dir := range dirs {
			next = append(next, s.spellings(dir, name, func(spelling string) bool {
				spelled := slices.Clone(names)
				spelled[i] = spelling
				return isSpelled(a, spelled)
			})...)
		}
		if len(next) == 0 {
			next = []string{path.Join(dirs[0], name)}
		}
		dirs = next
	}
	slices.Sort(dirs)
	if i := slices.IndexFunc(dirs, func(dir string) bool { return s.hasVersions(a, dir) }); i >= 0 {
		return dirs[i]
	}
	if slices.Contains(dirs, normal) {
		return normal
	}
	return dirs[0]
}

// isSpelled reports whether names are the names of an address, in any spelling.
func isSpelled(a address.Address, names []string) bool {
	var parsed address.Address
	var err error
	if a.IsModule() {
		parsed, err = address.ParseModule("", names[0], names[1], names[2])
	} else {
		parsed, err = address.ParseProvider("", names[0], names[1])
	}
	return err == nil && parsed == a.WithHostname("")
}

// hasVersions reports whether an entry of an address's folder is named like a version or a
// package.
func (s *spellingFinder) hasVersions(a address.Address, dir string) bool {
	return slices.ContainsFunc(s.names(dir), func(name string) bool {
		if a.IsModule() {
			text, _, _, ok := address.ParseModuleFile(name)
			if !ok {
				text = name
			}
			_, err := address.ParseModuleVersion(text)
			return err == nil
		}
		_, err := address.ParseProviderVersion(name)
		f, fileErr := address.ParseReleaseFile(a.Name, name)
		return err == nil || fileErr == nil && f.Kind == address.PackageFile
	})
}

// findHostname returns the path of a hostname's folder.
func (s *spellingFinder) findHostname(hostname svchost.Hostname) string {
	if hostname == "" {
		return "."
	}
	// The spelling that `terraform providers mirror` writes.
	return s.find(".", address.DisplayHostname(hostname), func(name string) bool {
		h, err := address.ParseHostname(name)
		return err == nil && h == hostname
	})
}

// find returns the path of name in a directory, or of another spelling of it.
func (s *spellingFinder) find(dir, name string, same func(string) bool) string {
	exists, err := s.part.Exists(path.Join(dir, name))
	s.note(err)
	s.found = s.found || exists
	if !exists && err == nil {
		if found := s.spellings(dir, name, same); len(found) > 0 {
			return found[0]
		}
	}
	return path.Join(dir, name)
}

// spellings returns the paths of name and its other spellings in a directory: name first,
// then the others in order.
func (s *spellingFinder) spellings(dir, name string, same func(string) bool) (paths []string) {
	for _, spelling := range s.names(dir) {
		switch {
		case spelling == name:
			paths = slices.Insert(paths, 0, path.Join(dir, name))
		case same(spelling):
			paths = append(paths, path.Join(dir, spelling))
		}
	}
	s.found = s.found || len(paths) > 0
	return paths
}

// names returns the names in a directory, in order. A name that is not a directory has none.
func (s *spellingFinder) names(dir string) []string {
	names, err := s.part.Names(dir)
	if err != nil && !errors.Is(err, ErrNoFolder) {
		s.note(err)
	}
	if dir == "." {
		s.top = names
	}
	return names
}

// note remembers the first failure.
func (s *spellingFinder) note(err error) {
	if s.failed == nil {
		s.failed = err
	}
}

// Locate returns the part of the tree in which the folder lies, and its path there. The error is
// a StorageError if some folder on the way could not be read: another folder may be the
// folder of the address, and its files would seem to be missing. For the same reason it is the
// error of the tree's Guard.
func (f AddressFolder) Locate() (in Part, dir string, err error) { return f.part, f.dir, f.err }

// ReadMetadata returns the content of the folder's registry.hcl, or nil if it has none. If
// the store of a Bucket fails, the error is ErrStore. A dangling symlink is an error too. A
// file that is empty and not Abandoned is being written: the error is ErrReserved.
func (f AddressFolder) ReadMetadata() ([]byte, error) {
	if f.err != nil {
		return nil, f.err
	}
	name := path.Join(f.dir, MetadataName)
	content, err := f.part.ReadDocument(name)
	var bad *Finding
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, f.part.leadsNowhere(name)
	case errors.As(err, &bad) && bad.Reason == Empty:
		if info, err := f.part.Stat(name); err != nil || !Abandoned(info) {
			return nil, cmp.Or(StorageError(err), ErrReserved)
		}
		return nil, nil
	case errors.Is(err, ErrStore):
		return nil, err
	case err != nil:
		return nil, AsFinding(err)
	}
	return content, nil
}

// hasLink reports whether the folder's registry.hcl is a symlink. The error is a
// StorageError.
func (f AddressFolder) hasLink() (bool, error) {
	entries, err := f.part.Entries(f.dir)
	return slices.ContainsFunc(entries, func(e Entry) bool { return e.Name == MetadataName && e.Link }), err
}

// ErrMetadataChanged means that another process has changed a registry.hcl meanwhile.
var ErrMetadataChanged = errors.New("it has changed meanwhile: run the command again")

// WriteMetadata replaces the content of the folder's registry.hcl, as a whole or not at all,
// if the file still has the content before. If content is empty, the file is removed, since
// an empty file may be a copy that has just begun.
func (f AddressFolder) WriteMetadata(before, content []byte) error {
	name := path.Join(f.dir, MetadataName)
	if isLink, err := f.hasLink(); err != nil {
		return err
	} else if isLink {
		return errors.New("it is a symlink: change the file that it leads to")
	}
	now, err := f.ReadMetadata()
	if err != nil || !bytes.Equal(now, before) {
		return cmp.Or(err, ErrMetadataChanged)
	}
	if len(bytes.TrimSpace(content)) == 0 {
		return StorageError(f.part.Remove(name))
	}
	return f.part.WriteFile(name, content)
}
