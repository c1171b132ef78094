package upstream

import (
	"context"
	"maps"
	"net/url"
	"slices"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/signing"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// mirror implements the provider network mirror protocol.
type mirror struct{ *Client }

func (c mirror) get(ctx context.Context, a address.Address, limit int64, name string) (document, error) {
	return c.read(ctx, c.base.JoinPath(string(c.origin.Hostname), a.Namespace, a.Name, name), limit)
}

func (c mirror) versions(ctx context.Context, a address.Address) ([]wire.ProviderVersion, error) {
	d, err := c.get(ctx, a, maxVersions, "index.json")
	if err != nil {
		return nil, err
	}
	versions, err := wire.DecodeMirrorIndex(d.body)
	if err != nil {
		return nil, badList(d.url, err)
	}
	return versions, nil
}

func (c mirror) published(context.Context, address.Address, string) (time.Time, error) {
	return time.Time{}, fail(c.base, ErrNotFound, "a mirror does not say when a version was published")
}

// A mirrorArchive is a mirror's description of the package of one platform.
type mirrorArchive struct {
	url   *url.URL
	zh    []wire.SHA256
	files []string // the hashes of its files
}

func (c mirror) archives(ctx context.Context, a address.Address, version string) (map[address.Platform]mirrorArchive, error) {
	d, err := c.get(ctx, a, maxMetadata, version+".json")
	if err != nil {
		return nil, err
	}
	archives, err := parseArchives(d.body, d.url)
	if err != nil {
		return nil, fail(d.url, ErrMalformed, "%v", err)
	}
	if len(archives) == 0 { // a version that the mirror does not hold (checklist 66)
		return nil, fail(d.url, ErrNotFound, "the mirror does not hold this version")
	}
	return archives, nil
}

// parseArchives reads a mirror's VERSION.json.
func parseArchives(body []byte, from *url.URL) (map[address.Platform]mirrorArchive, error) {
	list, err := wire.DecodeArchives(body)
	if err != nil {
		return nil, err
	}
	archives := make(map[address.Platform]mirrorArchive)
	for _, entry := range list {
		u, err := resolve(from, entry.URL)
		if err != nil {
			return nil, err
		}
		archives[entry.Platform] = mirrorArchive{url: u, zh: entry.SHA256(), files: entry.OfFiles()}
	}
	return archives, nil
}

// release looks for SHA256SUMS and its signature beside the archives. The protocol does
// not have them, but mirrors of whole releases keep them there.
func (c mirror) release(ctx context.Context, a address.Address, v wire.ProviderVersion, pinned *signing.Keyring) (*Release, error) {
	archives, err := c.archives(ctx, a, v.Version)
	if err != nil {
		return nil, err
	}
	platforms := slices.SortedFunc(maps.Keys(archives), address.Platform.Compare)
	first := archives[platforms[0]].url
	r := &Release{Address: a, Version: v.Version}
	sums := first.ResolveReference(&url.URL{Path: address.ChecksumsName(a.Name, v.Version)})

	switch err := c.readChecksums(ctx, r, sums); {
	case isRefusal(err):
	case err != nil:
		return nil, err
	default:
		signature := first.ResolveReference(&url.URL{Path: address.SignatureName(a.Name, v.Version)})
		if err := c.readSignature(ctx, r, signature, pinned); err != nil && !isRefusal(err) {
			return nil, err
		}
		if err := c.readManifest(ctx, r, sums); err != nil {
			return nil, err
		}
	}
	for _, platform := range platforms {
		p, err := r.archived(platform, archives[platform])
		if err != nil {
			return nil, err
		}
		if p != nil {
			r.Packages = append(r.Packages, *p)
		}
	}
	if len(r.Packages) == 0 {
		return nil, fail(sums, ErrMalformed, "SHA256SUMS lists none of the mirror's archives")
	}
	return r, nil
}

// archived returns the package of an archive; nil if SHA256SUMS does not list it.
func (r *Release) archived(platform address.Platform, a mirrorArchive) (*Package, error) {
	p := &Package{Platform: platform, Name: address.PackageName(r.Address.Name, r.Version, platform), Digests: a.zh}
	if r.Sums != nil {
		sum, listed := r.Sums[p.Name]
		if !listed {
			return nil, nil
		}
		if len(a.zh) > 0 && !slices.Contains(a.zh, sum) {
			return nil, fail(a.url, ErrBadChecksum, "the mirror's hash of %s is not the one SHA256SUMS lists", p.Name)
		}
		p.Digests = []wire.SHA256{sum}
	}
	if len(p.Digests) == 1 {
		p.SHA256 = p.Digests[0]
	} else {
		// FileHashes are used only without a sha256: the hashes are unsigned, and beside a
		// sha256 nothing compares them with the package, so clients must not get them.
		p.FileHashes = a.files
	}
	return p, nil
}

func (c mirror) packageLink(ctx context.Context, r *Release, p Package) (link, error) {
	archives, err := c.archives(ctx, r.Address, r.Version)
	if err != nil {
		return link{}, err
	}
	a, ok := archives[p.Platform]
	if !ok {
		return link{}, fail(c.base, ErrNotFound, "the mirror does not hold this platform")
	}
	return link{url: a.url}, nil
}
