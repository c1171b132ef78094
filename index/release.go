package index

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/signing"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// What is offered of a provider is decided here: files and their digests go in,
// verified releases and problems come out.

// An offeredProvider is what can be offered of a provider's folder.
type offeredProvider struct {
	provider *Provider // nil if there is nothing to offer
	pending  pending   // what has not been read yet
	report   *Report
}

// offerProvider verifies the releases of a folder. keys are those of its
// namespace, nil if there is no file of them.
func (s *scan) offerProvider(p *providerFolder, keys *keysFile) offeredProvider {
	o := offeredProvider{report: newReport()}
	last := s.last.provider(p.address)
	listed := last != nil && s.last.listed(p.address)
	var releases []*Release
	for _, files := range p.ordered {
		r := s.offerRelease(p, files, keys, last.Release(files.text), o.report)
		if r != nil {
			releases = append(releases, r)
		}
		if files.pending() {
			o.pending.versions = append(o.pending.versions, files.text)
			o.pending.list = o.pending.list || r == nil && !listed
		}
	}
	if releases != nil {
		o.provider = s.releases.provider(p.address, releases)
	}
	return o
}

// offerRelease returns the release that files make, or nil. last is the release
// as it was offered after the last scan, nil if it was not.
func (s *scan) offerRelease(p *providerFolder, files *releaseFiles, keys *keysFile, last *Release, report *Report) *Release {
	if len(files.packages) == 0 {
		for _, d := range files.documents() {
			report.ignore(d.report, NotPartOfTree, "no package of version "+files.text+" is here: copy its zip files too, or remove it")
		}
		return nil
	}
	// A release that is added to, or whose files were touched, stays as it was
	// until all of it has been read: a list without it would have clients choose
	// an older one. A file of it that has changed by now is not served.
	if last != nil && (files.pending() || files.rewritten(last, s.options.now())) {
		for _, k := range files.packages {
			if k.bad != nil && !k.pending {
				report.withhold(k.bad.at(k.report, p.address, files.text))
			}
		}
		report.Pending += files.unread()
		report.Offered = append(report.Offered, last.offer)
		return last
	}
	if files.pending() {
		report.Pending += files.unread()
		return nil
	}
	id, state := releaseID{p.address, files.text}, files.state(keys)
	v, known := s.releases.get(id, state, s.now)
	if known {
		s.memo.retain(files.documents(), v.signature)
	} else {
		var problems []Problem
		v, problems = s.verify(p, files, keys)
		report.Withheld = append(report.Withheld, problems...)
		if v.release == nil {
			return nil
		}
		if len(problems) == 0 && files.settled(s.now) {
			v.state, v.since = state, s.now
			s.releases.put(id, v)
		}
	}
	report.Offered = append(report.Offered, v.release.offer)
	return v.release
}

// verify makes the release of files, without one if the version is withheld.
func (s *scan) verify(p *providerFolder, files *releaseFiles, keys *keysFile) (v verifiedRelease, problems []Problem) {
	withhold := func(path string, f *finding) {
		problems = append(problems, f.at(path, p.address, files.text))
	}
	checksums, sums, bad := s.readChecksums(files.checksums)
	if bad != nil {
		withhold(files.checksums.report, bad)
		return verifiedRelease{}, problems
	}
	protocols, bad := s.readManifest(files.manifest, sums)
	if bad != nil {
		withhold(files.manifest.report, bad)
		return verifiedRelease{}, problems
	}
	signed, bad := s.verifySignature(files, checksums, keys, keysOf{p.address.Hostname, p.address.Namespace})
	if bad != nil {
		withhold(files.signature.report, bad)
		return verifiedRelease{}, problems
	}
	packages := checkPackages(files.packages, sums, withhold)
	if len(packages) == 0 {
		return verifiedRelease{}, problems
	}
	r := &Release{
		version: files.version, Hostname: p.address.Hostname, Version: files.text,
		protocols: protocols, Packages: make([]*Package, len(packages)),
	}
	for i, k := range packages {
		r.Packages[i] = &Package{Platform: k.platform, File: k.file(files.text), H1: k.h1, packedH1: k.detail().packedH1, release: r}
	}
	switch {
	case signed.signature != nil:
		r.Signature, r.Keys = Signature{ByPublisher, signed.key.ID}, keys.Keys()
		r.checksums = newDocumentFile(files.checksums.name, r.Version, checksums)
		r.signatureFile = newDocumentFile(files.signature.name, r.Version, signed.signature)
	case s.options.RequireSignatures:
		detail := "its publisher did not sign it, which `signatures require` asks for"
		if signed.note != "" {
			detail += ": " + signed.note
		}
		withhold(p.report, found(Unsigned, "%s", detail))
		return verifiedRelease{}, problems
	default:
		r.sign(p.address.Name, s.options.Signer)
	}
	r.offer = newOffer(p.address, r, signed.note, packages)
	return verifiedRelease{release: r, signature: signed.record}, problems
}

