package address

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	version "github.com/hashicorp/go-version"
)

// filePrefix starts the name of every file of a provider release.
const filePrefix = "terraform-provider-"

// A ReleaseFileKind is the kind of a file in a provider release.
type ReleaseFileKind int

// The kinds of files in a provider release.
const (
	PackageFile   ReleaseFileKind = iota // the zip of one platform
	ChecksumsFile                        // SHA256SUMS
	SignatureFile                        // the signature of SHA256SUMS
	ManifestFile                         // the protocols of the release
)

var releaseFileSuffixes = map[ReleaseFileKind]string{
	ChecksumsFile: "SHA256SUMS", SignatureFile: "SHA256SUMS.sig", ManifestFile: "manifest.json",
}

// A ReleaseFile is the parsed name of a file of a provider release.
type ReleaseFile struct {
	Type     string // of the provider
	Version  *version.Version
	Text     string // of the version
	Kind     ReleaseFileKind
	Platform Platform // of a package
}

// PackageName returns the name of the zip of a provider release for one platform.
func PackageName(typ, version string, p Platform) string {
	return ReleaseFileName(typ, version, p.String()+".zip")
}

// ChecksumsName returns the name of the SHA256SUMS of a provider release.
func ChecksumsName(typ, version string) string { return ReleaseFileName(typ, version, "SHA256SUMS") }

// SignatureName returns the name of the signature of a provider release's SHA256SUMS.
func SignatureName(typ, version string) string {
	return ReleaseFileName(typ, version, "SHA256SUMS.sig")
}

// ManifestName returns the name of the manifest of a provider release.
func ManifestName(typ, version string) string {
	return ReleaseFileName(typ, version, "manifest.json")
}

// ReleaseFileName returns the name of a file of a provider release with the given
// suffix.
func ReleaseFileName(typ, version, suffix string) string {
	return filePrefix + typ + "_" + version + "_" + suffix
}

// The errors of ParseReleaseFile.
var (
	// ErrNoReleaseFile means that the file is not part of any provider release.
	ErrNoReleaseFile = errors.New("it is not a file of a provider release")

	// ErrOtherProvider means that the file is a zip, but not a package of this
	// provider.
	ErrOtherProvider = errors.New("it is not a package of this provider")

	// ErrPackageName means that a package's name does not end in a platform.
	ErrPackageName = errors.New("it is not the name of a package")

	// ErrVersion means that clients do not accept the version in the name.
	ErrVersion = errors.New("its name has no valid version")
)

// A nameError is a sentence for users, and wraps one of the errors above.
type nameError struct {
	kind     error
	sentence string
}

func (e *nameError) Error() string { return e.sentence }

func (e *nameError) Unwrap() error { return e.kind }

// ParseReleaseFile reads the name of a file in the folder of a provider. The type is
// known from the folder, so names like google-beta need no guessing. The error wraps
// ErrNoReleaseFile, ErrOtherProvider, ErrPackageName or ErrVersion, and says what to
// do.
func ParseReleaseFile(typ, name string) (ReleaseFile, error) {
	p := ReleaseFileParser{Type: typ}
	return p.Parse(name)
}

// A ReleaseFileParser parses the names of many files of one provider. It is fastest if
// the files of a version come one after another.
type ReleaseFileParser struct {
	Type string // of the provider

	prefix string
	text   string // of the last version
	last   *version.Version
}

// Parse does the same as ParseReleaseFile.
func (p *ReleaseFileParser) Parse(name string) (ReleaseFile, error) {
	none, typ := ReleaseFile{}, p.Type
	if p.prefix == "" {
		p.prefix = filePrefix + typ + "_"
	}
	rest, isOfProvider := strings.CutPrefix(name, p.prefix)
	if !isOfProvider {
		if strings.HasSuffix(name, ".zip") {
			return none, &nameError{ErrOtherProvider, fmt.Sprintf("a package of this folder is named %s%s_VERSION_OS_ARCH.zip: rename it or move it to its own folder", filePrefix, typ)}
		}
		return none, ErrNoReleaseFile
	}
	f := ReleaseFile{Type: typ}
	var text string
	if base, isPackage := strings.CutSuffix(rest, ".zip"); isPackage {
		number, words, _ := strings.Cut(base, "_") // a version has no underscore
		os, arch, ok := strings.Cut(words, "_")
		if !ok || strings.Contains(arch, "_") {
			return none, &nameError{ErrPackageName, fmt.Sprintf("a package is named %s%s_VERSION_OS_ARCH.zip: rename it", filePrefix, typ)}
		}
		platform, err := ParsePlatform(os, arch)
		if err != nil {
			return none, &nameError{ErrPackageName, err.Error()}
		}
		f.Kind, f.Platform, text = PackageFile, platform, number
	} else {
		var suffix string
		text, suffix, _ = strings.Cut(rest, "_")
		switch suffix {
		case releaseFileSuffixes[ChecksumsFile]:
			f.Kind = ChecksumsFile
		case releaseFileSuffixes[SignatureFile]:
			f.Kind = SignatureFile
		case releaseFileSuffixes[ManifestFile]:
			f.Kind = ManifestFile
		default:
			return none, ErrNoReleaseFile
		}
	}
	v, err := p.ParseVersion(text)
	if err != nil {
		return none, &nameError{ErrVersion, err.Error()}
	}
	f.Version, f.Text = v, p.text
	return f, nil
}

// ParseVersion parses the version of a folder whose files are parsed next.
func (p *ReleaseFileParser) ParseVersion(text string) (*version.Version, error) {
	if p.last == nil || p.text != text {
		text = strings.Clone(text) // a kept version must not keep the whole listing in memory
		v, err := ParseProviderVersion(text)
		if err != nil {
			return nil, err
		}
		p.text, p.last = text, v
	}
	return p.last, nil
}

// anyReleaseFile matches the name of a file of any provider's release.
var anyReleaseFile = regexp.MustCompile(`^` + filePrefix + `([0-9A-Za-z][0-9A-Za-z-]*)_(v?[0-9][0-9A-Za-z.+-]*)_(.+)$`)

// ReleaseFileType returns the type of the provider that a file belongs to, judging by
// its name alone. The name may be wrong, as long as it is evidently meant as the name
// of a release's file.
func ReleaseFileType(name string) (typ string, ok bool) {
	m := anyReleaseFile.FindStringSubmatch(name)
	if m == nil {
		return "", false
	}
	_, err := ParseReleaseFile(m[1], name)
	return m[1], !errors.Is(err, ErrNoReleaseFile)
}
