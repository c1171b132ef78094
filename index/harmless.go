package index

import (
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// What tools and file systems leave in a tree by design is neither reported nor
// counted: there is nothing to do about it, and a report full of it hides the
// one file that matters.

// harmlessNames are found anywhere, whatever they are.
var harmlessNames = map[string]bool{
	"lost+found": true, "@eadir": true, "#recycle": true, "#snapshot": true,
	"$recycle.bin": true, "system volume information": true,
	".git": true, ".gitkeep": true, ".gitignore": true, ".gitattributes": true, ".keep": true,
	".ds_store": true, ".snapshot": true, ".zfs": true,
	".terraform.lock.hcl": true,
	".versions.json":      true, // what pull-through keeps of an origin
}

// harmlessFiles are files for people, with or without an extension.
var harmlessFiles = []string{"readme", "license", "licence", "changelog", "notice", "copying"}

// harmless reports whether a name is one that tools, file systems or
// documentation bring along.
func harmless(name string, isFile bool) bool {
	name = strings.ToLower(name)
	if harmlessNames[name] || strings.HasPrefix(name, ".nfs") || strings.HasPrefix(name, ".trash-") {
		return true
	}
	if !isFile {
		return false
	}
	if name == "thumbs.db" || name == "desktop.ini" {
		return true
	}
	stem, extension, _ := strings.Cut(name, ".")
	if extension != "" && extension != "md" && extension != "txt" && extension != "rst" {
		return false
	}
	for _, file := range harmlessFiles {
		if stem == file {
			return true
		}
	}
	return false
}

// releaseExtras are what GoReleaser writes into its dist folder beside the
// packages of a provider.
var releaseExtras = map[string]bool{"artifacts.json": true, "config.yaml": true, "metadata.json": true, "digests.txt": true}

// harmlessInProvider reports whether a file is written into a provider's folder
// by `terraform providers mirror` or by GoReleaser.
func harmlessInProvider(name string) bool {
	if releaseExtras[name] || name == "index.json" {
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