// readDocument returns the content of one of a release's documents.
func (s *scan) readDocument(d *document) ([]byte, *finding) {
	if known, ok := s.memo.get(d.report, d.stamp); ok {
		return known.content, nil
	}
	content, err := s.tree.Providers.read(d.path)
	if err != nil {
		return nil, asFinding(err)
	}
	s.memo.put(d.report, digest{stamp: d.stamp, content: content}, s.options.now())
	return content, nil
}

// readChecksums returns SHA256SUMS and what it lists, both nil if there is none.
func (s *scan) readChecksums(d *document) (content []byte, sums wire.Checksums, bad *finding) {
	if d == nil {
		return nil, nil, nil
	}
	if content, bad = s.readDocument(d); bad != nil {
		return nil, nil, bad
	}
	sums, err := wire.DecodeChecksums(content)
	switch {
	case errors.Is(err, wire.ErrNoChecksums):
		return nil, nil, &finding{Empty, err.Error()}
	case err != nil:
		return nil, nil, &finding{BadChecksums, err.Error()}
	}
	return content, sums, nil
}

// readManifest returns the plugin protocol versions of a release.
func (s *scan) readManifest(d *document, sums wire.Checksums) (protocols []string, bad *finding) {
	if d == nil {
		return wire.DefaultProtocols(), nil
	}
	content, bad := s.readDocument(d)
	if bad != nil {
		return nil, bad
	}
	if sum, listed := sums[d.name]; listed && sum != sha256Of(content) {
		return nil, found(ChecksumMismatch, "its sha256 is not the one SHA256SUMS lists: copy the release again")
	}
	protocols, err := wire.DecodeManifest(content)
	if err != nil {
		return nil, &finding{BadManifest, err.Error()}
	}
	return protocols, nil
}

// A publisherSignature is what is known of a publisher's signature of SHA256SUMS.
type publisherSignature struct {
	signature []byte            // nil if there is none that can be used
	key       signing.PublicKey // that made it
	record    wire.SHA256       // of the memo; zero if there is none
	note      string            // what the operator should know of it
}

// verifySignature verifies the publisher's signature, if there is one. A signature
// that is wrong, or by a key that the namespace's keys file does not have,
// withholds the release. Without such a file nothing is known of the publisher,
// and the signature is not used.
func (s *scan) verifySignature(files *releaseFiles, checksums []byte, keys *keysFile, namespace keysOf) (signed publisherSignature, bad *finding) {
	switch {
	case files.signature == nil:
		return signed, nil
	case files.checksums == nil:
		signed.note = "there is a signature without the SHA256SUMS it is of"
		return signed, nil
	}
	signature, bad := s.readDocument(files.signature)
	switch {
	case bad != nil:
		return signed, bad
	case keys == nil:
		signed.note = "the publisher's signature is not checked: put the publisher's public key in " + namespace.file()
		return signed, nil
	case keys.Keyring == nil || len(keys.Keys()) == 0:
		return signed, found(UnknownKey, "its signature cannot be checked, as %s has no usable key: put the publisher's public key there, or remove that file", namespace.file())
	}
	key, record, err := s.memo.verify(checksums, signature, keys, s.now)
	switch {
	case errors.Is(err, signing.ErrUnknownKey):
		return signed, found(UnknownKey, "%v; if it is the publisher's, add it to %s", err, namespace.file())
	case errors.Is(err, signing.ErrKeyExpired):
		return signed, found(KeyExpired, "%v: sign the release with a valid key", err)
	case err != nil:
		return signed, found(BadSignature, "%v", err)
	}
	signed = publisherSignature{signature: signature, key: key, record: record}
	if !key.Expires.IsZero() && key.Expires.Before(s.now) {
		signed.note = fmt.Sprintf("the publisher's key %s has expired on %s: clients warn", key.ID, key.Expires.Format(time.DateOnly))
	}
	return signed, nil
}

// checkPackages returns the packages that are what the release says they are,
// ordered by platform, and calls withhold for the others.
func checkPackages(all []*packageArchive, sums wire.Checksums, withhold func(path string, f *finding)) []*packageArchive {
	byPlatform := make(map[address.Platform]*packageArchive, len(all))
	// A zip comes before a folder of the same platform.
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b *packageArchive) int {
		return cmp.Compare(min(len(a.folder), 1), min(len(b.folder), 1))
	})
	for _, p := range all {
		if f := p.check(sums, byPlatform[p.platform]); f != nil {
			withhold(p.report, f)
			continue
		}
		byPlatform[p.platform] = p
	}
	return slices.SortedFunc(maps.Values(byPlatform), func(a, b *packageArchive) int { return a.platform.Compare(b.platform) })
}

