// Package release makes verified releases of the files of a provider's versions, or says why a
// version is withheld.
package release

import (
	"errors"
	"iter"
	"slices"
	"time"

	version "github.com/hashicorp/go-version"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/archive"
	"github.com/caddy-terraform/caddy-terraform-registry/index/keys"
	"github.com/caddy-terraform/caddy-terraform-registry/index/memo"
	"github.com/caddy-terraform/caddy-terraform-registry/index/offer"
	"github.com/caddy-terraform/caddy-terraform-registry/index/report"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// Files are the files of one version of a provider, in any place in its folder, besides its
// packages.
type Files struct {
	Version   *version.Version
	Text      string    // of the version
	Checksums *Document // nil if there is none
	Signature *Document // nil if there is none
	Manifest  *Document // nil if there is none
	Docs      string    // the folder of its documentation; empty if there is none
}

// A Document is a small file beside the packages.
type Document struct {
	tree.Location
	Stamp   tree.Stamp
	Content []byte // nil if it has not been read yet
}

// Documents yields the documents that a version has.
func (f *Files) Documents() iter.Seq[*Document] {
	return func(yield func(*Document) bool) {
		for _, d := range [...]*Document{f.Checksums, f.Signature, f.Manifest} {
			if d != nil && !yield(d) {
				return
			}
		}
	}
}

// settled reports whether a further change to a document would be noticed. Packages were
// checked when they were read.
func (f *Files) settled(now time.Time) bool {
	for d := range f.Documents() {
		if !d.Stamp.Settled(now) {
			return false
		}
	}
	return true
}

// A Verifier verifies the releases of one provider, one after the other.
type Verifier struct {
	Address address.Address
	Folder  string     // of the provider, by its path in the report
	Keys    *keys.File // of its namespace; nil if there is no keys file

	Part              tree.Part // where the documents lie
	Memo              *memo.Memo
	Signer            offer.Signer // signs what the publisher did not sign; nil: nothing does
	RequireSignatures bool         // withholds releases that their publisher did not sign
	Began             time.Time    // when the scan began
	Now               func() time.Time

	packages []Package // of the release that is being verified: a tree has a million
}

// Identify identifies a release if the keys verify it. Other faults of the release are found
// later.
func (v *Verifier) Identify(files *Files) (r keys.Release, ok bool) {
	if files.Checksums == nil || files.Signature == nil {
		return r, false
	}
	checksums, bad := v.readDocument(files.Checksums)
	if bad != nil {
		return r, false
	}
	c, bad := v.claim(files, checksums)
	if bad != nil {
		return r, false
	}
	return v.Keys.Identify(c, v.Memo, v.Began)
}

// Verify makes the release of files and all their packages, or nil if the version is withheld. state
// identifies the files and keys. unread says why, if a document is to blame.
func (v *Verifier) Verify(files *Files, all iter.Seq[Package], state wire.SHA256) (r *offer.Release, unread *tree.Finding, problems *report.Report) {
	problems = new(report.Report)
	withhold := func(path string, f *tree.Finding) {
		problems.Withhold(path, v.Address, files.Text, f)
	}
	checksums, sums, bad := v.readChecksums(files.Checksums)
	if bad != nil {
		withhold(files.Checksums.ReportPath(), bad)
		return nil, bad, problems
	}
	protocols, bad := v.readManifest(files.Manifest, sums)
	if bad != nil {
		withhold(files.Manifest.ReportPath(), bad)
		return nil, bad, problems
	}
	c, bad := v.claim(files, checksums)
	var verdict keys.Verdict
	if bad == nil {
		verdict, bad = v.Keys.Judge(c, v.Memo, v.Began)
	}
	if bad != nil {
		at := v.Folder
		if files.Signature != nil {
			at = files.Signature.ReportPath()
		}
		withhold(at, bad)
		return nil, bad, problems
	}
	v.packages = slices.AppendSeq(v.packages[:0], all)
	packages := v.checkPackages(files, v.packages, sums, withhold)
	if len(packages) == 0 {
		return nil, nil, problems
	}
	var newest int64
	var changed []offer.ChangedBytes
	offered, zips := make([]offer.Package, len(packages)), make([]offer.File, len(packages)) // two allocations in all
	for i := range packages {
		k := &packages[i]
		zips[i] = k.file(v.zip(files, k), files.Text)
		offered[i] = offer.Package{Platform: k.Platform, File: &zips[i], FileHashes: k.FileHashes, PackedHashes: k.detail().PackedHashes}
		newest = max(newest, k.Stamp.ModTime)
		changed = append(changed, offer.ChangesIn(k.Record, k.Location, k.PlatformText)...)
	}
	for d := range files.Documents() {
		newest = max(newest, d.Stamp.ModTime)
	}
	parts := offer.ReleaseParts{
		Address: v.Address, Version: files.Version, Protocols: protocols, Packages: offered, Changed: changed, Published: newest,
		Docs: files.Docs, Signer: v.Signer,
	}
	if files.Checksums != nil {
		parts.Checksums = offer.Document{Name: files.Checksums.Name, Content: checksums}
	}
	if verdict.Signed {
		parts.Signature, parts.KeyID, parts.Keys = offer.Document{Name: files.Signature.Name, Content: c.Signature}, verdict.Key.ID, v.Keys.Keys()
	} else if v.RequireSignatures {
		detail := "its publisher did not sign it, which `signatures require` asks for"
		if verdict.Note != "" {
			detail += ": " + verdict.Note
		}
		withhold(v.Folder, tree.Findingf(tree.Unsigned, "%s", detail))
		return nil, nil, problems
	}
	if verdict.Note != "" {
		parts.Notes = append(parts.Notes, verdict.Note)
	}
	parts.Notes = append(parts.Notes, packageNotes(packages)...)
	if len(problems.Withheld) == 0 && files.settled(v.Began) {
		parts.State, parts.Verified = state, v.Began
	}
	return offer.NewRelease(parts), nil, problems
}

// readDocument returns the content of a document of a release.
func (v *Verifier) readDocument(d *Document) ([]byte, *tree.Finding) {
	if d.Content != nil {
		return d.Content, nil
	}
	content, err := v.Part.ReadDocument(d.Path())
	if err != nil {
		return nil, tree.AsFinding(err)
	}
	d.Content = content // the next entry may have the same listing
	v.Memo.Put(&d.Location, memo.Record{Stamp: d.Stamp, Digest: archive.Digest{Content: content}}, v.Now())
	return content, nil
}

// readChecksums returns SHA256SUMS and its entries, both nil if there is none.
func (v *Verifier) readChecksums(d *Document) (content []byte, sums wire.Checksums, bad *tree.Finding) {
	if d == nil {
		return nil, nil, nil
	}
	if content, bad = v.readDocument(d); bad != nil {
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
func (v *Verifier) readManifest(d *Document, sums wire.Checksums) (protocols []string, bad *tree.Finding) {
	if d == nil {
		return wire.DefaultProtocols(), nil
	}
	content, bad := v.readDocument(d)
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

// claim returns what the publisher claims by the signature of a release, if there is one. The
// signature is not read without a SHA256SUMS.
func (v *Verifier) claim(files *Files, checksums []byte) (c keys.Claim, bad *tree.Finding) {
	c = keys.Claim{Address: v.Address, Version: files.Text, Checksums: checksums}
	if files.Signature == nil {
		return c, nil
	}
	c.Signature, c.File = []byte{}, &files.Signature.Location
	if files.Checksums != nil {
		c.Signature, bad = v.readDocument(files.Signature)
	}
	return c, bad
}
