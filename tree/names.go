package tree

import "strings"

// MetadataName is the name of the metadata file in the folder of a provider or module.
const MetadataName = "registry.hcl"

// IsHiddenOrTemporary reports whether a file of that name is skipped until it is
// renamed.
func IsHiddenOrTemporary(name string) bool {
	return strings.HasPrefix(name, ".") || IsUnfinishedName(name)
}

// StagingName is the name of a folder at the top of providers or modules in which
// releases are completed before they are published. Scans neither enter nor report it.
const StagingName = ".staging"

// IsUnfinishedName reports whether tools give a file this name until it is complete.
func IsUnfinishedName(name string) bool {
	return strings.HasSuffix(name, ".tmp") || strings.HasSuffix(name, ".part") || strings.HasSuffix(name, "~")
}
