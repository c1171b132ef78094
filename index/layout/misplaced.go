package layout

import (
	"cmp"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/archive"
	"github.com/caddy-terraform/caddy-terraform-registry/index/moduledoc"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// A file that was meant to be offered, but lies where clients cannot request it or has a
// name that they do not request, is misplaced. The report lists it as withheld and says
// where it belongs. If no file in the root belongs to a tree, the root itself may be
// misplaced: see Hint.

// misplaced returns the finding for such a file.
func misplaced(format string, args ...any) *tree.Finding {
	return tree.Findingf(tree.Misplaced, format, args...)
}

// providerProgram is the name of a provider's program outside of a package.
var providerProgram = regexp.MustCompile(`^terraform-provider-[0-9A-Za-z-]+(_v[0-9][^/]*)?(\.exe)?$`)

// otherArchives are the suffixes of archives that are not offered.
var otherArchives = []string{".tar", ".tar.bz2", ".tbz2", ".tbz", ".tar.xz", ".txz", ".tar.zst", ".tzst", ".rar", ".7z"}

// cutArchive splits the name of an archive. supported reports whether a module
// can be offered in this format.
func cutArchive(name string) (stem, suffix string, supported bool) {
	if stem, _, _, ok := address.ParseModuleFile(name); ok {
		return stem, name[len(stem):], true
	}
	for _, suffix := range otherArchives {
		if stem, ok := strings.CutSuffix(name, suffix); ok {
			return stem, suffix, false
		}
	}
	return name, "", false
}

// isVersion reports whether a name is a complete version. Names such as 2 or v1
// are not: other folders may have them too.
func isVersion(name string) bool {
	if !strings.Contains(name, ".") {
		return false
	}
	_, err := address.ParseModuleVersion(name)
	return err == nil
}

// nameOr returns the i-th name, or the placeholder if there is none.
func nameOr(names []string, i int, placeholder string) string {
	if i < len(names) {
		return names[i]
	}
	return placeholder
}

// misplacedFile returns the finding for a file in the folder of a module, or in a folder
// whose path is not an address yet; nil if the file was not meant to be offered.
func (f Folder) misplacedFile(name string) *tree.Finding {
	if bad := f.inOtherPart(name); bad != nil {
		return bad
	}
	if f.IsModule() {
		return f.misplacedModuleFile(name)
	}
	if typ, ok := address.ReleaseFileType(name); ok {
		return misplaced("a provider's files are in the folder of the provider: move it to %s/", f.providerTarget(typ))
	}
	return misnamedPackage(f.providerTarget("TYPE"), "TYPE", name)
}

// inOtherPart returns the finding for a file that belongs in another part of the
// tree.
func (f Folder) inOtherPart(name string) *tree.Finding {
	below := func(part string) string {
		return address.Plain(path.Join(part, f.Hostname, nameOr(f.Names, 0, "NAMESPACE")))
	}
	if typ, ok := address.ReleaseFileType(name); ok {
		if f.IsModule() {
			return misplaced("it is a file of a provider release: move it to %s/%s/", below("providers"), typ)
		}
		return nil
	}
	if isKeysFile(name) {
		return misplaced("public keys are in one file for each namespace: move it to %s.asc", below("keys"))
	}
	if f.IsModule() || strings.HasPrefix(name, archive.ProviderPrefix) {
		return nil
	}
	if moduledoc.IsConfiguration(name) {
		return misplaced("it is a file of a module: move the module's folder to %s/NAME/SYSTEM/VERSION/", below("modules"))
	}
	if stem, suffix, supported := cutArchive(name); supported && isVersion(stem) {
		return misplaced("it has the name of a module package: move it to %s/NAME/SYSTEM/%s", below("modules"), address.Plain(stem+suffix))
	}
	return nil
}

func isKeysFile(name string) bool {
	extension := path.Ext(name)
	return (extension == ".asc" || slices.Contains(keysExtensions, extension)) && !strings.Contains(name, "SHA256SUMS")
}

// keysExtensions are other extensions of files with public keys.
var keysExtensions = []string{".gpg", ".pgp"}

// providerTarget returns the folder of a provider, with placeholders for unknown names. A
// missing name may be in the middle: type and version can be recognised by their form.
func (f Folder) providerTarget(typ string) string {
	names, version := f.Names, ""
	if n := len(names); n > 0 && isVersion(names[n-1]) {
		names, version = names[:n-1], names[n-1]
	}
	if n := len(names); n > 0 && strings.EqualFold(names[n-1], typ) {
		names = names[:n-1]
	}
	return address.Plain(path.Join("providers", f.Hostname, nameOr(names, 0, "NAMESPACE"), typ, version))
}

// addressTarget returns the folder of a provider or a module in that part of the tree, with
// placeholders for unknown names.
func (f Folder) addressTarget() string {
	if f.IsModule() {
		target, _ := f.moduleTarget()
		return target
	}
	return f.providerTarget("TYPE")
}

// misnamedPackage returns the finding for a provider package with a wrong name or format.
func misnamedPackage(target, typ, name string) *tree.Finding {
	target += "/" + address.ReleaseFileName(typ, "VERSION", "OS_ARCH.zip")
	switch _, suffix, _ := cutArchive(name); {
	case suffix == ".zip":
		return misplaced("if it is a provider package, move it to %s", target)
	case suffix != "" && strings.HasPrefix(name, archive.ProviderPrefix):
		return misplaced("clients install providers from zip files only: pack the provider as %s", target)
	case suffix == "" && providerProgram.MatchString(name):
		return misplaced("clients install providers from zip files: pack it as %s", target)
	}
	return nil
}

// misplacedModuleFile returns the finding for a file in the folder of a module or
// above it.
func (f Folder) misplacedModuleFile(name string) *tree.Finding {
	target, missing := f.moduleTarget()
	if moduledoc.IsConfiguration(name) {
		version, folders := "VERSION", missing
		if n := len(f.Names); n > 0 && isVersion(f.Names[n-1]) {
			version = f.Names[n-1]
		} else if len(folders) < 3 {
			folders = append(folders, "VERSION")
		}
		return misplaced("%s: move the module to %s/%s/", missingFolders(folders), target, address.Plain(version))
	}
	stem, suffix, supported := cutArchive(name)
	if suffix == "" || supported && len(missing) == 0 {
		return nil // it is no package, or its version is judged elsewhere
	}
	file := address.Plain(stem) + suffix
	if !supported {
		file = address.Plain(stem) + ".tar.gz"
	}
	if _, err := address.ParseModuleVersion(stem); err != nil {
		file = "VERSION.tar.gz"
	}
	if !supported {
		return misplaced("module packages are %s files: pack the module as %s/%s", address.ModuleFileNames(""), target, file)
	}
	return misplaced("%s: move it to %s/%s", missingFolders(missing), target, file)
}

// moduleTarget returns the folder of a module, with placeholders for unknown names, and the
// unknown names.
func (f Folder) moduleTarget() (target string, missing []string) {
	names := f.Names
	if i := slices.IndexFunc(names, isVersion); i >= 0 {
		names = names[:i]
	}
	missing = []string{"NAMESPACE", "NAME", "SYSTEM"}[min(len(names), 3):]
	return address.Plain(path.Join("modules", f.Hostname, path.Join(names...), path.Join(missing...))), missing
}

func missingFolders(names []string) string {
	names = slices.Clone(names)
	if i := slices.Index(names, "SYSTEM"); i >= 0 {
		names[i] = "SYSTEM (such as aws, or any)"
	}
	if n := len(names); n > 1 {
		return "the folders " + strings.Join(names[:n-1], ", ") + " and " + names[n-1] + " are missing"
	}
	return "the folder " + names[0] + " is missing"
}

// misnamedReleaseFile returns the finding for a file in the folder of a provider, or of one
// of its versions, whose name no file of a release has; nil if the file was not meant to be
// offered. extra reports whether the file belongs to the release although clients have no
// use for it.
func (f Folder) misnamedReleaseFile(dir, version, name string, beside *Siblings) (bad *tree.Finding, extra bool) {
	if harmlessInProvider(name) {
		return nil, true
	}
	typ := f.Address.Name
	prefix := archive.ProviderPrefix + typ + "_"
	if rest, ok := strings.CutPrefix(name, prefix); ok {
		if text, _, ok := strings.Cut(rest, "_"); ok {
			version = text
		}
	}
	placeholder := cmp.Or(version, "VERSION")
	sums, signature := address.ChecksumsName(typ, placeholder), address.SignatureName(typ, placeholder)
	kind, ofSums := strings.CutPrefix(name, sums)
	if !ofSums {
		kind, ofSums = strings.CutPrefix(name, "SHA256SUMS")
	}
	correct := ""
	switch {
	case !ofSums && (name == "manifest.json" || name == "terraform-registry-manifest.json"):
		correct = address.ManifestName(typ, placeholder)
	case !ofSums:
	case kind == "" || kind == ".txt":
		correct = sums
	case kind == ".asc":
		if !beside.has(signature) {
			return misplaced("clients take the signature in binary form only: `gpg --dearmor --output %s %s`", signature, address.Plain(name)), false
		}
		return nil, true
	case strings.HasSuffix(kind, ".sig") || kind == ".gpg":
		correct = signature
	}
	if correct != "" {
		if beside.has(correct) {
			return nil, true
		}
		return misplaced("rename it to %s: clients do not know it by another name", address.Plain(correct)), false
	}
	if bad := f.inOtherPart(name); bad != nil {
		return bad, false
	}
	bad = misnamedPackage(address.Plain(dir), typ, name)
	if bad != nil && beside.packaged(prefix, version) {
		return nil, true // the same release in another format
	}
	return bad, false
}
