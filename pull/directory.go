package pull

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	version "github.com/hashicorp/go-version"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index/keys"
	"github.com/caddy-terraform/caddy-terraform-registry/registryhcl"
	"github.com/caddy-terraform/caddy-terraform-registry/signing"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A directory is a provider's directory on the disk, and the keys file of its
// namespace. Both may be missing; they are made with the first file.
//
// The index's snapshot answers as much as it can. The directory is read only where the
// snapshot may be out of date: before files are written, since other instances and the
// operator write there, too, and for files that were added since the last scan.
type directory struct {
	address   address.Address
	tree      tree.Tree
	providers tree.Part
	keys      tree.Part
	path      string // in providers
	keysFile  string // in keys

	requireKeys func() error // called if there is no such file
}

// folder finds the folder of a provider or module by the meaning of its name, since it
// may have been made by hand. It returns the part of the tree, and the path in it. The error is
// ErrUnread if the part is empty although the index has versions in it.
func (f *Filler) folder(a address.Address) (files tree.Tree, in tree.Part, dir string, err error) {
	if files, err = f.opener.Tree(); err != nil {
		return files, in, "", unread(err)
	}
	in, dir, err = files.Folder(a).Locate()
	return files, in, dir, unread(err)
}

// withdrawn returns ErrWithdrawn if a registry.hcl in the tree withdraws a version.
// While the file cannot be read, no version is fetched or served, since it may be
// withdrawn.
func (f *Filler) withdrawn(a address.Address, v *version.Version) error {
	m, _, err := f.metadata(a)
	if err == nil && m.WithdrawnVersion(v) != nil {
		return ErrWithdrawn
	}
	return err
}

// metadata reads the registry.hcl of a provider or module.
func (f *Filler) metadata(a address.Address) (m registryhcl.File, problems []registryhcl.Problem, err error) {
	files, err := f.opener.Tree()
	if err != nil {
		return m, nil, unread(err)
	}
	folder := files.Folder(a)
	if _, _, err := folder.Locate(); err != nil {
		return m, nil, unread(err)
	}
	content, err := folder.ReadMetadata()
	if err != nil {
		return m, nil, unread(fmt.Errorf("%w: %s: %w", tree.ErrNotWritable, tree.MetadataName, err))
	}
	m, problems = registryhcl.Parse(content)
	return m, problems, nil
}

// directory finds the directory of a provider, and its keys.
func (f *Filler) directory(a address.Address) (*directory, error) {
	files, in, dir, err := f.folder(a)
	if err != nil {
		return nil, err
	}
	d := &directory{address: a, tree: files, providers: in, path: dir, requireKeys: func() error {
		return keys.Require(f.ctx, f.options.KeyCopies, a.Hostname, a.Namespace)
	}}
	d.keys, d.keysFile, err = keys.Locate(files, a.Hostname, a.Namespace)
	return d, unread(err)
}

// findAgain looks for the folder of an address again, before something is written into it: a
// package may have taken long to arrive. The error is ErrUnread if the part of the tree has
// become empty meanwhile.
func findAgain(files tree.Tree, a address.Address) error {
	_, _, err := files.Folder(a).Locate()
	return unread(err)
}

// folder returns the path of a version's folder.
func (d *directory) folder(version string) string { return path.Join(d.path, version) }

// list returns the entries of a folder.
func (d *directory) list(dir string) ([]tree.Entry, error) {
	entries, err := d.providers.Entries(dir)
	return entries, unread(err)
}

// A listing has the entries of all folders in which a version may have files, read at
// the same time. An entry that cannot be read is an error, and nothing is fetched
// instead of it: only a file without an entry is missing.
type listing struct {
	*directory
	version string
	own     listedFolder // the version's, which takes precedence
	beside  listedFolder // the provider's
}

type listedFolder struct {
	dir     string
	entries []tree.Entry
	partial bool // its files are being uploaded one by one, or removed
}

// look lists the folders of a version.
func (d *directory) look(version string) (l listing, err error) {
	l = listing{directory: d, version: version, own: listedFolder{dir: d.folder(version)}, beside: listedFolder{dir: d.path}}
	if l.beside.entries, err = d.list(d.path); err != nil {
		return l, err
	}
	e := l.beside.entry(version)
	if e == nil {
		return l, nil
	}
	if e.Bad != nil || !e.IsDir() {
		return l, unread(e.Err())
	}
	if l.own.entries, err = d.list(l.own.dir); err != nil {
		return l, err
	}
	l.own.partial = tree.IsIncompleteUpload(d.address.Name, version, l.own.entries)
	return l, nil
}

// entry returns the entry with a name; nil if there is none.
func (f listedFolder) entry(name string) *tree.Entry {
	i := slices.IndexFunc(f.entries, func(e tree.Entry) bool { return e.Name == name })
	if i < 0 {
		return nil
	}
	return &f.entries[i]
}

