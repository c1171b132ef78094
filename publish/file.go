package publish

import (
	"slices"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// A Kind is the kind of a file. There are few, so that metrics can have them as a
// label.
type Kind uint8

const (
	Package   Kind = iota // of a provider, for one platform
	Checksums             // SHA256SUMS
	Signature             // the signature of SHA256SUMS
	Manifest              // the protocols of a release
	Docs                  // an archive of a release's documentation
	Module                // an archive of a module
	Metadata              // a registry.hcl

	// Kinds is the number of kinds.
	Kinds
)

var kindNames = [Kinds]string{"package", "checksums", "signature", "manifest", "docs", "module", "metadata"}

// String returns the name of the kind in metrics.
func (k Kind) String() string { return kindNames[k] }

// A File is a file that can be published, by its path in the tree. It is hosted, so
// that its address has no HOSTNAME, unless it is Metadata.
type File struct {
	Address address.Address
	Version string // in its normal form; empty for Metadata
	Name    string // as in the tree
	Kind    Kind

	Platform address.Platform // of a Package; zero for others
}

const docsZip = "docs.zip"

// docsArchives are archives of documentation, by the name under which they are published.
var docsArchives = []string{docsZip, "docs.tar.gz", "docs.tgz"}

// ParseReleaseFile returns the file with a name in the folder of a provider's version.
// Its error is a Refusal.
func ParseReleaseFile(a address.Address, version, name string) (File, error) {
	v, err := address.ParseModuleVersion(version)
	if err != nil {
		return File{}, refused("%v", err)
	}
	version = v.String()
	f := File{Address: a.WithHostname(""), Version: version, Name: name}
	if slices.Contains(docsArchives, name) {
		f.Kind = Docs
		return f, nil
	}
	parsed, err := address.ParseReleaseFile(a.Name, name)
	switch {
	case err != nil:
		return File{}, refused("%.200q is not published with a release (%v): send %s, SHA256SUMS and SHA256SUMS.sig, manifest.json with such names, or %s",
			name, err, address.PackageName(a.Name, version, address.Platform{OS: "OS", Arch: "ARCH"}), docsZip)
	case parsed.Kind == address.PackageFile && !parsed.Platform.Known():
		return File{}, refused("%.200q is for a platform that no client asks for: name it by Go's GOOS and GOARCH, such as linux_arm64, or leave it out", name)
	case parsed.Version.String() != version:
		return File{}, refused("%q is of version %s, and the path says %s: send it to the path of its version", name, parsed.Version, version)
	}
	switch parsed.Kind {
	case address.PackageFile:
		f.Kind, f.Platform = Package, parsed.Platform
	case address.ChecksumsFile:
		f.Kind = Checksums
	case address.SignatureFile:
		f.Kind = Signature
	case address.ManifestFile:
		f.Kind = Manifest
	}
	return f, nil
}

// withoutBuild returns a version without its build metadata. To clients, versions that
// differ only in build metadata are the same.
func withoutBuild(version string) string {
	version, _, _ = strings.Cut(version, "+")
	return version
}

// ParseMetadataFile returns the registry.hcl of a provider or module. Its error is a
// Refusal.
func ParseMetadataFile(a address.Address, name string) (File, error) {
	if name != tree.MetadataName {
		return File{}, refused("%.200q is not published for a provider as a whole: send %s, or a file to the path of its version", name, tree.MetadataName)
	}
	return File{Address: a, Name: name, Kind: Metadata}, nil
}

// maxName is the length of a file's name, and of an address with a version, in bytes.
// File systems allow 255. The names of staged builds and of locks contain these names
// and up to 70 bytes more.
const maxName = 180

// checkLength refuses a file that could not be staged under its name.
func (f File) checkLength() error {
	if len(f.Name) <= maxName && len(f.Address.String()+"@"+f.Version) <= maxName {
		return nil
	}
	return refused("a file's name, and its address with its version, have at most %d characters: shorten the name or the version", maxName)
}
