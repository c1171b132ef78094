package offer

import (
	"slices"
	"sync"
	"time"

	version "github.com/hashicorp/go-version"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index/report"
	"github.com/caddy-terraform/caddy-terraform-registry/registryhcl"
	"github.com/caddy-terraform/caddy-terraform-registry/signing"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A Release is a verified version of a provider. It is immutable.
type Release struct {
	Facts

	// Packages are ordered by platform; there is at least one.
	Packages []*Package

	typ           string   // of its provider
	protocols     []string // the plugin protocol versions it speaks, MAJOR.MINOR
	checksums     *File
	signatureFile *File  // nil if it is not signed
	docs          string // the folder of its documentation; empty if there is none

	// It is used again if neither its files nor its keys have changed.
	state    wire.SHA256 // of its files and keys when it was verified
	verified int64       // when that was, in nanoseconds; zero: its files may change unnoticed

	encoded *encodedRelease // shared with this release under other notices
}

// An encodedRelease has the documents of a release, except for its packages' documents.
type encodedRelease struct {
	once     sync.Once
	archives *wire.Document // the mirror's VERSION.json
}

// ReleaseParts make a release.
type ReleaseParts struct {
	Address   address.Address // of its folder
	Version   *version.Version
	Protocols []string  // the plugin protocol versions it speaks, MAJOR.MINOR
	Packages  []Package // at least one, ordered by platform
	Changed   []ChangedBytes
	Published int64  // the time of its newest file, in nanoseconds
	Docs      string // the folder of its documentation; empty if there is none

	// Checksums are the publisher's SHA256SUMS, and Signature its signature, by the key with
	// that ID; each is zero if there is none. Keys are the keys of the namespace. Without a
	// Signature the Signer signs; nil: the release is not signed.
	Checksums, Signature Document
	KeyID                string
	Keys                 []signing.PublicKey
	Signer               Signer

	Notes []string // for the report

	// State identifies the files and keys, and Verified is when they were verified; zero if
	// the files may change unnoticed.
	State    wire.SHA256
	Verified time.Time
}

// A Document is a verified file that clients get as it is.
type Document struct {
	Name    string
	Content []byte
}

// NewRelease returns the release of these parts. It is immutable.
func NewRelease(p ReleaseParts) *Release {
	r := &Release{
		Facts: Facts{
			version: p.Version, Version: p.Version.String(), Hostname: p.Address.Hostname,
			Evidence: Evidence{Signature: new(Signature)}, Changed: p.Changed, published: p.Published,
		},
		typ: p.Address.Name, Packages: make([]*Package, len(p.Packages)), protocols: p.Protocols, docs: p.Docs,
		state: p.State, encoded: new(encodedRelease),
	}
	if !p.Verified.IsZero() {
		r.verified = p.Verified.UnixNano()
	}
	for i := range p.Packages {
		p.Packages[i].release, r.Packages[i] = r, &p.Packages[i]
	}
	if p.Signature.Content != nil {
		r.Signature = &Signature{ByPublisher, p.KeyID, p.Keys}
		r.checksums = NewDocumentFile(p.Checksums.Name, r.Version, p.Checksums.Content)
		r.signatureFile = NewDocumentFile(p.Signature.Name, r.Version, p.Signature.Content)
	} else {
		r.sign(p.Address.Name, p.Checksums.Content, p.Signer)
	}
	r.notes = append(slices.Clip(p.Notes), changedNotes(r.Changed)...)
	if r.Signature.By == NotSigned {
		r.notes = append(r.notes, "it is not signed: only the mirror offers it")
	}
	return r
}

// IsVerified reports whether a release, which may be nil, was verified with the same files
// and keys not long ago.
func (r *Release) IsVerified(state wire.SHA256, now time.Time, within time.Duration) bool {
	if r == nil || r.verified == 0 || r.state != state {
		return false
	}
	age := now.Sub(time.Unix(0, r.verified))
	return age >= 0 && age < within
}

// Verified returns when the release was verified; zero if its files may change unnoticed.
func (r *Release) Verified() time.Time {
	if r.verified == 0 {
		return time.Time{}
	}
	return time.Unix(0, r.verified)
}

// Reported returns the release of the provider at that address in the form of a report.
func (r *Release) Reported(a address.Address) report.Offer {
	o := r.reported(report.KindProvider, a)
	o.Platforms = make([]string, len(r.Packages))
	for i, p := range r.Packages {
		o.Platforms[i] = p.File.Platform
	}
	return o
}

// Docs returns the folder of its documentation; empty if there is none.
func (r *Release) Docs() string { return r.docs }

// sign adds the registry's signature to a release without a usable one. It signs the
// publisher's SHA256SUMS unchanged, which also lists packages that are not in the tree: lock
// files get the hashes of all platforms, and the list stays the same when further packages
// are added. Without that document it signs a list of the packages in the tree. Without a
// signer the release has no signature.
func (r *Release) sign(typ string, checksums []byte, signer Signer) {
	if checksums == nil {
		sums := make(wire.Checksums)
		for _, p := range r.Packages {
			sums[p.File.Name] = p.File.SHA256
		}
		checksums = sums.Encode()
	}
	if signer == nil {
		r.checksums = NewDocumentFile(address.ChecksumsName(typ, r.Version), r.Version, checksums)
		return
	}
	v := NewSignedChecksums(typ, r.Version, checksums, signer)
	r.Signature = &Signature{ByRegistry, v.Key.ID, []signing.PublicKey{v.Key}}
	r.checksums, r.signatureFile = v.Checksums, v.Signature
}

// withNotice returns the release with the notice that deprecates it, which may be nil.
func (r *Release) withNotice(n *registryhcl.Notice) *Release {
	return with(r, func(r *Release) **registryhcl.Notice { return &r.deprecated }, n)
}

// WithDocs returns the release with that folder of documentation.
func (r *Release) WithDocs(dir string) *Release {
	return with(r, func(r *Release) *string { return &r.docs }, dir)
}

// Protocols returns the plugin protocol versions of the provider, such as "6.0".
func (r *Release) Protocols() []string { return r.protocols }

// WithOffered returns the release with the time when it was first offered, in nanoseconds; 0:
// there is no record of it.
func (r *Release) WithOffered(at int64) *Release {
	return with(r, func(r *Release) *int64 { return &r.offered }, at)
}

// WithPackages returns the release with these of its packages only, at least one.
func (r *Release) WithPackages(some []*Package) *Release {
	if len(some) == len(r.Packages) {
		return r
	}
	other := *r
	other.encoded, other.Packages = new(encodedRelease), make([]*Package, len(some))
	for i, p := range some {
		own := *p
		own.release, own.download = &other, nil
		other.Packages[i] = &own
	}
	return &other
}

// A Package is a release for one platform.
type Package struct {
	address.Platform
	File *File

	// FileHashes are the hashes of the files in the zip as clients unpack them. Clients record
	// them in their lock files. PackedHashes are the hashes of the zip's entries, if they differ.
	FileHashes, PackedHashes wire.FileHashes

	release  *Release
	download *wire.Document // the registry's answer
}

// Archives returns the mirror's VERSION.json.
func (r *Release) Archives() *wire.Document {
	r.encode()
	return r.encoded.archives
}

// Documents returns the publisher's SHA256SUMS and signature, byte for byte; nil for a
// release that the registry signs.
func (r *Release) Documents() (checksums, signature []byte) {
	if r.Signature.By != ByPublisher {
		return nil, nil
	}
	return r.checksums.source().content, r.signatureFile.source().content
}

// Issuer returns the ID of the key that the signature of SHA256SUMS names; empty if there is
// no signature. A publisher's signature may name a sub-key.
func (r *Release) Issuer() string {
	if _, signature := r.Documents(); signature != nil {
		return signing.Issuer(signature)
	}
	return r.Signature.KeyID
}

// Package returns the package for a platform, or nil. A nil Release has none.
func (r *Release) Package(os, arch string) *Package {
	if r == nil {
		return nil
	}
	for _, p := range r.Packages {
		if p.OS == os && p.Arch == arch {
			return p
		}
	}
	return nil
}

// Download returns the registry's description of the package; nil if only the mirror offers
// the release.
func (p *Package) Download() *wire.Document {
	p.release.encode()
	return p.download
}

// DigestOf returns the digest of a file in the tree's providers. If the file is a package of
// the release, which may be nil, and unchanged, the digest is known; otherwise the file is
// read.
func (r *Release) DigestOf(t tree.Tree, name string) (wire.SHA256, error) {
	if r != nil {
		for _, k := range r.Packages {
			if k.File.Path() != name {
				continue
			}
			if f, err := k.File.Open(&t); err == nil {
				f.Close()
				return k.File.SHA256, nil
			}
		}
	}
	return t.Providers.Digest(name)
}
