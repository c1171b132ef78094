package layout

import (
	"slices"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// Not every file in a tree is a file of the tree. Temporary files are skipped until they are
// renamed. Files that tools and file systems leave behind by design are neither reported nor
// counted: there is nothing to do about them, and they would hide the one file that matters.
// All other files are reported: as misplaced if they were meant to be offered
// (misplaced.go), otherwise as ignored.

// harmlessNames are names of files and folders, in lower case.
var harmlessNames = map[string]bool{
	"lost+found": true, "@eadir": true, "#recycle": true, "#snapshot": true,
	"$recycle.bin": true, "system volume information": true,
	".git": true, ".gitkeep": true, ".gitignore": true, ".gitattributes": true, ".keep": true,
	".ds_store": true, ".snapshot": true, ".zfs": true,
	".terraform.lock.hcl": true,
}

// harmlessFiles are names of documents for people, in lower case and without an extension.
var harmlessFiles = []string{"readme", "license", "licence", "changelog", "notice", "copying"}

// IsHarmless reports whether tools, file systems or people leave files or folders of
// that name anywhere in a tree.
func IsHarmless(name string, isFile bool) bool {
	name = strings.ToLower(name)
	if harmlessNames[name] || strings.HasPrefix(name, ".nfs") || strings.HasPrefix(name, ".trash-") {
		return true
	}
	if !isFile {
		return false
	}
	if name == "thumbs.db" || name == "desktop.ini" || tree.IsOriginName(name) {
		return true
	}
	stem, extension, _ := strings.Cut(name, ".")
	return slices.Contains(harmlessFiles, stem) && slices.Contains([]string{"", "md", "txt", "rst"}, extension)
}

// releaseExtras are the files that GoReleaser writes into its dist folder beside the
// packages of a provider.
var releaseExtras = []string{"artifacts.json", "config.yaml", "metadata.json", "digests.txt"}

// harmlessInProvider reports whether `terraform providers mirror` or GoReleaser
// writes a file of that name into a provider's folder.
func harmlessInProvider(name string) bool {
	if slices.Contains(releaseExtras, name) || name == "index.json" {
		return true
	}
	if text, isJSON := strings.CutSuffix(name, ".json"); isJSON {
		if _, err := address.ParseProviderVersion(text); err == nil {
			return true // VERSION.json
		}
	}
	for _, suffix := range []string{".deb", ".rpm", ".apk", ".pkg.tar.zst", ".sbom", ".sbom.json", ".spdx.json", ".cdx.json", ".pem"} {
		if strings.HasSuffix(name, suffix) {
			return true
		}
	}
	return false
}

// IsMetadata reports whether an entry in the folder of an address is its
// registry.hcl.
func IsMetadata(e tree.Entry) bool { return e.Name == tree.MetadataName && !e.Info.IsDir() }

// LooksLikeVersion reports whether a folder was meant to be a version.
func LooksLikeVersion(name string) bool {
	name = strings.TrimPrefix(name, "v")
	return name != "" && name[0] >= '0' && name[0] <= '9'
}
