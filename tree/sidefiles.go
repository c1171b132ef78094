package tree

import (
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// Pull-through keeps what it knows of an origin in hidden files beside the packages of a
// provider or module. No scan reads them.
const (
	// VersionsName is the list of versions, for a restart and for other instances that share
	// the tree.
	VersionsName = ".versions.json"

	// DamagedVersionsName is a list that was damaged.
	DamagedVersionsName = VersionsName + ".damaged"

	announcedSuffix = ".packages.json"
	sourceSuffix    = ".source.json"
)

// AnnouncedName returns the name of the file with the hashes that an origin announces for a
// version of a provider.
func AnnouncedName(version string) string { return "." + version + announcedSuffix }

// SourceName returns the name of the record of the source of a module's version.
func SourceName(version string) string { return "." + version + sourceSuffix }

// VersionOfSource returns the version of a record, given the name of its file.
func VersionOfSource(name string) (version string, ok bool) {
	name, hidden := strings.CutPrefix(name, ".")
	text, ok := strings.CutSuffix(name, sourceSuffix)
	v, err := address.ParseModuleVersion(text)
	if !ok || !hidden || err != nil {
		return "", false
	}
	return v.String(), true
}

// IsVersionsName reports whether a file is a list of versions, or a damaged one. Without
// packages the file is useless.
func IsVersionsName(name string) bool { return name == VersionsName || name == DamagedVersionsName }
