package fill

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"path"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/signing"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// documents are what the tree has beside the packages of a version. They may
// lie in the provider's folder or in that of the version.
type documents struct {
	version                        string
	dir                            string // where SHA256SUMS is, or would be
	packages                       string // where a further package goes
	apart                          bool   // the signature is elsewhere
	checksums, signature, manifest []byte // each nil when it is not there
}

func (p *place) documents(r *upstream.Release) (d documents, err error) {
	var signature string
	d.version, d.dir, d.packages = r.Version, p.dir, p.dir
	if names := p.packages(r.Version); len(names) > 0 {
		d.packages = path.Dir(names[0])
	}
	for _, document := range []struct {
		rest    string
		content *[]byte
	}{{"SHA256SUMS", &d.checksums}, {"SHA256SUMS.sig", &d.signature}, {"manifest.json", &d.manifest}} {
		name := p.locate(r.Version, r.FileName(document.rest))
		if name == "" {
			continue
		}
		if *document.content, err = read(p.providers, name, maxHeld); err != nil {
			return d, err
		}
		switch document.rest {
		case "SHA256SUMS":
			d.dir = path.Dir(name)
		case "SHA256SUMS.sig":
			signature = path.Dir(name)
		}
	}
	d.apart = signature != "" && signature != d.dir
	return d, nil
}

// keptRelease is a release as the tree vouches for it; nil if it does not. Then
// nothing but its packages is needed from the origin, and no other release of
// the same version can take its place.
func keptRelease(a address.Address, version string, d documents, k namespaceKeys) *upstream.Release {
	if d.checksums == nil || d.signature == nil || k.ring == nil {
		return nil
	}
	if _, err := k.ring.Verify(d.checksums, d.signature); err != nil {
		return nil // the origin's may be another: that is for settle to say
	}
	sums, err := wire.DecodeChecksums(d.checksums)
	if err != nil {
		return nil
	}
	r := &upstream.Release{
		Address: a, Version: version, Checksums: d.checksums, Signature: d.signature, Manifest: d.manifest,
		Keys: k.ring.Keys(), Sums: sums,
	}
	r.Packages = r.ListedPackages()
	return r
}

// settle makes sure that a release agrees with what the tree has of it, or else
// is an ErrConflict: what is held is never replaced, and never made invalid by
// what is put beside it. With keep it also writes what is missing, in an order
// in which the index offers what was there, whenever it looks. It returns the
// documents that were there.
func (p *place) settle(r *upstream.Release, keep bool) (d documents, err error) {
	k, err := p.readKeys()
	if err != nil {
		return d, err
	}
	if d, err = p.documents(r); err != nil {
		return d, err
	}
	if r.Checksums != nil && extends(r.Checksums, d.checksums) {
		// Another fill or instance has added to it since it was asked for. What it
		// vouches for is the same, and is not to be taken back.
		if now := keptRelease(r.Address, r.Version, d, k); now != nil {
			r = now
		}
	}
	if err := p.agree(r, d, k); err != nil {
		return d, err
	}
	if d.checksums == nil && r.Checksums != nil {
		if err := p.packagesAgree(r); err != nil {
			return d, err
		}
	}
	if !keep {
		return d, nil
	}
	return d, p.keep(r, d, k)
}

// vouching are the documents with the SHA256SUMS that is there once r is kept.
func (d documents) vouching(r *upstream.Release) documents {
	if r.Checksums != nil {
		d.checksums = r.Checksums
	}
	return d
}

// lists tells whether the tree's SHA256SUMS, if it has one, lists a package as
// it is.
func (d *documents) lists(name string, sum wire.SHA256) bool {
	if d.checksums == nil {
		return true
	}
	sums, err := wire.DecodeChecksums(d.checksums)
	listed, ok := sums[name]
	return err == nil && ok && listed == sum
}

// conflict is what the tree has and the origin has otherwise.
func conflict(name string) error {
	return fmt.Errorf("%w: its %s differs: to have the origin's, remove the version from the tree", ErrConflict, name)
}

var errPinned = fmt.Errorf("%w: the keys of the namespace are pinned", ErrUnsigned)

