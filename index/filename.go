package index

import (
	"fmt"
	"strings"

	version "github.com/hashicorp/go-version"
)

// A Platform is what clients call it: OS_ARCH, in Go's names.
type Platform struct {
	OS   string `json:"os"`
	Arch string `json:"arch"`
}

func (p Platform) String() string { return p.OS + "_" + p.Arch }

// ParsePlatform parses OS and ARCH, which are lower-case letters and digits:
// they are part of file names and of URLs.
func ParsePlatform(os, arch string) (Platform, error) {
	for _, part := range []string{os, arch} {
		if part == "" || len(part) > 32 || strings.Trim(part, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
			return Platform{}, fmt.Errorf("%q is not a platform: use Go's names, like linux_amd64", os+"_"+arch)
		}
	}
	return Platform{OS: os, Arch: arch}, nil
}

// What a file of a provider release is.
type fileKind int

const (
	packageFile fileKind = iota
	checksumsFile
	signatureFile
	manifestFile
)

// releaseFile is what the name of a file in a provider's folder says.
type releaseFile struct {
	kind     fileKind
	version  *version.Version
	platform Platform // of a package
}

const providerPrefix = "terraform-provider-"

// parseReleaseFile reads the name of a file in the folder of provider typ. The
// type is known from the folder, so names like google-beta need no guessing.
// A nil finding with ok false means the file is none of the registry's.
func parseReleaseFile(typ, name string) (f releaseFile, ok bool, bad *finding) {
	rest, ours := strings.CutPrefix(name, providerPrefix+typ+"_")
	base, isPackage := strings.CutSuffix(rest, ".zip")
	if !ours {
		if strings.HasSuffix(name, ".zip") {
			return f, false, found(NameMismatch, "a package of this folder is named %s%s_VERSION_OS_ARCH.zip: rename it or move it to its own folder", providerPrefix, typ)
		}
		return f, false, nil
	}
	var text string
	switch {
	case isPackage:
		parts := strings.Split(base, "_") // no version has an underscore in it
		if len(parts) != 3 {
			return f, false, found(BadName, "a package is named %s%s_VERSION_OS_ARCH.zip: rename it", providerPrefix, typ)
		}
		platform, err := ParsePlatform(parts[1], parts[2])
		if err != nil {
			return f, false, found(BadName, "%v", err)
		}
		f.kind, f.platform, text = packageFile, platform, parts[0]
	default:
		var suffix string
		text, suffix, _ = strings.Cut(rest, "_")
		switch suffix {
		case "SHA256SUMS":
			f.kind = checksumsFile
		case "SHA256SUMS.sig":
			f.kind = signatureFile
		case "manifest.json":
			f.kind = manifestFile
		default:
			return f, false, nil
		}
	}
	v, err := ParseProviderVersion(text)
	if err != nil {
		return f, false, found(BadVersion, "%v", err)
	}
	f.version = v
	return f, true, nil
}

// hiddenOrTemporary names are how a file says that it is not there yet.
func hiddenOrTemporary(name string) bool {
	return strings.HasPrefix(name, ".") || temporary(name)
}

func temporary(name string) bool {
	return strings.HasSuffix(name, ".tmp") || strings.HasSuffix(name, ".part") || strings.HasSuffix(name, "~")
}
