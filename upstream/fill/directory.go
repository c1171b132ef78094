package fill

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/signing"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A directory is a provider's directory on the disk, and the keys file of its
// namespace. Both may be missing; they are made with the first file.
//
// The index's snapshot answers what it can. The directory is read where the
// snapshot may be behind: before something is written, since other instances and
// the operator write there too, and for what has come in since the last scan.
type directory struct {
	address   address.Address
	tree      index.Tree
	providers index.Part
	keys      index.Part
	path      string // in providers
	keysFile  string // in keys

	requireKeys func() error // is asked where there is no such file
}

// folder finds the folder of a provider or module by what its name means, since it may
// have been made by hand: the part of the tree, and the path in it.
func (f *Filler) folder(a address.Address) (tree index.Tree, in index.Part, dir string, err error) {
	if tree, err = f.opener.Tree(); err != nil {
		return tree, in, "", index.StorageError(err)
	}
	in, dir, err = tree.Folder(a).In()
	return tree, in, dir, err
}

// directory finds the directory of a provider, and its keys.
func (f *Filler) directory(a address.Address) (*directory, error) {
	tree, in, dir, err := f.folder(a)
	if err != nil {
		return nil, err
	}
	d := &directory{address: a, tree: tree, providers: in, path: dir, requireKeys: func() error {
		return index.RequireKeys(f.ctx, f.options.KeyCopies, a.Hostname, a.Namespace)
	}}
	d.keys, d.keysFile, err = tree.KeysFile(a.Hostname, a.Namespace)
	return d, err
}

// folder is that of a version.
func (d *directory) folder(version string) string { return path.Join(d.path, version) }

// list returns what is in a folder. What cannot be read of a disk is not there, but what
// the store of a bucket does not give may be.
func (d *directory) list(dir string) ([]fs.FileInfo, error) {
	entries, err := d.providers.ReadDir(dir)
	if errors.Is(err, index.ErrStore) {
		return nil, err
	}
	return entries, nil
}

// locate returns the path of a file of a version; empty if there is none. If it is both in
// the version's folder and in the provider's, the index takes the former, unless that is
// still being uploaded.
func (d *directory) locate(version, name string) (string, error) {
	for _, dir := range []string{d.folder(version), d.path} {
		name := path.Join(dir, name)
		info, err := d.providers.Stat(name)
		switch {
		case errors.Is(err, index.ErrStore):
			return "", err
		case err != nil || !info.Mode().IsRegular():
			continue
		case dir == d.path:
			return name, nil
		}
		incomplete, err := d.incomplete(version)
		if err != nil {
			return "", err
		}
		if !incomplete {
			return name, nil
		}
	}
	return "", nil
}

// incomplete reports whether the folder of a version is still being uploaded to a bucket,
// or removed from it.
func (d *directory) incomplete(version string) (bool, error) {
	if !d.providers.InBucket() {
		return false, nil
	}
	return d.providers.IncompleteUpload(d.folder(version), address.ChecksumsName(d.address.Name, version))
}

// packages returns the paths of all packages of a version.
func (d *directory) packages(version string) (paths []string, err error) {
	for _, dir := range []string{d.folder(version), d.path} {
		entries, err := d.list(dir)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			file, err := address.ParseReleaseFile(d.address.Name, e.Name())
			if err == nil && file.Kind == address.PackageFile && file.Version.String() == version {
				paths = append(paths, path.Join(dir, e.Name()))
			}
		}
	}
	return paths, nil
}

// unpacked returns the platforms of which a version has an unpacked package, which
// the index packs.
func (d *directory) unpacked(version string) (platforms []string, err error) {
	entries, err := d.list(d.folder(version))
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		os, arch, _ := strings.Cut(e.Name(), "_")
		if _, err := address.ParsePlatform(os, arch); err != nil || !e.IsDir() && e.Mode()&fs.ModeSymlink == 0 {
			continue
		}
		files, err := d.list(path.Join(d.folder(version), e.Name()))
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(files, func(f fs.FileInfo) bool { return strings.HasPrefix(f.Name(), "terraform-provider-"+d.address.Name) }) {
			platforms = append(platforms, e.Name())
		}
	}
	return platforms, nil
}

