package index

import (
	"errors"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/archive"
	"github.com/caddy-terraform/caddy-terraform-registry/index/keys"
	"github.com/caddy-terraform/caddy-terraform-registry/index/memo"
	"github.com/caddy-terraform/caddy-terraform-registry/index/offer"
	"github.com/caddy-terraform/caddy-terraform-registry/index/report"
	"github.com/caddy-terraform/caddy-terraform-registry/signing"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// This file decides which releases of a provider are offered: it turns files and their
// digests into verified releases and problems.

// offerProvider verifies the releases of a folder. trusted are the keys of its namespace, nil
// if it has no keys file. before is the entry of the folder so far, which may be nil.
func (s *scan) offerProvider(p *providerFolder, trusted *keys.File, before *entry) offered {
	o := offered{metadata: p.addressMetadata(), report: report.New(), since: s.now}
	last, listed := before.providerOrNil(), before.listed()
	for _, files := range p.ordered {
		if n := o.metadata.File.WithdrawnVersion(files.version); n != nil && files.any() {
			o.metadata.Withdraw(files.version, n)
			o.report.Withdraw(files.path(p), p.Address, files.text, n)
			continue
		}
		r, pending := s.offerRelease(p, files, trusted, before, &o)
		if r != nil {
			o.releases = append(o.releases, r)
		}
		if pending {
			o.pending.Versions = append(o.pending.Versions, files.text)
			o.pending.List = o.pending.List || r == nil && !listed
		}
	}
	switch {
	case o.releases == nil:
	case last != nil && slices.Equal(before.releases, o.releases) && before.metadata.Equal(o.metadata):
		o.provider = last
	default:
		o.provider = offer.NewProvider(p.Address, o.releases, o.metadata)
	}
	return o
}

// verifiedFor is how long a verification is valid: keys expire over time.
const verifiedFor = time.Hour

// offerRelease returns the release that consists of files, or nil, and whether a later scan
// may return another one.
func (s *scan) offerRelease(p *providerFolder, files *releaseFiles, trusted *keys.File, before *entry, o *offered) (r *Release, pending bool) {
	report, last := o.report, before.release(files.text)
	if files.bad != nil {
		o.passing = true
		if last != nil || files.bad.Passes() {
			return last, last == nil
		}
	}
	if len(files.packages) == 0 {
		for d := range files.documents() {
			report.Ignore(d.ReportPath(), tree.NotPartOfTree, "no package of version "+files.text+" is here: copy its zip files too, or remove it")
		}
		if files.docs != "" {
			report.Ignore(path.Join(p.Report, strings.TrimPrefix(files.docs, p.Dir)), tree.NotPartOfTree, "no package of version "+files.text+" is here: copy its zip files too, or remove it")
		}
		return nil, false
	}
	// It is unknown which signatures count, or whether the namespace is signed at all: without
	// a signature the release would be offered as the registry's own.
	if trusted.IsUndecided(files.signature != nil && files.checksums != nil) {
		report.Pending += len(files.packages)
		o.passing = true
		return nil, true
	}
	// A release stays as it was while files are added to it or have been touched, until all
	// of it has been read: a list without it would make clients choose an older version. A
	// file of it that has changed meanwhile is not served.
	if last != nil && (files.pending() || files.rewritten(last, s.options.now())) {
		for _, k := range files.packages {
			if k.Bad != nil && !k.pending {
				report.Withhold(k.ReportPath(), p.Address, files.text, k.Bad)
			}
		}
		report.Pending += files.unread()
		o.passing = true
		return last.WithDocs(files.docs), files.pending()
	}
	if files.pending() {
		report.Pending += files.unread()
		return nil, true
	}
	state := files.state(trusted)
	r = last
	if !last.IsVerified(state, s.now, verifiedFor) {
		verified, unread, problems := s.verify(p, files, trusted, state)
		report.Merge(problems)
		if unread.IsFault() { // it keeps its earlier state
			o.passing, o.unread = true, o.unread || unread.Passes()
			return last, last == nil && unread.Passes()
		}
		if verified == nil {
			return nil, false
		}
		o.passing = o.passing || verified.Verified().IsZero()
		r = verified
	}
	if s.needsCopy(r, files, trusted) {
		report.Pending += len(files.packages)
		o.passing = true
		return last, true
	}
	if at := r.Verified(); !at.IsZero() {
		o.sinceEarlier(at)
	}
	return r, false
}

// needsCopy reports whether a release that the keys file has verified must wait until the
// copy of the keys file lists it. If the keys file were lost before that, the release could
// not be told from a forged one.
func (s *scan) needsCopy(r *Release, files *releaseFiles, trusted *keys.File) bool {
	return s.copies.Store != nil && trusted.IsFile() && r.Signature.By == ByPublisher && !files.copied
}

// verify makes the release of files, or nil if the version is withheld. state
// identifies the files and keys. unread says why, if a document is to blame.
func (s *scan) verify(p *providerFolder, files *releaseFiles, trusted *keys.File, state wire.SHA256) (r *Release, unread *tree.Finding, problems *Report) {
	problems = new(Report)
	withhold := func(path string, f *tree.Finding) {
		problems.Withhold(path, p.Address, files.text, f)
	}
	checksums, sums, bad := s.readChecksums(files.checksums)
	if bad != nil {
		withhold(files.checksums.ReportPath(), bad)
		return nil, bad, problems
	}
	protocols, bad := s.readManifest(files.manifest, sums)
	if bad != nil {
		withhold(files.manifest.ReportPath(), bad)
		return nil, bad, problems
	}
	verdict, signature, bad := s.judge(p, files, checksums, trusted)
	if bad != nil {
		at := p.Report
		if files.signature != nil {
			at = files.signature.ReportPath()
		}
		withhold(at, bad)
		return nil, bad, problems
	}
	packages := checkPackages(files.packages, sums, withhold)
	if len(packages) == 0 {
		return nil, nil, problems
	}
	var newest int64
	var changed []ChangedBytes
	offered, zips := make([]Package, len(packages)), make([]File, len(packages)) // two allocations in all
	for i, k := range packages {
		zips[i] = k.file(files.text)
		offered[i] = Package{Platform: k.platform, File: &zips[i], H1: k.H1, PackedH1: k.detail().PackedH1}
		newest = max(newest, k.Stamp.ModTime)
		changed = append(changed, offer.ChangesIn(k.Record, k.ReportPath(), k.platformText)...)
	}
	for d := range files.documents() {
		newest = max(newest, d.stamp.ModTime)
	}
	parts := offer.ReleaseParts{
		Address: p.Address, Version: files.version, Protocols: protocols, Packages: offered, Changed: changed, Published: newest,
		Docs: files.docs, Signer: s.options.Signer,
	}
	if files.checksums != nil {
		parts.Checksums = offer.Document{Name: files.checksums.Name, Content: checksums}
	}
	if verdict.Signed {
		parts.Signature, parts.KeyID, parts.Keys = offer.Document{Name: files.signature.Name, Content: signature}, verdict.Key.ID, trusted.Keys()
	} else if s.options.RequireSignatures {
		detail := "its publisher did not sign it, which `signatures require` asks for"
		if verdict.Note != "" {
			detail += ": " + verdict.Note
		}
		withhold(p.Report, tree.Findingf(tree.Unsigned, "%s", detail))
		return nil, nil, problems
	}
	if verdict.Note != "" {
		parts.Notes = append(parts.Notes, verdict.Note)
	}
	details := make(map[address.Platform]archive.PackageDetail, len(packages))
	for _, k := range packages {
		details[k.platform] = k.detail()
	}
	parts.Notes = append(parts.Notes, offer.PackageNotes(details)...)
	if len(problems.Withheld) == 0 && files.settled(s.now) {
		parts.State, parts.Verified = state, s.now
	}
	return offer.NewRelease(parts), nil, problems
}

// readDocument returns the content of a document of a release.
func (s *scan) readDocument(d *document) ([]byte, *tree.Finding) {
	if d.content != nil {
		return d.content, nil
	}
	content, err := s.tree.Providers.ReadDocument(d.Path())
	if err != nil {
		return nil, tree.AsFinding(err)
	}
	d.content = content // the next entry may have the same listing
	s.memo.Put(&d.Location, memo.Record{Stamp: d.stamp, Digest: archive.Digest{Content: content}}, s.options.now())
	return content, nil
}

// readChecksums returns SHA256SUMS and its entries, both nil if there is none.
func (s *scan) readChecksums(d *document) (content []byte, sums wire.Checksums, bad *tree.Finding) {
	if d == nil {
		return nil, nil, nil
	}
	if content, bad = s.readDocument(d); bad != nil {
		return nil, nil, bad
	}
	sums, err := wire.DecodeChecksums(content)
	switch {
	case errors.Is(err, wire.ErrNoChecksums):
		return nil, nil, tree.Findingf(tree.Empty, "%v", err)
	case err != nil:
		return nil, nil, tree.Findingf(tree.BadChecksums, "%v", err)
	}
	return content, sums, nil
}

// readManifest returns the plugin protocol versions of a release.
func (s *scan) readManifest(d *document, sums wire.Checksums) (protocols []string, bad *tree.Finding) {
	if d == nil {
		return wire.DefaultProtocols(), nil
	}
	content, bad := s.readDocument(d)
	if bad != nil {
		return nil, bad
	}
	if sum, listed := sums[d.Name]; listed && sum != wire.SHA256Of(content) {
		return nil, tree.Findingf(tree.ChecksumMismatch, "its sha256 is not the one SHA256SUMS lists: copy the release again")
	}
	protocols, err := wire.DecodeManifest(content)
	if err != nil {
		return nil, tree.Findingf(tree.BadManifest, "%v", err)
	}
	return protocols, nil
}

// judge decides whether the publisher's signature counts, if there is one. signature is its
// content. It is not read without a SHA256SUMS.
func (s *scan) judge(p *providerFolder, files *releaseFiles, checksums []byte, trusted *keys.File) (v keys.Verdict, signature []byte, bad *tree.Finding) {
	if files.signature != nil {
		signature = []byte{}
		if files.checksums != nil {
			if signature, bad = s.readDocument(files.signature); bad != nil {
				return v, nil, bad
			}
		}
	}
	c := keys.Claim{Address: p.Address, Version: files.text, Checksums: checksums, Signature: signature}
	v, bad = trusted.Judge(c, func() (signing.PublicKey, error) {
		return s.memo.Verify(&files.signature.Location, checksums, signature, trusted, s.now)
	}, s.now)
	return v, signature, bad
}

// checkPackages returns the packages that agree with the release, ordered by platform, and
// calls withhold for the others.
func checkPackages(all []*packageArchive, sums wire.Checksums, withhold func(path string, f *tree.Finding)) []*packageArchive {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b *packageArchive) int {
		switch c := a.platform.Compare(b.platform); {
		case c != 0 || a.isFolder() == b.isFolder():
			return c
		case b.isFolder(): // a zip comes before a folder of the same platform
			return -1
		}
		return 1
	})
	kept := all[:0]
	for _, p := range all {
		var other *packageArchive
		if n := len(kept); n > 0 && kept[n-1].platform == p.platform {
			other = kept[n-1]
		}
		if f := p.check(sums, other); f != nil {
			withhold(p.ReportPath(), f)
			continue
		}
		kept = append(kept, p)
	}
	return kept
}