// check returns why a package is withheld, nil if it is not. sums are nil without
// a SHA256SUMS, other is another package of the platform.
func (p *packageArchive) check(sums wire.Checksums, other *packageArchive) *finding {
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

// file is what clients download of a package that has been read.
func (p *packageArchive) file(version string) *File {
	f := &File{
		Name: p.name, Version: version, Platform: p.platform.String(), ContentType: zipType, Size: p.digest.size, SHA256: p.sha256,
		in: inProviders, path: p.path, modTime: p.stamp.modTime, inode: p.stamp.inode, changed: p.stamp.changed,
	}
	if p.folder != nil {
		f.packed = layOutZip(p.folder, decodeMembers(p.content, len(p.folder))) // as when it was read
	}
	return f
}

// sign gives a release without a usable signature the registry's own SHA256SUMS
// and signature. Without a signer it has no signature.
func (r *Release) sign(typ string, signer Signer) {
	sums := make(wire.Checksums)
	for _, p := range r.Packages {
		sums[p.File.Name] = p.File.SHA256
	}
	r.checksums = newDocumentFile(address.ChecksumsName(typ, r.Version), r.Version, sums.Encode())
	if signer != nil {
		key := signer.PublicKey()
		r.Signature, r.Keys = Signature{ByRegistry, key.ID}, []signing.PublicKey{key}
		r.signatureFile = newSignatureFile(address.SignatureName(typ, r.Version), r.Version, r.checksums.content, signer)
	}
}

// newOffer is a release as a report has it. note may be empty.
func newOffer(a address.Address, r *Release, note string, packages []*packageArchive) Offer {
	o := Offer{Kind: KindProvider, Address: a.String(), Version: r.Version, Signature: r.Signature.String()}
	if note != "" {
		o.Notes = append(o.Notes, note)
	}
	o.Notes = append(o.Notes, packageNotes(packages)...)
	if r.Signature.By == NotSigned {
		o.Notes = append(o.Notes, "it is not signed: only the mirror offers it")
	}
	for _, p := range r.Packages {
		o.Platforms = append(o.Platforms, p.Platform.String())
	}
	return o
}

// packageNotes say what clients on some platforms have trouble with.
func packageNotes(packages []*packageArchive) (notes []string) {
	var withoutMode, otherHash []string
	for _, p := range packages {
		detail := p.detail()
		if p.platform.OS != "windows" && detail.program == programWithoutMode {
			withoutMode = append(withoutMode, p.platform.String())
		}
		if detail.packedH1 != "" {
			otherHash = append(otherHash, p.platform.String())
		}
	}
	if len(withoutMode) > 0 {
		notes = append(notes, fmt.Sprintf("clients on %s cannot run it, since its zip was made on a system without file modes: "+
			"pack it with the executable bit, as on Linux or macOS", strings.Join(withoutMode, ", ")))
	}
	if len(otherHash) > 0 {
		notes = append(notes, fmt.Sprintf("Terraform that has locked %s from the mirror alone refuses to install it again, "+
			"since its zip has entries for folders, names like ./x or one name twice: pack the files alone, or lock it from its registry",
			strings.Join(otherHash, ", ")))
	}
	return notes
}

// A releaseMemo remembers verified releases, with their documents encoded. A
// release of which no file, nor its namespace's keys, has changed is the same
// release: a scan that finds nothing new costs little more than the walk.
type releaseMemo struct {
	mutex     sync.Mutex
	releases  generations[releaseID, verifiedRelease]
	providers map[address.Address]*Provider
}

type releaseID struct {
	address address.Address
	version string
}

// A verifiedRelease is a release and what it was verified with.
type verifiedRelease struct {
	release   *Release
	signature wire.SHA256 // the memo's record of the publisher's signature, if there is one
	state     wire.SHA256 // of its files and keys
	since     time.Time
}

// verifiedFor is how long a verification holds: keys expire with time alone.
const verifiedFor = time.Hour

// begin starts a scan.
func (m *releaseMemo) begin() {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.releases.begin()
}

// get returns the release if its files are as they were.
func (m *releaseMemo) get(id releaseID, state wire.SHA256, now time.Time) (v verifiedRelease, ok bool) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	v, ok = m.releases.get(id)
	if !ok || v.state != state || now.Sub(v.since) >= verifiedFor || now.Before(v.since) {
		return verifiedRelease{}, false
	}
	m.releases.put(id, v)
	return v, true
}

func (m *releaseMemo) put(id releaseID, v verifiedRelease) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.releases.put(id, v)
}

// provider returns the provider with these releases, the same as before if it
// has not changed.
func (m *releaseMemo) provider(a address.Address, releases []*Release) *Provider {
	m.mutex.Lock()
	p := m.providers[a]
	m.mutex.Unlock()
	if p != nil && slices.Equal(p.Releases, releases) {
		return p
	}
	p = newProvider(a, releases)
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.providers == nil {
		m.providers = make(map[address.Address]*Provider)
	}
	m.providers[a] = p
	return p
}

// finish forgets what the scan that made s did not find.
func (m *releaseMemo) finish(s *Snapshot) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.releases.finish()
	maps.DeleteFunc(m.providers, func(a address.Address, p *Provider) bool { return s.providers[a] != p })
}