// documents are the files beside the packages of a version. They may lie in the
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
	names, err := d.packages(version)
	if err != nil {
		return files, err
	}
	if len(names) > 0 {
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
		name, err := d.locate(version, file.name)
		if err != nil {
			return files, err
		}
		if name == "" {
			continue
		}
		*file.dir = path.Dir(name)
		if *file.content, err = read(d.providers, name, index.MaxDocument); err != nil {
			return files, err
		}
	}
	files.apart = signature != "" && signature != files.dir
	return files, nil
}

// release returns the release that signed documents are of; nil if they are not
// signed by the namespace's keys. Only its packages are needed from the origin then,
// and no other release of the same version can take its place.
func (files documents) release(a address.Address, keys namespaceKeys) *upstream.Release {
	if files.checksums == nil || files.signature == nil || keys.ring == nil {
		return nil
	}
	if _, err := keys.ring.Verify(files.checksums, files.signature); err != nil {
		return nil // the origin's may be another one: reconcile says so
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

// keysMarker begins the keys files that a Filler writes. Without it a file is its
// operator's, and pins the keys of a namespace.
const (
	keysMarker = "Kept by the registry: "
	keysHeader = keysMarker + "these keys came from the origin. Delete this line to pin them, so that no others count.\n\n"
)

// namespaceKeys are the keys of a namespace that the tree has.
type namespaceKeys struct {
	ring     *signing.Keyring // nil: there is no file, or it says that the namespace is not signed
	pinned   bool
	unsigned bool // it says so
	content  []byte
}

// readKeys reads the keys file of the namespace. A pinned file without a usable
// key lets nothing in: its purpose is to keep other keys out. So does a file that is
// gone, if the namespace had keys: the origin's must not take their place.
func (d *directory) readKeys() (k namespaceKeys, err error) {
	if k.content, err = read(d.keys, d.keysFile, index.MaxDocument); err != nil {
		return k, err
	}
	if k.content == nil {
		return k, d.requireKeys()
	}
	if k.unsigned = index.SaysUnsigned(k.content); k.unsigned {
		return k, nil
	}
	ring, _ := signing.ReadKeyring(k.content) // the index reports keys that cannot be used
	k.ring, k.pinned = ring, !bytes.HasPrefix(k.content, []byte(keysMarker))
	return k, nil
}

// pin is the keyring that alone counts; nil if the origin's keys do.
func (k namespaceKeys) pin() *signing.Keyring {
	if k.pinned {
		return k.ring
	}
	return nil
}

// known reports whether the namespace has any keys.
func (k namespaceKeys) known() bool { return k.ring != nil && len(k.ring.Keys()) > 0 }

// with returns the file with further keys, or nil if it has them all, or wants none. The
// keys in it stay: releases in the tree may be signed by them.
func (k namespaceKeys) with(keys []signing.PublicKey) ([]byte, error) {
	if k.unsigned {
		return nil, nil
	}
	known := make(map[string]bool) // all that the file will have
	if k.ring != nil {
		for _, key := range k.ring.Keys() {
			known[key.Armor] = true
		}
	}
	file := bytes.NewBuffer(bytes.Clone(k.content))
	if file.Len() == 0 {
		file.WriteString(keysHeader)
	}
	added := false
	for _, key := range keys {
		if !known[key.Armor] {
			known[key.Armor], added = true, true
			fmt.Fprintf(file, "%s\n", bytes.TrimSpace([]byte(key.Armor)))
		}
	}
	switch {
	case !added:
		return nil, nil
	case file.Len() > index.MaxDocument || len(known) > signing.MaxKeys:
		return nil, fmt.Errorf("%w: the namespace has had too many keys, remove those in its keys file that are not needed", ErrConflict)
	}
	return file.Bytes(), nil
}

// read returns a small file; nil if there is none.
func read(in index.Part, name string, limit int64) ([]byte, error) {
	content, err := in.ReadFile(name, limit)
	if errors.Is(err, index.ErrDocumentTooLarge) {
		return nil, ErrConflict
	}
	return content, err
}