// check returns why a package is withheld, or nil if it is not. sums are nil without a
// SHA256SUMS, and other is another package for the platform.
func (p *packageArchive) check(sums wire.Checksums, other *packageArchive) *tree.Finding {
	unusable := p.detail().FindingOn(p.platform)
	switch sum, listed := sums[p.zip()]; {
	case p.Bad != nil:
		return p.Bad
	case sums != nil && !listed:
		return tree.Findingf(tree.NotListed, "SHA256SUMS does not list it: release it with the others or remove it")
	case sums != nil && sum != p.SHA256 && p.isFolder():
		return tree.Findingf(tree.ChecksumMismatch, "packed, it is not the zip that SHA256SUMS lists: put that zip in its place, or remove SHA256SUMS and its signature")
	case sums != nil && sum != p.SHA256:
		return tree.Findingf(tree.ChecksumMismatch, "its sha256 is not the one SHA256SUMS lists: copy it again")
	case unusable != nil:
		return unusable
	case other != nil:
		return tree.Findingf(tree.Duplicate, "the release has a package of this platform twice: keep one of them")
	}
	return nil
}

// file returns the file that clients download of a package that has been read.
func (p *packageArchive) file(version string) File {
	var packed archive.Packed
	if p.unpacked != nil {
		packed = p.unpacked.Pack(p.Digest) // the files as they were read
	}
	f := offer.NewFile(p.zip(), p.Record.Size, p.SHA256, offer.InProviders, p.Dir, p.Name, p.Stamp, packed)
	f.Version, f.Platform = version, p.platformText
	f.NoteChanges(p.part)
	return f
}
