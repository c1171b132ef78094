package pull

import (
	"context"
	"crypto/sha256"
	"maps"
	"slices"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/cache"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/offer"
	"github.com/caddy-terraform/caddy-terraform-registry/signing"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A fetchedRelease is a release whose packages the Upstream can fetch, in the form that
// clients verify. Its documents stay the same when its packages come into the tree.
type fetchedRelease struct {
	*upstream.Release
	present *index.Release // the release in the tree; may be nil

	// sums are the sums in checksums, and signature is the signature of checksums. keys
	// verify the signature.
	sums                 wire.Checksums
	checksums, signature *index.File
	keys                 []signing.PublicKey
	issuer               string // the ID of the key that signature names
}

// A signatureID identifies a release and the SHA256SUMS that the registry has signed for it.
type signatureID struct {
	address address.Address
	version string
	sums    wire.SHA256
}

// maxSignatures bounds the signatures of the registry, with what they sign, in bytes. Each SHA256SUMS is signed once while it is kept.
const maxSignatures = 16 << 20

func signatureSize(v *index.SignedChecksums) int { return 1<<10 + int(v.Checksums.Size) }

// fetchedRelease asks the Upstream for a release. The platform is the platform of the
// requested package. Its zero value stands for all that the origin has added.
func (o *Offers) fetchedRelease(ctx context.Context, a address.Address, version string, platform address.Platform, present *index.Release) (*fetchedRelease, error) {
	origin, err := o.upstream.ReleaseFor(ctx, a, version, platform, present)
	if err != nil {
		return nil, err
	}
	k := &fetchedRelease{Release: origin, present: present, sums: origin.Sums}
	asIs := k.addPresent()
	switch {
	case origin.Signed() && asIs:
		k.checksums = offer.NewDocumentFile(address.ChecksumsName(a.Name, version), version, origin.Checksums)
		k.signature = offer.NewDocumentFile(address.SignatureName(a.Name, version), version, origin.Signature)
		k.keys, k.issuer = origin.Keys, signing.Issuer(origin.Signature)
		return k, nil
	case origin.Signed():
		return nil, ErrConflict
	}
	checksums := origin.Checksums
	if checksums == nil || !asIs {
		checksums = k.sums.Encode()
	}
	v := o.signChecksums(a, version, checksums)
	if v == nil {
		return nil, ErrNotSigned
	}
	k.checksums, k.signature, k.keys, k.issuer = v.Checksums, v.Signature, []signing.PublicKey{v.Key}, v.Key.ID
	return k, nil
}

// addPresent adds the sums of the packages in the tree, which clients get, and the sums
// of a mirror that has no SHA256SUMS. It reports whether the origin's document has all
// of them.
func (k *fetchedRelease) addPresent() (asIs bool) {
	further := make(wire.Checksums)
	if k.Checksums == nil {
		for _, p := range k.Packages {
			if p.SHA256 != (wire.SHA256{}) {
				further[p.Name] = p.SHA256
			}
		}
	}
	if k.present != nil {
		for _, p := range k.present.Packages {
			further[p.File.Name] = p.File.SHA256
		}
	}
	asIs = true
	for name, sum := range further {
		if listed, ok := k.sums[name]; !ok || listed != sum {
			asIs = false
		}
	}
	if !asIs {
		all := maps.Clone(k.sums)
		if all == nil {
			all = further
		}
		maps.Copy(all, further)
		k.sums = all
	}
	return asIs
}

// signChecksums returns the registry's signature and keys for a release that its publisher did
// not sign. It returns nil if the registry signs nothing.
func (o *Offers) signChecksums(a address.Address, version string, checksums []byte) *index.SignedChecksums {
	id := signatureID{a, version, sha256.Sum256(checksums)}
	if v, ok := o.signatures.Get(id); ok {
		return v
	}
	v := o.tree.SignChecksums(id.address.Name, id.version, checksums)
	if v == nil {
		return nil
	}
	id.address, id.version = id.address.Clone(), strings.Clone(id.version)
	return o.signatures.PutIfAbsent(id, v, cache.UntilEvicted)
}

// file returns SHA256SUMS or its signature, and nil for every other kind.
func (k *fetchedRelease) file(kind address.ReleaseFileKind) *index.File {
	switch kind {
	case address.ChecksumsFile:
		return k.checksums
	case address.SignatureFile:
		return k.signature
	}
	return nil
}

// download describes the package of a platform, whose sha256 is sum.
func (k *fetchedRelease) download(p address.Platform, sum wire.SHA256) *wire.Document {
	v := wire.Evidence{Packages: k.hashes()}
	for _, key := range k.keys {
		v.Armor, v.IDs = append(v.Armor, key.Armor), append(v.IDs, key.ID)
	}
	name := address.PackageName(k.Address.Name, k.Version, p)
	return wire.EncodeDownloads([]wire.Download{{
		Protocols: k.protocols(), Platform: p, Filename: name, SHA256: sum.String(),
		URL: name, ChecksumsURL: k.checksums.Name, SignatureURL: k.signature.Name, Issuer: k.issuer,
	}}, v)[0]
}

// protocols returns the plugin protocol versions of the release.
func (k *fetchedRelease) protocols() []string {
	if k.Manifest != nil {
		if protocols, err := wire.DecodeManifest(k.Manifest); err == nil {
			return protocols
		}
	}
	switch {
	case len(k.Protocols) > 0:
		return k.Protocols
	case k.present != nil:
		return k.present.Protocols()
	}
	return wire.DefaultProtocols()
}

// hashes returns the hashes of all packages that SHA256SUMS lists. It returns nil
// unless h1:, zh: and size of each package are known (checklist 48).
func (k *fetchedRelease) hashes() map[address.Platform]wire.PackageHashes {
	all := make(map[address.Platform]wire.PackageHashes)
	for name, sum := range k.sums {
		f, err := address.ParseReleaseFile(k.Address.Name, name)
		if err != nil || f.Kind != address.PackageFile {
			continue
		}
		known := k.Announced[f.Platform]
		if p := k.present.Package(f.Platform.OS, f.Platform.Arch); p != nil {
			known = p.Hashes()
		}
		if known.Size <= 0 || !slices.Contains(known.Hashes, sum.ZH()) ||
			!slices.ContainsFunc(known.Hashes, wire.IsH1) {
			return nil
		}
		all[f.Platform] = known
	}
	return all
}
