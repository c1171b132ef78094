package index

import (
	"slices"

	version "github.com/hashicorp/go-version"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// providerVersions is the provider registry's list of releases, nil if it offers
// none.
func providerVersions(releases []*Release) *wire.Document {
	var list []wire.ProviderVersion
	for _, r := range releases {
		if len(r.Keys) == 0 {
			continue // clients would refuse it: only the mirror can offer it
		}
		v := wire.ProviderVersion{Version: r.Version, Protocols: r.Protocols}
		for _, p := range r.Packages {
			v.Platforms = append(v.Platforms, p.Platform)
		}
		list = append(list, v)
	}
	return wire.EncodeProviderVersions(list)
}

// encode makes the documents of one release when the first of them is requested:
// most releases of a large tree never are.
func (r *Release) encode() { r.encoding.Do(r.encodeNow) }

func (r *Release) encodeNow() {
	r.archives = wire.EncodeArchives(r.mirrorArchives())
	if len(r.Keys) == 0 {
		return
	}
	v := wire.Vouchers{Packages: make(map[address.Platform]wire.PackageHashes)}
	for _, k := range r.Keys {
		v.Armor, v.IDs = append(v.Armor, k.Armor), append(v.IDs, k.ID)
	}
	downloads := make([]wire.Download, len(r.Packages))
	for i, p := range r.Packages {
		v.Packages[p.Platform] = wire.PackageHashes{Hashes: p.hashes(), Size: p.File.Size}
		downloads[i] = wire.Download{
			Protocols: r.Protocols, Platform: p.Platform, Filename: p.File.Name, SHA256: p.File.SHA256.String(),
			URL: p.File.Name, ChecksumsURL: r.checksums.Name, SignatureURL: r.signature.Name,
		}
	}
	for i, d := range wire.EncodeDownloads(downloads, v) {
		r.Packages[i].download = d
	}
}

// hashes are those the mirror lists, h1: and zh: of every platform (checklist
// 69). Where the zip's entries have a hash of their own, clients compute both.
func (p *Package) hashes() []string {
	if p.packedH1 != "" {
		return []string{p.H1, p.packedH1, "zh:" + p.File.SHA256.String()}
	}
	return []string{p.H1, "zh:" + p.File.SHA256.String()}
}

// mirrorArchives are the packages as VERSION.json lists them.
func (r *Release) mirrorArchives() []wire.Archive {
	archives := make([]wire.Archive, len(r.Packages))
	for i, p := range r.Packages {
		archives[i] = wire.Archive{Platform: p.Platform, URL: p.File.Name, Hashes: p.hashes()}
	}
	return archives
}

// ListedArchives are the packages of one version of the provider called typ that
// a SHA256SUMS lists, ordered by platform. Whatever else it lists is left out.
func ListedArchives(typ, version string, sums wire.Checksums) []wire.Archive {
	var list []wire.Archive
	for name, sum := range sums {
		f, err := address.ParseReleaseFile(typ, name)
		if err == nil && f.Kind == address.PackageFile && f.Version.String() == version {
			list = append(list, wire.Archive{Platform: f.Platform, URL: name, Hashes: []string{"zh:" + sum.String()}})
		}
	}
	slices.SortFunc(list, func(a, b wire.Archive) int { return a.Platform.Compare(b.Platform) })
	return list
}

// SignedByPublisher reports whether the SHA256SUMS of r is its publisher's,
// which lists all packages there are.
func (r *Release) SignedByPublisher() bool { return r.signature != nil && r.signature.sign == nil }

// Missing are the packages of a release its publisher signed that are not in the
// tree. Of a release that the registry signed nothing further is known.
func (p *Provider) Missing(r *Release) []wire.Archive {
	if !r.SignedByPublisher() {
		return nil
	}
	sums, err := wire.DecodeChecksums(r.checksums.content)
	if err != nil {
		return nil // it has been decoded before, when it was verified
	}
	return slices.DeleteFunc(ListedArchives(p.Address.Name, r.Version, sums), func(a wire.Archive) bool {
		return r.Package(a.Platform.OS, a.Platform.Arch) != nil
	})
}

// MirrorIndex is index.json of a provider's releases and of further versions
// that the mirror can fetch.
func MirrorIndex(releases []*Release, further []string) *wire.Document {
	all := make(map[string]*version.Version, len(releases)+len(further))
	for _, text := range further {
		if v, err := address.ParseProviderVersion(text); err == nil {
			all[text] = v
		}
	}
	for _, r := range releases {
		all[r.Version] = r.version
	}
	versions := make([]string, 0, len(all))
	for text := range all {
		versions = append(versions, text)
	}
	address.SortNewestFirst(versions, func(text string) *version.Version { return all[text] })
	return wire.EncodeMirrorIndex(versions)
}

// MirrorArchives is VERSION.json of a release, which may be nil, and of further
// packages that the mirror can fetch. Clients that know h1: alone refuse a list of
// hashes without one, and take a package that has no list (checklist 68).
func MirrorArchives(r *Release, further []wire.Archive, h1Only bool) *wire.Document {
	var archives []wire.Archive
	if r != nil {
		archives = r.mirrorArchives()
	}
	for _, a := range further {
		if r != nil && r.Package(a.Platform.OS, a.Platform.Arch) != nil {
			continue
		}
		if h1Only && len(a.H1()) == 0 {
			a.Hashes = nil
		}
		archives = append(archives, a)
	}
	return wire.EncodeArchives(archives)
}