// agree compares a release with the documents that the tree has.
func (p *place) agree(r *upstream.Release, d documents, k namespaceKeys) error {
	if k.pinned { // perhaps since the release was verified
		if !r.Signed() {
			return errPinned
		}
		if _, err := k.ring.Verify(r.Checksums, r.Signature); err != nil {
			return fmt.Errorf("%w: by the pinned keys: %w", upstream.ErrBadSignature, err)
		}
	}
	grown := false
	if d.checksums != nil && r.Checksums != nil && !bytes.Equal(d.checksums, r.Checksums) {
		switch grown = mayReplace(r, d.checksums); {
		case !grown:
			return conflict("SHA256SUMS")
		case !p.mayExtend(d):
			return fmt.Errorf("%w: the origin has added platforms to it: to have them, move the files in the folder %s up into that of the provider, and what else is in it out of the tree", ErrConflict, d.version)
		}
	}
	if d.signature != nil && r.Signed() && !grown && !bytes.Equal(d.signature, r.Signature) {
		// Signed once more, it is as good as long as the keys that will lie beside it
		// say so.
		if d.checksums == nil || !verifies(r, d.signature) {
			return conflict("signature")
		}
	}
	if d.manifest != nil {
		if sum, listed := r.Sums[r.FileName("manifest.json")]; listed && sha256.Sum256(d.manifest) != sum {
			return conflict("manifest")
		}
	}
	return nil
}

// verifies tells whether the keys of a release verify another signature of it.
func verifies(r *upstream.Release, signature []byte) bool {
	var armored bytes.Buffer
	for _, key := range r.Keys {
		fmt.Fprintf(&armored, "%s\n", key.Armor)
	}
	ring, _ := signing.ReadKeyring(armored.Bytes())
	_, err := ring.Verify(r.Checksums, signature)
	return err == nil
}

// packagesAgree compares packages that lie in the tree without a SHA256SUMS with
// the one that is to come beside them. It reads them, which happens once for a
// release that was copied in by `terraform providers mirror`.
func (p *place) packagesAgree(r *upstream.Release) error {
	for _, name := range p.packages(r.Version) {
		digest, err := digestOf(p.providers, name)
		if err != nil {
			return err
		}
		if sum, listed := r.Sums[path.Base(name)]; !listed || sum != digest.SHA256 {
			return conflict(path.Base(name))
		}
	}
	if unpacked := p.unpacked(r.Version); len(unpacked) > 0 { // no publisher signs what the registry packs
		return conflict("unpacked " + unpacked[0])
	}
	return nil
}

// digestOf reads a file to its end.
func digestOf(in index.Part, name string) (d upstream.Digest, err error) {
	f, err := in.Fs.Open(path.Join(in.Dir, name))
	if err != nil {
		return d, storageError(err)
	}
	defer f.Close()
	h := sha256.New()
	if d.Size, err = io.Copy(h, f); err != nil {
		return d, storageError(err)
	}
	h.Sum(d.SHA256[:0])
	return d, nil
}

// keep writes what the tree does not have. Keys come first, since without them
// the signature is worth nothing, and then SHA256SUMS, which the signature is
// of: until it is there the registry signs the release itself.
func (p *place) keep(r *upstream.Release, d documents, k namespaceKeys) error {
	if r.Signed() && !k.pinned {
		file, err := k.with(r.Keys)
		if err != nil {
			return err
		}
		if file != nil {
			if err := write(p.keys, p.keysFile, file); err != nil {
				return err
			}
		}
	}
	if d.checksums != nil && r.Checksums != nil && !bytes.Equal(d.checksums, r.Checksums) {
		return p.extend(r, d)
	}
	for _, document := range []struct {
		rest         string
		held, origin []byte
	}{{"manifest.json", d.manifest, r.Manifest}, {"SHA256SUMS", d.checksums, r.Checksums}, {"SHA256SUMS.sig", d.signature, r.Signature}} {
		if document.held != nil || document.origin == nil {
			continue
		}
		if err := write(p.providers, path.Join(d.dir, r.FileName(document.rest)), document.origin); err != nil {
			return err
		}
	}
	return nil
}
