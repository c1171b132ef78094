package publish

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"path"
	"slices"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A presentRelease is a provider's version in the tree, offered or withheld, published
// or copied there. It is read from the disk, since the snapshot may be behind.
type presentRelease struct {
	address address.Address // with the HOSTNAME that its folder is under

	files  map[string]string // paths in the tree's providers, by name
	exists bool              // there is a package, so the version must not change

	// folder is the folder of the version. It need not exist: the files may lie in the
	// provider's own folder.
	folder string

	release *index.Release // nil if the index does not offer it
	tree    tree.Tree
}

// presentRelease looks for a version under all names of the registry. If there is none,
// the result has the folder where the version goes.
func (p *Publisher) presentRelease(files tree.Tree, a address.Address, version string) (*presentRelease, error) {
	var first *presentRelease
	for _, hostname := range p.hostnames() {
		r, err := p.presentUnder(files, a.WithHostname(hostname), version)
		if err != nil {
			return nil, err
		}
		if r.exists {
			return r, nil
		}
		if first == nil {
			first = r
		}
	}
	return first, nil
}

func (p *Publisher) presentUnder(files tree.Tree, a address.Address, version string) (*presentRelease, error) {
	part, dir, err := files.Folder(a).Locate()
	if err != nil {
		return nil, err
	}
	r := &presentRelease{address: a, files: make(map[string]string), folder: path.Join(dir, version), tree: files}
	if s := p.snapshot(); s != nil {
		r.release = s.Provider(index.PlaceOf(a)).Release(version)
	}
	for _, dir := range []string{r.folder, dir} { // the index prefers files of the first folder
		entries, err := part.Entries(dir)
		if err != nil {
			return nil, err
		}
		if dir == r.folder && tree.IsIncompleteUpload(a.Name, version, entries) {
			continue
		}
		for _, e := range entries {
			if dir == r.folder && (e.IsDir() || e.Bad != nil) {
				_, noPackage := address.ParsePlatformName(e.Name) // as the index names folders of unpacked packages
				r.exists = r.exists || noPackage == nil
			}
			f, err := address.ParseReleaseFile(a.Name, e.Name)
			if err != nil || f.Version.String() != version || e.IsDir() {
				continue
			}
			if _, twice := r.files[e.Name]; !twice {
				r.files[e.Name] = e.Path()
			}
			r.exists = r.exists || f.Kind == address.PackageFile
		}
	}
	return r, nil
}

// digest returns the digest of a file.
func (r *presentRelease) digest(name string) (wire.SHA256, error) {
	return r.release.DigestOf(r.tree, r.files[name])
}

// describe returns the published files.
func (r *presentRelease) describe(a address.Address, version string) (wire.Publication, error) {
	d := wire.Publication{Status: wire.Published, Address: a.WithHostname("").String(), Version: version}
	for _, name := range slices.Sorted(maps.Keys(r.files)) {
		sum, err := r.digest(name)
		if err != nil {
			return d, err
		}
		info, err := r.tree.Providers.Stat(r.files[name])
		if err != nil {
			return d, tree.StorageError(err)
		}
		d.Files = append(d.Files, wire.PublishedFile{Name: name, SHA256: sum.String(), Size: info.Size()})
	}
	return d, nil
}

// putBeside answers an upload of a version that the tree has. Whatever bytes are sent,
// the version does not change.
func (p *Publisher) putBeside(ctx context.Context, files tree.Tree, present *presentRelease, f File, u Upload) (Result, error) {
	if u.announced() && (f.Kind != Signature || u.Bodiless) {
		return present.compare(f, u.SHA256)
	}
	if u.Bodiless {
		return Result{}, ErrNothing
	}
	var content bytes.Buffer
	to := io.Discard
	if f.Kind == Signature {
		to = &content
	}
	sum, _, err := p.digest(to, f.Kind, u)
	if err != nil {
		return Result{}, err
	}
	return p.compareWithPresent(ctx, files, present, f, content.Bytes(), sum)
}

// compareWithPresent answers an upload of a version that the tree has. Another
// signature must not fail: a publisher that runs again signs again, and parallel
// uploads of a release that needs no signature may complete the release before their
// signature arrives. The published signature still stays. A signature that nothing can
// verify would keep the release from clients once the namespace has keys.
func (p *Publisher) compareWithPresent(ctx context.Context, files tree.Tree, present *presentRelease, f File, content []byte, sum wire.SHA256) (Result, error) {
	result, err := present.compare(f, sum)
	if f.Kind != Signature || content == nil || !errors.Is(err, ErrConflict) {
		return result, err
	}
	conflicting := err
	if err := checkSignature(f, content); err != nil {
		return Result{}, err
	}
	keys, err := p.keys(ctx, files, present.address)
	if err != nil {
		return Result{}, err
	}
	result = f.unchanged(sum)
	_, signed := present.files[f.Name]
	if keys.ring == nil {
		if signed {
			return Result{}, conflicting
		}
		result.Message = "the release is published, and this signature is not kept: the registry has no public key of " + f.Address.Namespace + " to verify it with"
		return result, nil
	}
	checksumsPath := present.files[address.ChecksumsName(f.Address.Name, f.Version)]
	if !signed || checksumsPath == "" {
		return Result{}, f.errPublishedWithout()
	}
	checksums, err := files.Providers.ReadFile(checksumsPath, tree.MaxDocument)
	if err != nil {
		return Result{}, err
	}
	if _, err := keys.ring.Verify(checksums, content); err != nil {
		return Result{}, f.errOtherBytes()
	}
	result.Message = "the signature is valid; the one that is published stays"
	return result, nil
}

// compare answers an upload of a version that the tree has.
func (r *presentRelease) compare(f File, sum wire.SHA256) (Result, error) {
	if r.files[f.Name] == "" {
		return Result{}, f.errPublishedWithout()
	}
	other, err := r.digest(f.Name)
	switch {
	case err != nil:
		return Result{}, err
	case other != sum:
		return Result{}, f.errOtherBytes()
	}
	return f.unchanged(sum), nil
}
