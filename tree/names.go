package tree

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// MetadataName is the name of the metadata file in the folder of a provider or module.
const MetadataName = "registry.hcl"

// IsHiddenOrTemporary reports whether a file of that name is skipped until it is
// renamed.
func IsHiddenOrTemporary(name string) bool {
	return strings.HasPrefix(name, ".") || IsUnfinishedName(name)
}

// isOfNoAddress reports whether no address has a folder of this name, such as the folders
// that file systems make at their top.
func isOfNoAddress(name string) bool {
	_, err := address.ParseProviderVersion(name)
	return err != nil && (IsHiddenOrTemporary(name) || strings.ContainsAny(name, "+@#$ "))
}

// StagingName is the name of a folder at the top of providers or modules in which
// releases are completed before they are published. Scans neither enter nor report it.
const StagingName = ".staging"

// PublishLocks begins the names of the locks that instances share while they publish.
const PublishLocks = "terraform_registry/publish/"

// ModuleLock returns the name, after PublishLocks, of the lock of whoever adds a version to a hosted module.
// To clients, versions that differ only in build metadata are the same.
func ModuleLock(a address.Address, version string) string {
	version, _, _ = strings.Cut(version, "+")
	return a.String() + "@" + version
}

// IsUnfinishedName reports whether tools give a file this name until it is complete.
func IsUnfinishedName(name string) bool {
	return strings.HasSuffix(name, ".tmp") || strings.HasSuffix(name, ".part") || strings.HasSuffix(name, "~")
}

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

// DocumentNames returns the names of the documents that may lie beside the packages of a version, and are of no
// use without them. The record of the source of a module's version is not one: by it, a changed version is
// noticed when it is fetched again.
func DocumentNames(a address.Address, version string) []string {
	if a.IsModule() {
		return nil
	}
	return []string{
		address.SignatureName(a.Name, version), address.ChecksumsName(a.Name, version), address.ManifestName(a.Name, version), AnnouncedName(version),
	}
}

// IsOriginName reports whether pull-through keeps what it knows of an origin in a file of
// that name.
func IsOriginName(name string) bool {
	return IsVersionsName(name) || strings.HasPrefix(name, ".") && (strings.HasSuffix(name, announcedSuffix) || strings.HasSuffix(name, sourceSuffix))
}

// IsVersionsName reports whether a file is a list of versions, or a damaged one. Without
// packages the file is useless.
func IsVersionsName(name string) bool { return name == VersionsName || name == DamagedVersionsName }

// UploadName is the name of the file that marks a version's folder as uploaded file by file.
// It sorts after all names of a release's files.
const UploadName = "upload.json"

// IncompleteUpload reports whether a version's folder with files of these names is still
// being uploaded, so that nothing in it counts. checksums is the name of its SHA256SUMS.
func IncompleteUpload(checksums string, names []string) bool {
	return slices.Contains(names, UploadName) && !slices.Contains(names, checksums)
}

// IsIncompleteUpload is IncompleteUpload for the entries of the folder of a provider's version.
func IsIncompleteUpload(typ, version string, entries []Entry) bool {
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name
	}
	return IncompleteUpload(address.ChecksumsName(typ, version), names)
}

// A Location tells where a file or folder lies in a tree. Most locations are never
// formatted: a folder's name is shared by all files in it.
type Location struct {
	Dir    string // the folder of the file, by its path in a part of the tree; "." is the part
	Name   string
	Report string // the path of the folder in a report
}

// Path is the path in a part of the tree, with slashes.
func (l Location) Path() string { return InFolder(l.Dir, l.Name) }

// ReportPath is the path that a report names.
func (l Location) ReportPath() string { return InFolder(l.Report, l.Name) }

// InFolder is path.Join for a clean path and a name.
func InFolder(dir, name string) string {
	if dir == "." || dir == "" {
		return name
	}
	return dir + "/" + name
}

// IsBelow reports whether name is dir or lies in it.
func IsBelow(name, dir string) bool {
	return dir == "." || name == dir || strings.HasPrefix(name, dir) && name[len(dir)] == '/'
}

// DetachName copies the name. The name may share its memory with all other names in the
// folder, and a copy lets them be freed.
func (l *Location) DetachName() { l.Name = strings.Clone(l.Name) }

// LocationOf returns the location of a path in a report. It has no Dir.
func LocationOf(report string) *Location {
	i := strings.LastIndexByte(report, '/')
	return &Location{Report: report[:max(i, 0)], Name: report[i+1:]}
}

// SplitPath returns the names in a path, without empty ones and dots.
func SplitPath(name string) []string {
	return slices.DeleteFunc(strings.Split(filepath.ToSlash(name), "/"), func(n string) bool { return n == "" || n == "." })
}
