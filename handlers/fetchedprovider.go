package handlers

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// complete reports whether all packages of a release are in the tree, according to its
// publisher's SHA256SUMS and the known lists of the origin. The release may be nil.
func (g *Registry) complete(a address.Address, p *index.Provider, release *index.Release) bool {
	return release != nil && release.Signature.By == index.ByPublisher && len(p.Missing(release)) == 0 && !g.Upstream.MayHaveMore(a, release)
}

// answerFetchedDownload answers with the description of a package that an Upstream can
// fetch, or of a package in the tree whose release may have others. If the origin
// fails, it answers from the tree.
func (g *Registry) answerFetchedDownload(w http.ResponseWriter, r *request, p *index.Provider, release *index.Release) error {
	t := &r.target
	inTree := release.Package(t.platform.OS, t.platform.Arch)
	var known *wire.Document
	if inTree != nil {
		known = inTree.Download()
	}
	id := mergedID{kind: r.Kind, address: t.Address, version: t.version, platform: t.platform}
	d, ok := g.mergedDocument(id, release)
	switch {
	case ok:
	case known != nil && g.complete(t.Address, p, release):
		d = mergedDocument{present: release, Document: known}
		g.keepMerged(id, d, mergedLife)
	default:
		ctx, cancel := g.impatient(r, known != nil)
		defer cancel()
		made, err := g.fetchedDownload(ctx, r, release)
		switch {
		case err == nil:
			d = mergedDocument{present: release, Document: made}
			g.keepMerged(id, d, mergedLife)
		case known != nil:
			d.Document = known
		case r.pending():
			return errPending
		default:
			return versionNotFetched(t.Address, t.version, err)
		}
	}
	r.address, r.Version, r.Platform = &t.Address, t.version, t.platform.String()
	return g.writeDocument(w, r, d.Document, g.downloadLinks(r, t.Address))
}

// fetchedDownload describes the package that r names. If its sha256 is known only once
// the package is there, the package is fetched first.
func (g *Registry) fetchedDownload(ctx context.Context, r *request, release *index.Release) (*wire.Document, error) {
	t := &r.target
	if _, err := address.ParsePlatform(t.platform.OS, t.platform.Arch); err != nil {
		return nil, fail(http.StatusNotFound, "%s %s has no package for this platform", t.Address, t.version)
	}
	k, err := g.fetchedRelease(ctx, r, t.platform, release)
	if err != nil {
		return nil, err
	}
	if release.Package(t.platform.OS, t.platform.Arch) == nil {
		// Packages that the policy excludes, or that have no hash at all, cannot be
		// fetched.
		available, err := g.Upstream.Available(ctx, t.Address, t.version, release)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(available, func(a wire.Archive) bool { return a.Platform == t.platform }) {
			return nil, fail(http.StatusNotFound, "%s %s has no package for %s that this registry may fetch", t.Address, t.version, t.platform)
		}
	}
	name := address.PackageName(t.Name, t.version, t.platform)
	sum, ok := k.sums[name]
	if !ok {
		filled, err := g.Upstream.Fill(ctx, t.Address, name, r.provider())
		if err != nil {
			return nil, err
		}
		if filled.New {
			g.fetched(t.Address)
		}
		return nil, errPending
	}
	return k.download(t.platform, sum), nil
}

// answerFetchedDocument answers with SHA256SUMS or its signature for a release whose
// packages an Upstream can fetch. If the origin fails, it answers with the document in
// the tree, which may be nil.
func (g *Registry) answerFetchedDocument(w http.ResponseWriter, r *request, kind address.ReleaseFileKind, present *index.Release, known *index.File) error {
	ctx, cancel := g.impatient(r, known != nil)
	defer cancel()
	k, err := g.fetchedRelease(ctx, r, address.Platform{}, present)
	switch {
	case err == nil && len(k.sums) > 0:
		known = k.file(kind)
	case known != nil:
	case r.pending():
		return errPending
	default:
		return fileNotFetched(r.target.Address, cmp.Or(err, upstream.ErrNotFound))
	}
	r.about(r.target.Address)
	r.Version = known.Version
	return g.writeFile(w, r, r.snapshot, known)
}

// findRelease returns a release of a provider to describe, and has a package of it
// fetched first if the tree has none. An empty version is the latest in the tree, or
// the latest of the origin if the tree has none. If only the version is missing,
// findRelease returns the provider with the error.
func (g *Registry) findRelease(r *request, version string) (*index.Provider, *index.Release, error) {
	p := r.provider()
	found := p.Release(version)
	if p != nil && version == "" {
		found = p.Latest()
	}
	switch {
	case (found != nil || version == "") && r.listPending(): // it is not known either whether a version is withdrawn
		return nil, nil, errPending
	case found != nil:
		return p, found, nil
	}
	if version == "" && g.fetches(r) {
		var err error
		if version, err = g.newestOfOrigin(r); err != nil {
			return nil, nil, err
		}
	}
	if r.target.version = version; !g.fetches(r) || !g.mayFetchVersion(r) {
		return p, nil, g.versionNotFound(nil, r, p != nil)
	}
	if err := g.fetchAnyPackage(r, version, p); err != nil {
		return p, nil, err
	}
	return nil, nil, errPending // the next snapshot has it
}

// newestOfOrigin returns the newest version that the origin of a provider offers. It
// prefers a version that is not a prerelease.
func (g *Registry) newestOfOrigin(r *request) (string, error) {
	offering, err := g.Upstream.Versions(g.forClient(r), r.target.Address)
	list := withoutWithdrawn(offering.Versions, g.metadata(r))
	switch {
	case err != nil && r.pending():
		return "", errPending
	case errors.Is(err, upstream.ErrNotFound), err == nil && len(list) == 0:
		return "", neitherHas(r, err)
	case err != nil:
		return "", upstreamFailed(err)
	}
	stable := slices.IndexFunc(list, func(v wire.ProviderVersion) bool { return !strings.Contains(v.Version, "-") })
	return list[max(stable, 0)].Version, nil
}

// commonPlatform is the platform whose package is fetched if the platform makes no
// difference.
var commonPlatform = address.Platform{OS: "linux", Arch: "amd64"}

// fetchAnyPackage has the Upstream fetch one package of a release. It waits no longer
// than a client does.
func (g *Registry) fetchAnyPackage(r *request, version string, p *index.Provider) error {
	ctx, cancel := context.WithDeadline(g.forClient(r), r.waiting().Add(Patience))
	defer cancel()
	a := r.target.Address
	available, err := g.Upstream.Available(ctx, a, version, p.Release(version))
	switch {
	case err != nil:
		return cmp.Or(r.outOfTime(ctx), versionNotFetched(a, version, err))
	case len(available) == 0:
		return versionNotFetched(a, version, upstream.ErrNotFound)
	}
	i := slices.IndexFunc(available, func(k wire.Archive) bool { return k.Platform == commonPlatform })
	filled, err := g.Upstream.Fill(ctx, a, available[max(i, 0)].URL, p)
	switch {
	case err != nil:
		return cmp.Or(r.outOfTime(ctx), versionNotFetched(a, version, err))
	case filled.New:
		g.fetched(a)
	}
	return nil
}

// outOfTime returns the answer if an Upstream has failed because ctx ended, or while
// the tree may have the package. It returns nil if the Upstream has failed by itself.
func (r *request) outOfTime(ctx context.Context) error {
	switch {
	case r.Context().Err() != nil:
		return errTooSlow
	case ctx.Err() != nil:
		return errStillFetching
	case r.pending():
		return errPending
	}
	return nil
}
