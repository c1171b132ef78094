package index

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	version "github.com/hashicorp/go-version"
	svchost "github.com/hashicorp/terraform-svchost"
)

// A Release is one version of a provider, verified.
type Release struct {
	version *version.Version

	// Hostname it lies under in the tree. Empty: it is hosted, not mirrored.
	Hostname svchost.Hostname

	// Version is its text, strict semantic versioning without a v.
	Version string

	// Protocols are the plugin protocol versions it speaks, MAJOR.MINOR.
	Protocols []string

	// Packages are ordered by platform; there is at least one.
	Packages []*Package

	// Keys are what clients verify the signature of SHA256SUMS with. Empty:
	// nobody signed the release, and the mirror alone offers it.
	Keys []PublicKey

	checksums *File
	signature *File
	signedBy  string // for the report

	encoding sync.Once
	archives *Document // the mirror's VERSION.json
}

// A Package is a release for one platform.
type Package struct {
	Platform
	File *File

	// H1 is Go's dirhash of the files in the zip, "h1:…".
	H1 string

	release  *Release
	download *Document // the registry's answer
}

// addRelease turns the files of a version into a Release, or reports why not
// and returns nil.
func (a *assembly) addRelease(p *providerFolder, files *releaseFiles) *Release {
	if len(files.packages) == 0 {
		for _, d := range files.documents() {
			a.report.ignore(d.report, NotPartOfTree, "no package of its version is here")
		}
		return nil
	}
	id := releaseID{p.address, files.version.String()}
	if files.pending() {
		a.report.Pending += files.unread()
		// A release that is being added to stays as it was until it is whole. A file
		// of it that is another by now is not served.
		if known := a.releases.last(id); known != nil {
			a.report.Offered = append(a.report.Offered, known.offer)
			return known.release
		}
		return nil
	}
	state := files.state(a.keys[keysOf{p.address.Hostname, p.address.Namespace}])
	if known := a.releases.get(id, state, a.now); known != nil {
		a.report.Offered = append(a.report.Offered, known.offer)
		return known.release
	}
	problems := len(a.report.Withheld)
	v := &verification{assembly: a, provider: p, files: files, release: &Release{
		version: files.version, Hostname: p.address.Hostname, Version: files.version.String(), Protocols: defaultProtocols,
	}}
	if !v.run() {
		return nil
	}
	offer := v.offer()
	a.report.Offered = append(a.report.Offered, offer)
	if len(a.report.Withheld) == problems && files.settled(a.now) {
		a.releases.put(id, verified{state, a.now, v.release, offer})
	}
	return v.release
}

// A verification is a release on its way from files to an offer.
type verification struct {
	*assembly
	provider *providerFolder
	files    *releaseFiles
	release  *Release
	sums     []byte
	notes    []string
}

// run tells whether the release can be offered.
func (v *verification) run() bool {
	sums, ok := v.readChecksums()
	if !ok || !v.readManifest(sums) || !v.verifySignature() {
		return false
	}
	v.checkPackages(sums)
	if len(v.release.Packages) == 0 {
		return false // each package's problem is reported already
	}
	return v.signUnsigned()
}

// withhold reports a problem with one file of the release.
func (v *verification) withhold(report string, f *finding) {
	v.report.withhold(Problem{
		Path: report, Address: v.provider.address.String(), Version: v.release.Version,
		Reason: f.reason, Detail: f.detail,
	})
}

// read returns one of the release's documents, or reports that it can't.
func (v *verification) read(d *document) ([]byte, bool) {
	if known, ok := v.memo.get(d.report, d.stamp); ok {
		return known.content, true
	}
	content, err := v.tree.Providers.read(d.path)
	if err != nil {
		v.withhold(d.report, asFinding(err))
		return nil, false
	}
	v.memo.put(d.report, digest{stamp: d.stamp, content: content}, v.options.now())
	return content, true
}

func (v *verification) readChecksums() (Checksums, bool) {
	d := v.files.checksums
	if d == nil {
		return nil, true
	}
	content, ok := v.read(d)
	if !ok {
		return nil, false
	}
	sums, err := ParseChecksums(content)
	if err != nil {
		v.withhold(d.report, asFinding(err))
		return nil, false
	}
	v.sums = content
	return sums, true
}

func (v *verification) readManifest(sums Checksums) bool {
	d := v.files.manifest
	if d == nil {
		return true
	}
	content, ok := v.read(d)
	if !ok {
		return false
	}
	if sum, listed := sums[d.name]; listed && sum != sha256Of(content) {
		v.withhold(d.report, found(ChecksumMismatch, "its sha256 is not the one SHA256SUMS lists: copy the release again"))
		return false
	}
	protocols, err := ParseManifest(content)
	if err != nil {
		v.withhold(d.report, asFinding(err))
		return false
	}
	v.release.Protocols = protocols
	return true
}

