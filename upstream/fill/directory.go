package fill

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/signing"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// openFor is how long an opened tree is shared. An open tree is a descriptor until
// the garbage collector closes it; with one for each request there would be as
// many as there are requests until then. A root that is replaced by a rename is
// noticed after it.
const openFor = time.Second

// An openTree opens the tree again and again.
type openTree struct {
	open func() (index.Tree, error)

	mutex   sync.Mutex
	last    index.Tree
	expires time.Time // zero: last is not open
}

// get returns a tree for one piece of work, to be kept no longer.
func (t *openTree) get() (index.Tree, error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	now := time.Now()
	if now.Before(t.expires) {
		return t.last, nil
	}
	tree, err := t.open()
	if err != nil {
		t.last, t.expires = index.Tree{}, time.Time{}
		return tree, err
	}
	t.last, t.expires = tree, now.Add(openFor)
	return tree, nil
}

// forget has the next get open the tree.
func (t *openTree) forget() {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.last, t.expires = index.Tree{}, time.Time{}
}

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
}

// directory finds the directory of a provider by what its name means, since it may
// have been made by hand: beside ACME the index would report acme as a second
// directory of the same address.
func (f *Filler) directory(a address.Address) (*directory, error) {
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
	isKeysFile := func(name string) bool {
		namespace, ok := strings.CutSuffix(name, ".asc")
		return ok && isNamespace(namespace)
	}
	d := &directory{address: a, tree: tree, providers: tree.Providers, keys: tree.Keys}
	d.path = find(d.providers, ".", hostname, isHostname)
	d.path = find(d.providers, d.path, a.Namespace, isNamespace)
	d.path = find(d.providers, d.path, a.Name, isType)
	d.keysFile = find(d.keys, ".", hostname, isHostname)
	d.keysFile = find(d.keys, d.keysFile, a.Namespace+".asc", isKeysFile)
	return d, nil
}

// find returns the path of name in a directory, or of another spelling of it.
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

// folders are those with the files of a version. If both have a file, the index
// takes that of the first.
func (d *directory) folders(version string) []string {
	return []string{path.Join(d.path, version), d.path}
}

// locate returns the path of a file of a version; empty if there is none.
func (d *directory) locate(version, name string) string {
	for _, dir := range d.folders(version) {
		name := path.Join(dir, name)
		if info, err := d.providers.Fs.Stat(path.Join(d.providers.Dir, name)); err == nil && info.Mode().IsRegular() {
			return name
		}
	}
	return ""
}

// packages returns the paths of all packages of a version.
func (d *directory) packages(version string) (paths []string) {
	for _, dir := range d.folders(version) {
		entries, _ := afero.ReadDir(d.providers.Fs, path.Join(d.providers.Dir, dir))
		for _, e := range entries {
			file, err := address.ParseReleaseFile(d.address.Name, e.Name())
			if err == nil && file.Kind == address.PackageFile && file.Version.String() == version {
				paths = append(paths, path.Join(dir, e.Name()))
			}
		}
	}
	return paths
}

// unpacked returns the platforms of which a version has an unpacked package, which
// the index packs.
func (d *directory) unpacked(version string) (platforms []string) {
	entries, _ := afero.ReadDir(d.providers.Fs, path.Join(d.providers.Dir, d.path, version))
	for _, e := range entries {
		os, arch, _ := strings.Cut(e.Name(), "_")
		if _, err := address.ParsePlatform(os, arch); err != nil {
			continue
		}
		files, _ := afero.ReadDir(d.providers.Fs, path.Join(d.providers.Dir, d.path, version, e.Name()))
		if slices.ContainsFunc(files, func(f fs.FileInfo) bool { return strings.HasPrefix(f.Name(), "terraform-provider-"+d.address.Name) }) {
			platforms = append(platforms, e.Name())
		}
	}
	return platforms
}

// digest returns the sha256 of a package, from the release as the index knows it,
// which may be nil, or by reading the file.
func (d *directory) digest(name string, present *index.Release) (sum wire.SHA256, err error) {
	if present != nil {
		for _, k := range present.Packages {
			if k.File.Path() != name {
				continue
			}
			if f, err := d.tree.OpenFile(k.File); err == nil { // it has not changed
				f.Close()
				return k.File.SHA256, nil
			}
		}
	}
	f, err := d.providers.Fs.Open(path.Join(d.providers.Dir, name))
	if err != nil {
		return sum, storageError(err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err = io.Copy(h, f); err != nil {
		return sum, storageError(err)
	}
	return wire.SHA256(h.Sum(nil)), nil
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
	if names := d.packages(version); len(names) > 0 {
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
		name := d.locate(version, file.name)
		if name == "" {
			continue
		}
		*file.dir = path.Dir(name)
		if *file.content, err = read(d.providers, name, maxDocument); err != nil {
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
	ring    *signing.Keyring // nil: there is no file
	pinned  bool
	content []byte
}

// readKeys reads the keys file of the namespace. A pinned file without a usable
// key lets nothing in: its purpose is to keep other keys out.
func (d *directory) readKeys() (k namespaceKeys, err error) {
	if k.content, err = read(d.keys, d.keysFile, maxDocument); err != nil || k.content == nil {
		return k, err
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

// with returns the file with further keys, or nil if it has them all. The keys in it
// stay: releases in the tree may be signed by them.
func (k namespaceKeys) with(keys []signing.PublicKey) ([]byte, error) {
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
	case file.Len() > maxDocument || len(known) > signing.MaxKeys:
		return nil, fmt.Errorf("%w: the namespace has had too many keys, remove those in its keys file that are not needed", ErrConflict)
	}
	return file.Bytes(), nil
}

// maxDocument bounds the small files of a tree, as the index does.
const maxDocument = 1 << 20

// read returns a small file; nil if there is none.
func read(in index.Part, name string, limit int64) ([]byte, error) {
	name = path.Join(in.Dir, name)
	info, err := in.Fs.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil || !info.Mode().IsRegular() { // opening a named pipe would wait for its writer
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
