package pull

import (
	"context"
	"slices"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/offer"
	"github.com/caddy-terraform/caddy-terraform-registry/registryhcl"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// Provider returns a provider with all versions of the tree and of the origin in its
// lists. If the origin fails, they may be the tree's lists.
func (o *Offers) Provider(p index.Place) (*index.Provider, error) {
	p.Address = p.Clone() // it stays in memory longer than the request
	present := o.tree.Provider(p)
	return mergedLists(o, p, &o.providers, present, func(metadata *registryhcl.File, origin Offering) (*index.Provider, int) {
		size := 1 << 10
		for _, v := range origin.Versions {
			size += 256 + 64*len(v.Platforms)
		}
		return offer.MergedProvider(p.Address, present, origin.Versions, metadata, origin.listAge()), size
	})
}

// A documentID identifies a merged document: VERSION.json, or the description of the
// package for a platform. VERSION.json has a separate form for clients that know only h1:.
type documentID struct {
	address  address.Address
	version  string
	download bool // not VERSION.json
	platform address.Platform
	h1Only   bool
}

// A mergedDocument merges a description in the tree with the origin's. It is valid for a
// while, as long as the tree does not change.
type mergedDocument struct {
	present *index.Release // nil: the tree has none
	*wire.Document
}

func (d mergedDocument) size() int { return len(d.Head) + len(d.Tail) }

// keptDocument returns a document that was kept, and nil if there is none.
func (o *Offers) keptDocument(id documentID, present *index.Release) *wire.Document {
	if d, ok := o.documents.Get(id); ok && d.present == present {
		return d.Document
	}
	return nil
}

func (o *Offers) keep(id documentID, present *index.Release, d *wire.Document) *wire.Document {
	id.address, id.version = id.address.Clone(), strings.Clone(id.version)
	id.platform.OS, id.platform.Arch = strings.Clone(id.platform.OS), strings.Clone(id.platform.Arch)
	o.documents.Put(id, mergedDocument{present, d}, mergedLife)
	return d
}

// complete reports whether all packages of a release are in the tree, according to its
// publisher's SHA256SUMS and the known lists of the origin. The release may be nil.
func (o *Offers) complete(a address.Address, r *index.Release) bool {
	return r != nil && r.Signature.By == index.ByPublisher && len(r.Missing()) == 0 && !o.upstream.MayHaveMore(a, r)
}

// Archives returns VERSION.json for the packages in the tree and at the origin. If the
// origin fails, they are the packages in the tree. A release that has not been read yet may have
// packages that the origin does not have, or that may not be fetched.
func (o *Offers) Archives(p index.Place, version string, h1Only bool) (*wire.Document, error) {
	release := o.tree.Provider(p).Release(version)
	if release == nil && o.tree.Pending(p, version) {
		return nil, ErrNotYet
	}
	id := documentID{address: p.Address, version: version, h1Only: h1Only}
	if d := o.keptDocument(id, release); d != nil {
		return d, nil
	}
	if o.complete(p.Address, release) {
		return o.keep(id, release, release.Archives()), nil
	}
	ctx, done := o.askContext(p, release != nil)
	defer done()
	available, complete, err := o.upstream.Available(ctx, p.Address, version, release)
	switch {
	case err == nil && complete:
		return o.keep(id, release, offer.MirrorArchives(release, available, h1Only)), nil
	case err == nil:
		return offer.MirrorArchives(release, available, h1Only), nil
	case release != nil:
		return release.Archives(), nil
	}
	return nil, o.failed(ctx, p, version, err)
}

// Download returns the description of a package in the tree or at the origin. If the
// origin fails, it is from the tree.
func (o *Offers) Download(p index.Place, version string, platform address.Platform) (*wire.Document, error) {
	release := o.tree.Provider(p).Release(version)
	if release == nil && !o.mayFetch(p, version) {
		return nil, ErrNotOffered
	}
	id := documentID{address: p.Address, version: version, download: true, platform: platform}
	if d := o.keptDocument(id, release); d != nil {
		return d, nil
	}
	var known *wire.Document
	if k := release.Package(platform.OS, platform.Arch); k != nil {
		known = k.DownloadWithIssuer()
	}
	if known != nil && o.complete(p.Address, release) {
		return o.keep(id, release, known), nil
	}
	ctx, done := o.askContext(p, known != nil)
	defer done()
	d, err := o.fetchedDownload(ctx, p, version, platform, release)
	switch {
	case err == nil:
		return o.keep(id, release, d), nil
	case known != nil:
		return known, nil
	}
	return nil, o.failed(ctx, p, version, err)
}

// fetchedDownload describes a package at the origin. If its sha256 is known only once the
// package is there, the package is fetched first.
func (o *Offers) fetchedDownload(ctx context.Context, p index.Place, version string, platform address.Platform, release *index.Release) (*wire.Document, error) {
	if _, err := address.ParsePlatform(platform.OS, platform.Arch); err != nil {
		return nil, ErrNoPackage
	}
	present, asked := release.Package(platform.OS, platform.Arch) != nil, platform
	if present && o.upstream.MayHaveMore(p.Address, release) {
		asked = address.Platform{} // like document: SHA256SUMS lists what the origin has added
	}
	k, err := o.fetchedRelease(ctx, p.Address, version, asked, release)
	if err != nil {
		return nil, err
	}
	if !present {
		// Packages that the policy excludes, or that have no hash at all, cannot be
		// fetched.
		available, _, err := o.upstream.Available(ctx, p.Address, version, release)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(available, func(a wire.Archive) bool { return a.Platform == platform }) {
			return nil, ErrNoneFetched
		}
	}
	name := address.PackageName(p.Name, version, platform)
	sum, ok := k.sums[name]
	if !ok {
		if _, err := o.fillFile(ctx, p, name, FillOptions{}); err != nil {
			return nil, err
		}
		return nil, ErrNotYet
	}
	return k.download(platform, sum), nil
}

// ProviderFile returns a package, SHA256SUMS or its signature. A package is fetched
// first, however long that takes, unless the client follows: then it may be one that grows.
// If the origin fails, the documents are those in the tree. If the issuer is not empty, the
// documents are those that this key has signed, as Download has said.
func (o *Offers) ProviderFile(p index.Place, name, issuer string, follows bool) (*index.File, error) {
	provider := o.tree.Provider(p)
	var known *index.File
	if provider != nil {
		known = provider.File(name)
	}
	if known != nil && known.Platform != "" {
		return known, nil
	}
	f, unnamed := address.ParseReleaseFile(p.Name, name)
	if unnamed == nil && (f.Kind == address.ChecksumsFile || f.Kind == address.SignatureFile) {
		return o.document(p, f, issuer, provider.Release(f.Version.String()), known)
	}
	client, _ := o.ask()
	filled, err := o.fillFile(client, p, name, FillOptions{Follow: follows})
	switch {
	case err == nil:
		o.fetched, o.fetchedFor = filled, p.Address
		return filled.File, nil
	case unnamed == nil:
		err = o.failed(client, p, f.Version.String(), err)
	}
	return nil, err
}

// document returns SHA256SUMS or its signature for a release that may have packages at
// the origin. known is the document in the tree, or nil. The tree's document and the origin's
// may have other signatures, and the client has the keys of one of them only. So with an
// issuer neither stands in for the other.
func (o *Offers) document(p index.Place, f address.ReleaseFile, issuer string, present *index.Release, known *index.File) (*index.File, error) {
	others := known != nil && present != nil && issuer != "" && present.Issuer() != issuer
	if others {
		known = nil
	}
	if known != nil && present != nil && present.Signature.By == index.ByPublisher && !o.upstream.MayHaveMore(p.Address, present) {
		return known, nil
	}
	version := f.Version.String()
	ctx, done := o.askContext(p, known != nil)
	defer done()
	k, err := o.fetchedRelease(ctx, p.Address, version, address.Platform{}, present)
	switch {
	case err == nil && len(k.sums) > 0 && (issuer == "" || k.issuer == issuer):
		return k.file(f.Kind), nil
	case known != nil:
		return known, nil
	case others, err == nil && len(k.sums) > 0:
		err = ErrOtherIssuer
	case err == nil:
		err = upstream.ErrNotFound
	}
	return nil, o.failed(ctx, p, version, err)
}

// commonPlatform is the platform whose package is fetched if the platform makes no
// difference.
var commonPlatform = address.Platform{OS: "linux", Arch: "amd64"}

// FetchRelease fetches a package of a release that the tree does not have. The next snapshot
// has the release.
func (o *Offers) FetchRelease(p index.Place, version string) error {
	if !o.mayFetch(p, version) {
		return ErrNotOffered
	}
	ctx, cancel := o.waitContext()
	defer cancel()
	available, _, err := o.upstream.Available(ctx, p.Address, version, nil)
	switch {
	case err != nil:
		return o.failed(ctx, p, version, err)
	case len(available) == 0:
		return upstream.ErrNotFound
	}
	i := slices.IndexFunc(available, func(k wire.Archive) bool { return k.Platform == commonPlatform })
	if _, err := o.fillFile(ctx, p, available[max(i, 0)].URL, FillOptions{}); err != nil {
		return o.failed(ctx, p, version, err)
	}
	return nil
}

func (o *Offers) fillFile(ctx context.Context, p index.Place, name string, how FillOptions) (*Filled, error) {
	filled, err := o.upstream.Fill(ctx, p.Address, name, o.tree.Provider(p), how)
	if err == nil && filled.New && filled.growing == nil {
		o.added(p.Address)
	}
	return filled, err
}
