package index

import (
	"cmp"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// A file that was meant to be offered, but lies where clients cannot ask for it
// or has a name they do not ask for, is misplaced. The report has it among what
// is withheld and says where it belongs. Other files without a place in the tree
// are only ignored.

// misplaced is why such a file is not offered.
func misplaced(format string, args ...any) *finding { return found(Misplaced, format, args...) }

// providerProgram is the name of a provider's program outside of a package.
var providerProgram = regexp.MustCompile(`^terraform-provider-[0-9A-Za-z-]+(_v[0-9][^/]*)?(\.exe)?$`)

// otherArchives are the suffixes of archives that are not offered.
var otherArchives = []string{".tar", ".tar.bz2", ".tbz2", ".tbz", ".tar.xz", ".txz", ".tar.zst", ".tzst", ".rar", ".7z"}

// cutArchive splits the name of an archive. supported reports whether a module
// can be offered in this format.
func cutArchive(name string) (stem, suffix string, supported bool) {
	for _, f := range moduleFormats {
		if stem, ok := strings.CutSuffix(name, f.suffix); ok {
			return stem, f.suffix, true
		}
	}
	for _, suffix := range otherArchives {
		if stem, ok := strings.CutSuffix(name, suffix); ok {
			return stem, suffix, false
		}
	}
	return name, "", false
}

// isVersion reports whether a name is a version that is written out, unlike
// names such as 2 or v1, which other folders may have too.
func isVersion(name string) bool {
	if !strings.Contains(name, ".") {
		return false
	}
	_, err := address.ParseModuleVersion(name)
	return err == nil
}

// plain quotes what would not look the same in a sentence.
func plain(s string) string {
	if utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0 {
		return s
	}
	return strconv.Quote(s)
}

// nameOr is a name that the tree has, or the word that stands for one.
func nameOr(names []string, i int, otherwise string) string {
	if i < len(names) {
		return names[i]
	}
	return otherwise
}

// misplaced is about a file in a folder whose path is not an address yet; nil if
// it was not meant to be offered.
func (f folder) misplaced(kind, name string) *finding {
	if bad := f.ofOtherPart(kind, name); bad != nil {
		return bad
	}
	if kind == KindModule {
		return f.misplacedModuleFile(name)
	}
	if typ, ok := address.ReleaseFileType(name); ok {
		return misplaced("a provider's files are in the folder of the provider: move it to %s/", f.providerTarget(typ))
	}
	return misnamedPackage(f.providerTarget("TYPE"), "TYPE", name)
}

// ofOtherPart is about a file that belongs below another folder of the root.
func (f folder) ofOtherPart(kind, name string) *finding {
	below := func(part string) string { return plain(path.Join(part, f.hostname, nameOr(f.names, 0, "NAMESPACE"))) }
	if typ, ok := address.ReleaseFileType(name); ok {
		if kind == KindModule {
			return misplaced("it is a file of a provider release: move it to %s/%s/", below("providers"), typ)
		}
		return nil
	}
	if isKeysFile(name) {
		return misplaced("public keys are in one file for each namespace: move it to %s.asc", below("keys"))
	}
	if kind == KindModule || strings.HasPrefix(name, providerPrefix) {
		return nil
	}
	if isConfiguration(name) {
		return misplaced("it is a file of a module: move the module's folder to %s/NAME/SYSTEM/VERSION/", below("modules"))
	}
	if stem, suffix, supported := cutArchive(name); supported && isVersion(stem) {
		return misplaced("it has the name of a module package: move it to %s/NAME/SYSTEM/%s", below("modules"), plain(stem+suffix))
	}
	return nil
}

func isKeysFile(name string) bool {
	extension := path.Ext(name)
	return (extension == ".asc" || slices.Contains(keysExtensions, extension)) && !strings.Contains(name, "SHA256SUMS")
}

// keysExtensions are what else files with public keys are named.
var keysExtensions = []string{".gpg", ".pgp"}

// providerTarget is the folder of a provider of which some names are known. What
// is missing can be in the middle: the type and the version say what they are.
func (f folder) providerTarget(typ string) string {
	names, version := f.names, ""
	if n := len(names); n > 0 && isVersion(names[n-1]) {
		names, version = names[:n-1], names[n-1]
	}
	if n := len(names); n > 0 && strings.EqualFold(names[n-1], typ) {
		names = names[:n-1]
	}
	return plain(path.Join("providers", f.hostname, nameOr(names, 0, "NAMESPACE"), typ, version))
}

// misnamedPackage is about what is a provider package in all but its name or
// format.
func misnamedPackage(target, typ, name string) *finding {
	want := target + "/" + providerPrefix + typ + "_VERSION_OS_ARCH.zip"
	switch _, suffix, _ := cutArchive(name); {
	case suffix == ".zip":
		return misplaced("if it is a provider package, move it to %s", want)
	case suffix != "" && strings.HasPrefix(name, providerPrefix):
		return misplaced("clients install providers from zip files only: pack the provider as %s", want)
	case suffix == "" && providerProgram.MatchString(name):
		return misplaced("clients install providers from zip files: pack it as %s", want)
	}
	return nil
}

// misplacedModuleFile is about a file above the folder of a module, or in it.
func (f folder) misplacedModuleFile(name string) *finding {
	target, missing := f.moduleTarget()
	if isConfiguration(name) {
		version, folders := "VERSION", missing
		if n := len(f.names); n > 0 && isVersion(f.names[n-1]) {
			version = f.names[n-1]
		} else if len(folders) < 3 {
			folders = append(folders, "VERSION")
		}
		return misplaced("%s: move the module to %s/%s/", missingFolders(folders), target, plain(version))
	}
	stem, suffix, supported := cutArchive(name)
	if suffix == "" || supported && len(missing) == 0 {
		return nil // not a package, or one that is judged by its version
	}
	file := plain(stem) + suffix
	if !supported {
		file = plain(stem) + ".tar.gz"
	}
	if _, err := address.ParseModuleVersion(stem); err != nil {
		file = "VERSION.tar.gz"
	}
	switch {
	case !supported:
		return misplaced("module packages are .tar.gz, .tgz or .zip files: pack the module as %s/%s", target, file)
	default:
		return misplaced("%s: move it to %s/%s", missingFolders(missing), target, file)
	}
}

// moduleTarget is the folder of a module of which some names are known, and the
// names that are missing.
func (f folder) moduleTarget() (target string, missing []string) {
	names := f.names
	if i := slices.IndexFunc(names, isVersion); i >= 0 {
		names = names[:i]
	}
	missing = []string{"NAMESPACE", "NAME", "SYSTEM"}[min(len(names), 3):]
	return plain(path.Join("modules", f.hostname, path.Join(names...), path.Join(missing...))), missing
}

func missingFolders(names []string) string {
	for i, name := range names {
		if name == "SYSTEM" {
			names = slices.Clone(names)
			names[i] = "SYSTEM (such as aws, or any)"
		}
	}
	if n := len(names); n > 1 {
		return "the folders " + strings.Join(names[:n-1], ", ") + " and " + names[n-1] + " are missing"
	}
	return "the folder " + names[0] + " is missing"
}

// misnamedReleaseFile is about a file in a provider's folder, or in that of one
// of its versions, which is none of a release by its name. extra reports whether
// it is of no use to clients and belongs to the release all the same.
func (p *providerFolder) misnamedReleaseFile(dir, version, name string, beside *siblings) (bad *finding, extra bool) {
	if harmlessInProvider(name) {
		return nil, true
	}
	prefix := "terraform-provider-" + p.address.Name + "_"
	if rest, ok := strings.CutPrefix(name, prefix); ok {
		if text, _, ok := strings.Cut(rest, "_"); ok {
			version = text
		}
	}
	ofVersion := version // empty for any
	version = cmp.Or(version, "VERSION")
	sums, manifest := prefix+version+"_SHA256SUMS", prefix+version+"_manifest.json"
	kind, ofSums := strings.CutPrefix(name, sums)
	if !ofSums {
		kind, ofSums = strings.CutPrefix(name, "SHA256SUMS")
	}
	want := ""
	switch {
	case !ofSums && (name == "manifest.json" || name == "terraform-registry-manifest.json"):
		want = manifest
	case !ofSums:
	case kind == "" || kind == ".txt":
		want = sums
	case kind == ".asc":
		if !beside.has(sums + ".sig") {
			return misplaced("clients take the signature in binary form only: `gpg --dearmor --output %s.sig %s`", sums, plain(name)), false
		}
		return nil, true
	case strings.HasSuffix(kind, ".sig") || kind == ".gpg":
		want = sums + ".sig"
	}
	if want != "" {
		if beside.has(want) {
			return nil, true
		}
		return misplaced("rename it to %s: clients do not know it by another name", plain(want)), false
	}
	if bad := p.ofOtherPart(KindProvider, name); bad != nil {
		return bad, false
	}
	bad = misnamedPackage(plain(dir), p.address.Name, name)
	if bad != nil && beside.packaged(prefix, ofVersion) {
		return nil, true // the same release for other ways to install it
	}
	return bad, false
}
