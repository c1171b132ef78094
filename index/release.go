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

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/signing"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
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
	Keys []signing.PublicKey

	checksums *File
	signature *File
	signedBy  string // for the report
	offer     Offer  // as the report has it

	encoding sync.Once
	archives *wire.Document // the mirror's VERSION.json
}

// A Package is a release for one platform.
type Package struct {
	address.Platform
	File *File

	// H1 is Go's dirhash of the files in the zip as clients unpack them, "h1:…":
	// the one in their lock files.
	H1 string

	packedH1 string // that of the zip's entries, where it is another
	release  *Release
	download *wire.Document // the registry's answer
}

// addRelease turns the files of a version into a Release, or reports why not
// and returns nil.
func (a *assembly) addRelease(p *providerFolder, files *releaseFiles) *Release {
	if len(files.packages) == 0 {
		for _, d := range files.documents() {
			a.report.ignore(d.report, NotPartOfTree, "no package of version "+files.version.String()+" is here: copy its zip files too, or remove it")
		}
		return nil
	}
	id := releaseID{p.address, files.version.String()}
	if known := a.lastRelease(id); known != nil {
		// A release that is added to, or whose files were touched, stays as it was
		// until all of it has been read: a list without it would have clients
		// choose an older one. A file of it that is another by now is not served.
		if files.pending() || files.rewritten(known, a.options.now()) {
			for _, k := range files.packages {
				if k.bad != nil && !k.pending {
					a.report.withhold(Problem{Path: k.report, Address: p.address.String(), Version: known.Version, Reason: k.bad.reason, Detail: k.bad.detail})
				}
			}
			a.report.Pending += files.unread()
			a.report.Offered = append(a.report.Offered, known.offer)
			return known
		}
	}
	if files.pending() {
		a.report.Pending += files.unread()
		return nil
	}
	state := files.state(a.keys[keysOf{p.address.Hostname, p.address.Namespace}])
	if known := a.releases.get(id, state, a.now); known != nil {
		a.memo.retain(known.records)
		a.report.Offered = append(a.report.Offered, known.release.offer)
		return known.release
	}
	problems := len(a.report.Withheld)
	v := &verification{assembly: a, provider: p, files: files, release: &Release{
		version: files.version, Hostname: p.address.Hostname, Version: files.version.String(), Protocols: wire.DefaultProtocols(),
	}}
	if !v.run() {
		return nil
	}
	v.release.offer = v.offer()
	a.report.Offered = append(a.report.Offered, v.release.offer)
	if len(a.report.Withheld) == problems && files.settled(a.now) {
		a.releases.put(id, verified{state, a.now, v.release, v.records})
	}
	return v.release
}

// lastRelease is a release as it was offered after the last scan, or nil.
func (a *assembly) lastRelease(id releaseID) *Release {
	if a.last == nil {
		return nil
	}
	return a.last.Provider(id.address).Release(id.version)
}

