package index

import (
	"path"
	"slices"
	"strings"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/index/keys"
	"github.com/caddy-terraform/caddy-terraform-registry/index/offer"
	"github.com/caddy-terraform/caddy-terraform-registry/index/release"
	"github.com/caddy-terraform/caddy-terraform-registry/index/report"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// This file decides which releases of a provider are offered. A release is verified, by package
// release, when all its files have been read. Until then it stays as it was.

// offer verifies the releases of a provider's folder.
func (p *providerFolder) offer(s *scan, trusted *keys.File, before *entry) offered {
	o := offered{metadata: p.addressMetadata(), report: report.New(), since: s.now}
	last, listed := before.provider, before.listed()
	verifier := s.verifier(p, trusted)
	for _, files := range p.ordered {
		if n := o.metadata.File.WithdrawnVersion(files.Version); n != nil && files.any() {
			o.metadata.Withdraw(files.Version, n)
			o.report.Withdraw(files.path(p), p.Address, files.Text, n)
			continue
		}
		r, pending := s.offerRelease(p, files, verifier, before, &o)
		if r != nil {
			o.releases = append(o.releases, r)
		}
		if pending {
			o.pending.Versions = append(o.pending.Versions, files.Text)
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
func (s *scan) offerRelease(p *providerFolder, files *releaseFiles, verifier *release.Verifier, before *entry, o *offered) (r *Release, pending bool) {
	report, last, trusted := o.report, before.release(files.Text), verifier.Keys
	if files.bad != nil {
		o.passing = true
		// Without a document that is there, it would be offered as if nobody vouched for it.
		if last != nil || files.bad.Passes() || !files.onlyPackages {
			return last, last == nil && files.bad.Passes()
		}
	}
	if len(files.packages) == 0 {
		for d := range files.Documents() {
			report.Ignore(d.ReportPath(), tree.NotPartOfTree, "no package of version "+files.Text+" is here: copy its zip files too, or remove it")
		}
		if files.Docs != "" {
			report.Ignore(path.Join(p.Report, strings.TrimPrefix(files.Docs, p.Dir)), tree.NotPartOfTree, "no package of version "+files.Text+" is here: copy its zip files too, or remove it")
		}
		return nil, false
	}
	// It is unknown which signatures count, or whether the namespace is signed at all: without
	// a signature the release would be offered as the registry's own.
	if trusted.IsUndecided(files.Signature != nil && files.Checksums != nil) {
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
				report.Withhold(k.ReportPath(), p.Address, files.Text, k.Bad)
			}
		}
		report.Pending += files.unread()
		o.passing = true
		return last.WithDocs(files.Docs), files.pending()
	}
	if files.pending() {
		report.Pending += files.unread()
		return nil, true
	}
	state := files.state(trusted)
	r = last
	if !last.IsVerified(state, s.now, verifiedFor) {
		verified, unread, problems := verifier.Verify(&files.Files, files.toVerify(), state)
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

// verifier returns the Verifier of the releases of a provider.
func (s *scan) verifier(p *providerFolder, trusted *keys.File) *release.Verifier {
	return &release.Verifier{
		Address: p.Address, Folder: p.Report, Keys: trusted,
		Part: s.tree.Providers, Memo: &s.memo, Signer: s.options.Signer, RequireSignatures: s.options.RequireSignatures, Began: s.now, Now: s.options.now,
	}
}