// verifySignature keeps the publisher's SHA256SUMS, signature and keys when
// they verify. A signature that nobody's key made is as none; one that is wrong
// withholds the release.
func (v *verification) verifySignature() bool {
	d := v.files.signature
	if d == nil {
		return true
	}
	if v.files.checksums == nil {
		v.notes = append(v.notes, "there is a signature without the SHA256SUMS it is of")
		return true
	}
	signature, ok := v.read(d)
	if !ok {
		return false
	}
	address := v.provider.address
	file := "keys/" + displayHost(address.Hostname) + address.Namespace + ".asc"
	keyring := v.keys[keysOf{address.Hostname, address.Namespace}]
	if keyring == nil {
		v.notes = append(v.notes, "the publisher's signature is not checked: put the publisher's public key in "+file)
		return true
	}
	key, err := v.memo.verify(v.sums, signature, keyring, v.now)
	switch {
	case errors.Is(err, ErrUnknownKey):
		v.notes = append(v.notes, fmt.Sprintf("%v: add the publisher's public key to %s", err, file))
		return true
	case errors.Is(err, ErrKeyExpired):
		v.withhold(d.report, found(KeyExpired, "%v: sign the release with a valid key", err))
		return false
	case err != nil:
		v.withhold(d.report, found(BadSignature, "%v: sign SHA256SUMS again or copy it again", err))
		return false
	}
	if !key.Expires.IsZero() && key.Expires.Before(v.now) {
		v.notes = append(v.notes, fmt.Sprintf("the publisher's key %s has expired on %s: clients warn", key.ID, key.Expires.Format(time.DateOnly)))
	}
	v.release.Keys = keyring.Keys()
	v.release.signedBy = "publisher " + key.ID
	v.release.checksums = newDocumentFile(v.files.checksums.name, v.release.Version, v.sums)
	v.release.signature = newDocumentFile(d.name, v.release.Version, signature)
	return true
}

// checkPackages keeps the packages that are what the release says they are.
func (v *verification) checkPackages(sums Checksums) {
	kept := make(map[Platform]*packageArchive)
	for _, p := range v.files.packages {
		if f := v.checkPackage(p, sums, kept[p.platform]); f != nil {
			v.withhold(p.report, f)
			continue
		}
		kept[p.platform] = p
	}
	for platform, p := range kept {
		v.release.Packages = append(v.release.Packages, &Package{
			Platform: platform,
			release:  v.release,
			H1:       p.h1,
			File: &File{
				Name: p.name, Version: v.release.Version, Platform: platform.String(), ContentType: zipType, Size: p.digest.size, SHA256: p.sha256,
				in: inProviders, path: p.path, modTime: p.stamp.modTime, inode: p.stamp.inode,
			},
		})
	}
	slices.SortFunc(v.release.Packages, func(a, b *Package) int {
		return cmp.Or(strings.Compare(a.OS, b.OS), strings.Compare(a.Arch, b.Arch))
	})
}

func (v *verification) checkPackage(p *packageArchive, sums Checksums, other *packageArchive) *finding {
	switch sum, listed := sums[p.name]; {
	case p.bad != nil:
		return p.bad
	case sums != nil && !listed:
		return found(NotListed, "SHA256SUMS does not list it: release it with the others or remove it")
	case sums != nil && sum != p.sha256:
		return found(ChecksumMismatch, "its sha256 is not the one SHA256SUMS lists: copy it again")
	case other != nil:
		return found(Duplicate, "the release has a package of this platform twice: keep one of them")
	}
	return nil
}

// signUnsigned gives a release that has no usable signature the registry's own.
func (v *verification) signUnsigned() bool {
	r := v.release
	if r.signature != nil {
		return true
	}
	if v.options.RequireSignatures {
		detail := "its publisher did not sign it, which `signatures require` asks for"
		if len(v.notes) > 0 {
			detail += ": " + strings.Join(v.notes, "; ")
		}
		v.withhold(v.provider.report, found(Unsigned, "%s", detail))
		return false
	}
	sums := make(Checksums)
	for _, p := range r.Packages {
		sums[p.File.Name] = p.File.SHA256
	}
	name := providerPrefix + v.provider.address.Type + "_" + r.Version + "_SHA256SUMS"
	r.checksums = newDocumentFile(name, r.Version, sums.Document())
	if v.options.Signer != nil {
		r.Keys = []PublicKey{v.options.Signer.PublicKey()}
		r.signedBy = "registry " + r.Keys[0].ID
		r.signature = newSignatureFile(name+".sig", r.Version, r.checksums.content, v.options.Signer)
	}
	return true
}

// offer is the release as a report tells of it.
func (v *verification) offer() Offer {
	o := Offer{
		Kind: KindProvider, Address: v.provider.address.String(), Version: v.release.Version,
		Signature: cmp.Or(v.release.signedBy, "none"), Notes: v.notes,
	}
	for _, p := range v.release.Packages {
		o.Platforms = append(o.Platforms, p.Platform.String())
	}
	if o.Signature == "none" {
		o.Notes = append(o.Notes, "nobody signed it: only the mirror offers it")
	}
	return o
}
