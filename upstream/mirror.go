package upstream

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
)

// mirror is the provider network mirror protocol.
type mirror struct{ *Client }

func (c mirror) get(ctx context.Context, a index.ProviderAddress, limit int64, name string) (document, error) {
	return c.read(ctx, c.home.JoinPath(string(c.origin.Hostname), a.Namespace, a.Type, name), limit)
}

func (c mirror) versions(ctx context.Context, a index.ProviderAddress) (Listing, error) {
	d, err := c.get(ctx, a, maxVersions, "index.json")
	if err != nil {
		return Listing{}, err
	}
	list, err := parseIndex(d.body)
	if err != nil {
		return Listing{}, badList(d.url, err)
	}
	return list, nil
}

// badList is a list of versions that is not taken.
func badList(from *url.URL, err error) error {
	if errors.Is(err, errTooManyVersions) {
		return fail(from, ErrTooLarge, "%v", err)
	}
	return fail(from, ErrMalformed, "%v", err)
}

func parseIndex(body []byte) (Listing, error) {
	var versions []Version
	err := eachMember(body, func(name string, d *json.Decoder) error {
		if !strings.EqualFold(name, "versions") {
			return d.Decode(new(json.RawMessage))
		}
		switch token, err := d.Token(); {
		case err != nil:
			return err
		case token == nil:
			return nil
		case token != json.Delim('{'):
			return errNoObject
		}
		return members(d, func(version string, d *json.Decoder) error {
			if len(versions) == mostVersions {
				return errTooManyVersions
			}
			if len(version) <= maxVersion {
				versions = append(versions, Version{Version: version})
			}
			return d.Decode(new(json.RawMessage))
		})
	})
	switch {
	case errors.Is(err, errTooManyVersions):
		return Listing{}, err
	case err != nil:
		return Listing{}, errors.New("its list of versions is not the JSON it should be")
	}
	slices.SortFunc(versions, func(a, b Version) int { return strings.Compare(a.Version, b.Version) })
	return Listing{Versions: newestFirst(versions)}, nil
}

func (c mirror) published(context.Context, index.ProviderAddress, string) (time.Time, error) {
	return time.Time{}, fail(c.home, ErrNotFound, "a mirror does not tell when a version was published")
}

// An archive is what a mirror says about the package of one platform.
type archive struct {
	url *url.URL
	zh  []index.SHA256
	h1  []string
}

func (c mirror) archives(ctx context.Context, a index.ProviderAddress, version string) (map[index.Platform]archive, error) {
	d, err := c.get(ctx, a, maxMetadata, version+".json")
	if err != nil {
		return nil, err
	}
	archives, err := parseArchives(d.body, d.url)
	if err != nil {
		return nil, fail(d.url, ErrMalformed, "%v", err)
	}
	if len(archives) == 0 { // how a mirror says that it has none (checklist 66)
		return nil, fail(d.url, ErrNotFound, "the mirror does not hold this version")
	}
	return archives, nil
}

// parseArchives reads a mirror's VERSION.json.
func parseArchives(body []byte, from *url.URL) (map[index.Platform]archive, error) {
	var list struct {
		Archives map[string]struct {
			URL    string   `json:"url"`
			Hashes []string `json:"hashes"`
		} `json:"archives"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, errors.New("its list of archives is not the JSON it should be")
	}
	archives := make(map[index.Platform]archive)
	for name, entry := range list.Archives {
		os, arch, _ := strings.Cut(name, "_")
		platform, err := index.ParsePlatform(os, arch)
		if err != nil {
			continue // no client asks for it
		}
		var a archive
		if a.url, err = resolve(from, entry.URL); err != nil {
			return nil, err
		}
		if entry.URL == "" {
			return nil, errors.New("it does not link to the archive")
		}
		for _, hash := range entry.Hashes {
			scheme, value, ok := strings.Cut(hash, ":")
			switch {
			case !ok:
				return nil, errors.New("a hash does not begin with its scheme")
			case scheme == "h1":
				if sum, err := base64.StdEncoding.DecodeString(value); err != nil || len(sum) != len(index.SHA256{}) {
					return nil, errors.New("a hash of the scheme h1 is not one")
				}
				a.h1 = append(a.h1, hash)
			case scheme == "zh":
				sum, err := hex.DecodeString(value)
				if err != nil || len(sum) != len(index.SHA256{}) {
					return nil, errors.New("a hash of the scheme zh is not one")
				}
				a.zh = append(a.zh, index.SHA256(sum))
			}
		}
		if len(entry.Hashes) > 0 && len(a.h1)+len(a.zh) == 0 {
			return nil, errors.New("all its hashes are of schemes that clients do not know")
		}
		archives[platform] = a
	}
	return archives, nil
}

// release looks beside the archives for what their publisher signed, which is
// not in the protocol, but there in mirrors that keep whole releases.
func (c mirror) release(ctx context.Context, a index.ProviderAddress, v Version, pinned index.Keyring) (*Release, error) {
	archives, err := c.archives(ctx, a, v.Version)
	if err != nil {
		return nil, err
	}
	platforms := slices.SortedFunc(maps.Keys(archives), comparePlatforms)
	r := &Release{Address: a, Version: v.Version, Protocols: v.Protocols}
	sums := archives[platforms[0]].url.ResolveReference(&url.URL{Path: r.fileName("SHA256SUMS")})

	// Some stores say 403 of what there is not.
	switch err := c.readChecksums(ctx, r, sums); {
	case isKind(err, ErrNotFound, ErrRefused):
	case err != nil:
		return nil, err
	default:
		signature := archives[platforms[0]].url.ResolveReference(&url.URL{Path: r.fileName("SHA256SUMS.sig")})
		if err := c.readSignature(ctx, r, signature, pinned); err != nil && !isKind(err, ErrNotFound, ErrRefused) {
			return nil, err
		}
		c.readManifest(ctx, r, sums)
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

// archived is the package of an archive; nil when the release does not list it.
func (r *Release) archived(platform index.Platform, a archive) (*Package, error) {
	p := &Package{Platform: platform, Name: r.fileName(platform.String() + ".zip"), sums: a.zh}
	if r.sums != nil {
		sum, listed := r.sums[p.Name]
		if !listed {
			return nil, nil
		}
		if len(a.zh) > 0 && !slices.Contains(a.zh, sum) {
			return nil, fail(a.url, ErrBadChecksum, "the mirror's hash of %s is not the one SHA256SUMS lists", p.Name)
		}
		p.sums = []index.SHA256{sum}
	}
	if len(p.sums) == 1 {
		p.SHA256 = p.sums[0]
	} else {
		// Beside a sha256 nobody would compare them with anything, and nobody has
		// signed them: clients must not be told that they are the package's.
		p.H1 = a.h1
	}
	return p, nil
}

// locate asks where the archive is now: the link may be good for minutes only.
func (c mirror) locate(ctx context.Context, r *Release, p Package) (link, error) {
	archives, err := c.archives(ctx, r.Address, r.Version)
	if err != nil {
		return link{}, err
	}
	a, ok := archives[p.Platform]
	if !ok {
		return link{}, fail(c.home, ErrNotFound, "the mirror does not hold this platform")
	}
	return link{url: a.url}, nil
}