// locate returns the path of a file by its name; empty if there is none. If both the
// version's folder and the provider's have the file, the index uses the version's,
// unless that folder is still being uploaded. An empty file does not count: it may be a
// name that another process is about to write to.
func (l listing) locate(name string) (string, error) {
	for _, in := range []listedFolder{l.own, l.beside} {
		e := in.entry(name)
		if e == nil || in.partial {
			continue
		}
		if e.Bad != nil {
			return "", unread(e.Err())
		}
		if e.IsFile() && e.Info.Size() > 0 {
			return e.Path(), nil
		}
	}
	return "", nil
}

// locate returns the path of a file of a version; see listing.locate.
func (d *directory) locate(version, name string) (string, error) {
	l, err := d.look(version)
	if err != nil {
		return "", err
	}
	return l.locate(name)
}

// packages returns the paths of all packages.
func (l listing) packages() (paths []string) {
	for _, in := range []listedFolder{l.own, l.beside} {
		for _, e := range in.entries {
			file, err := address.ParseReleaseFile(l.address.Name, e.Name)
			if err == nil && file.Kind == address.PackageFile && file.Version.String() == l.version {
				paths = append(paths, e.Path())
			}
		}
	}
	return paths
}

// unpacked returns the platforms with an unpacked package. The index packs such
// packages.
func (l listing) unpacked() (platforms []string, err error) {
	for _, e := range l.own.entries {
		if _, err := address.ParsePlatformName(e.Name); err != nil {
			continue
		}
		if e.Bad != nil {
			return nil, unread(e.Err())
		}
		if !e.IsDir() {
			continue
		}
		files, err := l.list(e.Path())
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(files, func(f tree.Entry) bool { return strings.HasPrefix(f.Name, "terraform-provider-"+l.address.Name) }) {
			platforms = append(platforms, e.Name)
		}
	}
	return platforms, nil
}

// documents are the files beside the packages of a version. They may be in the
// provider's directory or in the version's folder.
type documents struct {
	version                        string
	dir                            string // of SHA256SUMS, or where it would be
	packages                       string // the folder of further packages
	apart                          bool   // the signature is in another folder
	checksums, signature, manifest []byte // nil if missing
}

func (d *directory) documents(version string) (files documents, err error) {
	files.version, files.dir, files.packages = version, d.path, d.path
	l, err := d.look(version)
	if err != nil {
		return files, err
	}
	if names := l.packages(); len(names) > 0 {
		files.packages = path.Dir(names[0])
	}
	var signature string
	for _, file := range []struct {
		name    string
		content *[]byte
		dir     *string
	}{
		{address.ChecksumsName(d.address.Name, version), &files.checksums, &files.dir},
		{address.SignatureName(d.address.Name, version), &files.signature, &signature},
		{address.ManifestName(d.address.Name, version), &files.manifest, new(string)},
	} {
		name, err := l.locate(file.name)
		if err != nil {
			return files, err
		}
		if name == "" {
			continue
		}
		*file.dir = path.Dir(name)
		if *file.content, err = read(d.providers, name, tree.MaxDocument); err != nil {
			return files, err
		}
	}
	files.apart = signature != "" && signature != files.dir
	return files, nil
}

// release returns the release of signed documents; nil if they are not signed by the
// namespace's keys. Only its packages are then needed from the origin, and no other
// release of the same version can replace it.
func (files documents) release(a address.Address, keys namespaceKeys) *upstream.Release {
	if files.checksums == nil || files.signature == nil || keys.ring == nil {
		return nil
	}
	if _, err := keys.ring.Verify(files.checksums, files.signature); err != nil {
		return nil // the origin's release may differ: reconcile reports it
	}
	return signedRelease(a, files.version, files.checksums, files.signature, files.manifest, keys.ring.Keys())
}

// signedRelease makes a release of verified documents; nil if SHA256SUMS is broken.
func signedRelease(a address.Address, version string, checksums, signature, manifest []byte, keys []signing.PublicKey) *upstream.Release {
	sums, err := wire.DecodeChecksums(checksums)
	if err != nil {
		return nil
	}
	r := &upstream.Release{
		Address: a, Version: version, Checksums: checksums, Signature: signature, Manifest: manifest, Keys: keys, Sums: sums,
	}
	r.Packages = r.ListedPackages()
	return r
}

// lists reports whether SHA256SUMS, if there is one, lists a package with a sha256.
func (files documents) lists(name string, sum wire.SHA256) bool {
	if files.checksums == nil {
		return true
	}
	sums, err := wire.DecodeChecksums(files.checksums)
	listed, ok := sums[name]
	return err == nil && ok && listed == sum
}

// read reads a small file; nil if there is none. The error is ErrConflict if the file
// is too large, and otherwise ErrUnread.
func read(in tree.Part, name string, limit int64) ([]byte, error) {
	content, err := in.ReadFile(name, limit)
	if errors.Is(err, tree.ErrDocumentTooLarge) {
		return nil, ErrConflict
	}
	return content, unread(err)
}
