package offer

import (
	"slices"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// encode makes the documents of a release on the first request for any of them: most
// releases of a large tree are never requested.
func (r *Release) encode() { r.encoded.once.Do(r.encodeNow) }

func (r *Release) encodeNow() {
	r.encoded.archives = wire.EncodeArchives(r.mirrorArchives())
	if len(r.Signature.Keys) == 0 {
		return
	}
	downloads := make([]wire.Download, len(r.Packages))
	for i, p := range r.Packages {
		downloads[i] = p.description()
	}
	for i, d := range wire.EncodeDownloads(downloads, r.evidence()) {
		r.Packages[i].download = d
	}
}

// evidence returns the part that the descriptions of all packages have in common.
func (r *Release) evidence() (v wire.Evidence) {
	for _, k := range r.Signature.Keys {
		v.Armor, v.IDs = append(v.Armor, k.Armor), append(v.IDs, k.ID)
	}
	// Clients that read the hashes of packages here do not read SHA256SUMS, which may list
	// more platforms (checklist 48).
	if len(r.missing()) == 0 {
		v.Packages = make(map[address.Platform]wire.PackageHashes, len(r.Packages))
		for _, p := range r.Packages {
			v.Packages[p.Platform] = p.Hashes()
		}
	}
	return v
}

func (p *Package) description() wire.Download {
	r := p.release
	return wire.Download{
		Protocols: r.protocols, Platform: p.Platform, Filename: p.File.Name, SHA256: p.File.SHA256.String(),
		URL: p.File.Name, ChecksumsURL: r.checksums.Name, SignatureURL: r.signatureFile.Name,
	}
}

// DownloadWithIssuer is Download with the issuer in the links to SHA256SUMS and its
// signature, for a release whose SHA256SUMS the origin may have with another signature.
func (p *Package) DownloadWithIssuer() *wire.Document {
	if len(p.release.Signature.Keys) == 0 {
		return nil
	}
	d := p.description()
	d.Issuer = p.release.Issuer()
	return wire.EncodeDownloads([]wire.Download{d}, p.release.evidence())[0]
}

// Hashes returns the hashes and the size of the package.
func (p *Package) Hashes() wire.PackageHashes {
	return wire.PackageHashes{Hashes: p.hashes(), Size: p.File.Size}
}

// hashes returns the hashes that the mirror lists: of files and of bytes (checklist 69). If the
// hashes of the zip's entries differ, they are listed too, since clients compute both.
func (p *Package) hashes() []string {
	return append(wire.ListHashes(p.FileHashes, p.PackedHashes), p.File.SHA256.ZH())
}

// mirrorArchives returns the packages in the form of VERSION.json.
func (r *Release) mirrorArchives() []wire.Archive {
	archives := make([]wire.Archive, len(r.Packages))
	for i, p := range r.Packages {
		archives[i] = wire.Archive{Platform: p.Platform, URL: p.File.Name, Hashes: p.hashes()}
	}
	return archives
}

// listedArchives returns the packages that a SHA256SUMS lists for one version of the
// provider called typ, ordered by platform. Other files are left out.
func listedArchives(typ, version string, sums wire.Checksums) []wire.Archive {
	var list []wire.Archive
	for name, sum := range sums {
		f, err := address.ParseReleaseFile(typ, name)
		if err == nil && f.Kind == address.PackageFile && f.Version.String() == version {
			list = append(list, wire.Archive{Platform: f.Platform, URL: name, Hashes: []string{sum.ZH()}})
		}
	}
	slices.SortFunc(list, func(a, b wire.Archive) int { return a.Platform.Compare(b.Platform) })
	return list
}

// Missing returns the packages of a release that its publisher has signed and that are not in
// the tree. Without the publisher's signature nothing vouches for packages that are not in
// the tree, and Missing returns none.
func (r *Release) Missing() []wire.Archive {
	if r.Signature.By != ByPublisher {
		return nil
	}
	return r.missing()
}

// missing returns the packages that are in the SHA256SUMS of the release and not in the
// tree. The SHA256SUMS that the registry signs may be the publisher's.
func (r *Release) missing() []wire.Archive {
	sums, err := wire.DecodeChecksums(r.checksums.source().content)
	if err != nil {
		return nil // it was decoded when it was verified, so there is no error
	}
	return slices.DeleteFunc(listedArchives(r.typ, r.Version, sums), func(a wire.Archive) bool {
		return r.Package(a.Platform.OS, a.Platform.Arch) != nil
	})
}

// MirrorArchives returns the VERSION.json of a release, which may be nil, and of further
// packages that the mirror can fetch. h1Only is for clients that know only h1: hashes: they
// refuse a list of hashes without one, and accept a package without a list (checklist 68).
func MirrorArchives(r *Release, further []wire.Archive, h1Only bool) *wire.Document {
	var archives []wire.Archive
	if r != nil {
		archives = r.mirrorArchives()
	}
	for _, a := range further {
		if r != nil && r.Package(a.Platform.OS, a.Platform.Arch) != nil {
			continue
		}
		if h1Only && !slices.ContainsFunc(a.Hashes, wire.IsH1) {
			a.Hashes = nil
		}
		archives = append(archives, a)
	}
	return wire.EncodeArchives(archives)
}
