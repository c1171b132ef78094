package release

import (
	"fmt"
	"slices"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/archive"
	"github.com/caddy-terraform/caddy-terraform-registry/index/memo"
	"github.com/caddy-terraform/caddy-terraform-registry/index/offer"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A Package is a provider's package for one platform that has been read, as a zip or an unpacked
// folder.
type Package struct {
	tree.Location
	memo.Record
	Part         tree.Part
	Unpacked     *archive.PackageFolder // nil for a zip
	Platform     address.Platform
	PlatformText string // of Platform
}

// zip returns the name of the zip that clients download.
func (v *Verifier) zip(files *Files, p *Package) string {
	if p.Unpacked == nil {
		return p.Name
	}
	return address.PackageName(v.Address.Name, files.Text, p.Platform)
}

// detail returns the result of reading the zip. An unpacked package has no detail: the
// registry packs it correctly.
func (p *Package) detail() archive.PackageDetail {
	if p.Unpacked != nil {
		return archive.PackageDetail{}
	}
	return archive.PackageDetailOf(p.Content)
}

// checkPackages returns the packages that agree with the release, ordered by platform, and
// calls withhold for the others. It changes all.
func (v *Verifier) checkPackages(files *Files, all []Package, sums wire.Checksums, withhold func(path string, f *tree.Finding)) []Package {
	slices.SortStableFunc(all, func(a, b Package) int {
		switch c := a.Platform.Compare(b.Platform); {
		case c != 0 || (a.Unpacked == nil) == (b.Unpacked == nil):
			return c
		case b.Unpacked != nil: // a zip comes before a folder of the same platform
			return -1
		}
		return 1
	})
	kept := all[:0]
	for _, p := range all {
		twice := len(kept) > 0 && kept[len(kept)-1].Platform == p.Platform
		if f := p.check(v.zip(files, &p), sums, twice); f != nil {
			withhold(p.ReportPath(), f)
			continue
		}
		kept = append(kept, p)
	}
	return kept
}

// check returns why a package is withheld, or nil if it is not. zip is the name of the zip, and sums are nil
// without a SHA256SUMS. twice says that there is another package for the platform.
func (p *Package) check(zip string, sums wire.Checksums, twice bool) *tree.Finding {
	unusable := p.detail().FindingOn(p.Platform)
	switch sum, listed := sums[zip]; {
	case p.Bad != nil:
		return p.Bad
	case sums != nil && !listed:
		return tree.Findingf(tree.NotListed, "SHA256SUMS does not list it: release it with the others or remove it")
	case sums != nil && sum != p.SHA256 && p.Unpacked != nil:
		return tree.Findingf(tree.ChecksumMismatch, "packed, it is not the zip that SHA256SUMS lists: put that zip in its place, or remove SHA256SUMS and its signature")
	case sums != nil && sum != p.SHA256:
		return tree.Findingf(tree.ChecksumMismatch, "its sha256 is not the one SHA256SUMS lists: copy it again")
	case unusable != nil:
		return unusable
	case twice:
		return tree.Findingf(tree.Duplicate, "the release has a package of this platform twice: keep one of them")
	}
	return nil
}

// file returns the file that clients download, by the name of the zip.
func (p *Package) file(zip, version string) offer.File {
	var packed archive.Packed
	if p.Unpacked != nil {
		packed = p.Unpacked.Pack(p.Digest) // the files as they were read
	}
	f := offer.NewFile(zip, offer.InProviders, p.Location, p.Record, packed)
	f.Version, f.Platform = version, p.PlatformText
	f.NoteChanges(p.Part)
	return f
}

// packageNotes returns notes about packages that clients on some platforms have trouble with. It
// names the platforms in the order of the packages.
func packageNotes(packages []Package) (notes []string) {
	var withoutMode, otherHash []string
	for i := range packages {
		p, detail := packages[i].Platform, packages[i].detail()
		if p.OS != "windows" && detail.LacksMode() {
			withoutMode = append(withoutMode, p.String())
		}
		if detail.PackedHashes != "" {
			otherHash = append(otherHash, p.String())
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