// A verification is a release on its way from files to an offer.
type verification struct {
	*assembly
	provider *providerFolder
	files    *releaseFiles
	release  *Release
	sums     []byte
	kept     map[address.Platform]*packageArchive
	notes    []string
	records  []string // of the memo
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
	if !v.signUnsigned() {
		return false
	}
	v.noteDetails()
	return true
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
	v.records = append(v.records, d.report)
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

func (v *verification) readChecksums() (wire.Checksums, bool) {
	d := v.files.checksums
	if d == nil {
		return nil, true
	}
	content, ok := v.read(d)
	if !ok {
		return nil, false
	}
	sums, err := wire.DecodeChecksums(content)
	if err != nil {
		reason := BadChecksums
		if errors.Is(err, wire.ErrNoChecksums) {
			reason = Empty
		}
		v.withhold(d.report, &finding{reason, err.Error()})
		return nil, false
	}
	v.sums = content
	return sums, true
}

func (v *verification) readManifest(sums wire.Checksums) bool {
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
	protocols, err := wire.DecodeManifest(content)
	if err != nil {
		v.withhold(d.report, &finding{BadManifest, err.Error()})
		return false
	}
	v.release.Protocols = protocols
	return true
}

// verifySignature keeps the publisher's SHA256SUMS, signature and keys when
// they verify. A signature that is wrong, or by a key that the namespace's keys
// file does not have, withholds the release. Without such a file nothing is
// known of the publisher, and the signature is as none.
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
	namespace := keysOf{v.provider.address.Hostname, v.provider.address.Namespace}
	file := namespace.file()
	keyring := v.keys[namespace]
	if keyring == nil {
		v.notes = append(v.notes, "the publisher's signature is not checked: put the publisher's public key in "+file)
		return true
	}
	if keyring.Keyring == nil || len(keyring.Keys()) == 0 {
		v.withhold(d.report, found(UnknownKey, "its signature cannot be checked, as %s has no usable key: put the publisher's public key there, or remove that file", file))
		return false
	}
	record := signatureRecord(v.sums, signature, keyring)
	v.records = append(v.records, record)
	key, err := v.memo.verify(record, v.sums, signature, keyring, v.now)
	switch {
	case errors.Is(err, signing.ErrUnknownKey):
		v.withhold(d.report, found(UnknownKey, "%v; if it is the publisher's, add it to %s", err, file))
		return false
	case errors.Is(err, signing.ErrKeyExpired):
		v.withhold(d.report, found(KeyExpired, "%v: sign the release with a valid key", err))
		return false
	case err != nil:
		v.withhold(d.report, found(BadSignature, "%v", err))
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
func (v *verification) checkPackages(sums wire.Checksums) {
	kept := make(map[address.Platform]*packageArchive)
	// A zip goes before a folder of the same platform.
	packages := slices.Clone(v.files.packages)
	slices.SortStableFunc(packages, func(a, b *packageArchive) int {
		return cmp.Compare(min(len(a.folder), 1), min(len(b.folder), 1))
	})
	for _, p := range packages {
		if f := v.checkPackage(p, sums, kept[p.platform]); f != nil {
			v.withhold(p.report, f)
			continue
		}
		kept[p.platform] = p
	}
	v.kept = kept
	for platform, p := range kept {
		v.release.Packages = append(v.release.Packages, &Package{
			Platform: platform,
			release:  v.release,
			H1:       p.h1,
			packedH1: p.detail().packedH1,
			File:     p.file(v.release.Version),
		})
	}
	slices.SortFunc(v.release.Packages, func(a, b *Package) int {
		return cmp.Or(strings.Compare(a.OS, b.OS), strings.Compare(a.Arch, b.Arch))
	})
}

// file is what clients download of a package that has been read.
func (p *packageArchive) file(version string) *File {
	f := &File{
		Name: p.name, Version: version, Platform: p.platform.String(), ContentType: zipType, Size: p.digest.size, SHA256: p.sha256,
		in: inProviders, path: p.path, modTime: p.stamp.modTime, inode: p.stamp.inode, changed: p.stamp.changed,
	}
	if p.folder != nil {
		f.unpacked = layOutZip(p.folder, decodeMembers(p.content, len(p.folder))) // as when it was read
	}
	return f
}

func (v *verification) checkPackage(p *packageArchive, sums wire.Checksums, other *packageArchive) *finding {
	unusable := p.detail().findingOn(p.platform)
	switch sum, listed := sums[p.name]; {
	case p.bad != nil:
		return p.bad
	case sums != nil && !listed:
		return found(NotListed, "SHA256SUMS does not list it: release it with the others or remove it")
	case sums != nil && sum != p.sha256 && p.folder != nil:
		return found(ChecksumMismatch, "packed, it is not the zip that SHA256SUMS lists: put that zip in its place, or remove SHA256SUMS and its signature")
	case sums != nil && sum != p.sha256:
		return found(ChecksumMismatch, "its sha256 is not the one SHA256SUMS lists: copy it again")
	case unusable != nil:
		return unusable
	case other != nil:
		return found(Duplicate, "the release has a package of this platform twice: keep one of them")
	}
	return nil
}

// noteDetails notes what clients on some platforms stumble over.
func (v *verification) noteDetails() {
	var withoutMode, otherHash []string
	for platform, p := range v.kept {
		detail := p.detail()
		if platform.OS != "windows" && detail.program == programWithoutMode {
			withoutMode = append(withoutMode, platform.String())
		}
		if detail.packedH1 != "" {
			otherHash = append(otherHash, platform.String())
		}
	}
	for _, note := range []struct {
		platforms []string
		text      string
	}{
		{withoutMode, "clients on %s cannot run it, since its zip was made on a system without file modes: pack it with the executable bit, as on Linux or macOS"},
		{otherHash, "Terraform that has locked %s from the mirror alone refuses to install it again, since its zip has entries for folders, names like ./x or one name twice: " +
			"pack the files alone, or lock it from its registry"},
	} {
		if len(note.platforms) > 0 {
			slices.Sort(note.platforms)
			v.notes = append(v.notes, fmt.Sprintf(note.text, strings.Join(note.platforms, ", ")))
		}
	}
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
	sums := make(wire.Checksums)
	for _, p := range r.Packages {
		sums[p.File.Name] = p.File.SHA256
	}
	typ := v.provider.address.Name
	r.checksums = newDocumentFile(address.ChecksumsName(typ, r.Version), r.Version, sums.Encode())
	if v.options.Signer != nil {
		r.Keys = []signing.PublicKey{v.options.Signer.PublicKey()}
		r.signedBy = "registry " + r.Keys[0].ID
		r.signature = newSignatureFile(address.SignatureName(typ, r.Version), r.Version, r.checksums.content, v.options.Signer)
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
