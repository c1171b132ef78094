package index

import (
	"cmp"
	"fmt"
	"path"
	"path/filepath"
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
// misplaced: see hint.

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
// whose path is not an address yet; nil if the file was not meant to be offered. kind is the
// part of the tree, providers or modules.
func (f folder) misplacedFile(kind, name string) *tree.Finding {
	if bad := f.inOtherPart(kind, name); bad != nil {
		return bad
	}
	if kind == "modules" {
		return f.misplacedModuleFile(name)
	}
	if typ, ok := address.ReleaseFileType(name); ok {
		return misplaced("a provider's files are in the folder of the provider: move it to %s/", f.providerTarget(typ))
	}
	return misnamedPackage(f.providerTarget("TYPE"), "TYPE", name)
}

// inOtherPart returns the finding for a file that belongs in another part of the
// tree than kind.
func (f folder) inOtherPart(kind, name string) *tree.Finding {
	below := func(part string) string {
		return address.Plain(path.Join(part, f.hostname, nameOr(f.names, 0, "NAMESPACE")))
	}
	if typ, ok := address.ReleaseFileType(name); ok {
		if kind == "modules" {
			return misplaced("it is a file of a provider release: move it to %s/%s/", below("providers"), typ)
		}
		return nil
	}
	if isKeysFile(name) {
		return misplaced("public keys are in one file for each namespace: move it to %s.asc", below("keys"))
	}
	if kind == "modules" || strings.HasPrefix(name, archive.ProviderPrefix) {
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
func (f folder) providerTarget(typ string) string {
	names, version := f.names, ""
	if n := len(names); n > 0 && isVersion(names[n-1]) {
		names, version = names[:n-1], names[n-1]
	}
	if n := len(names); n > 0 && strings.EqualFold(names[n-1], typ) {
		names = names[:n-1]
	}
	return address.Plain(path.Join("providers", f.hostname, nameOr(names, 0, "NAMESPACE"), typ, version))
}

// addressTarget returns the folder of a provider or a module in that part of the tree, with
// placeholders for unknown names.
func (f folder) addressTarget(kind string) string {
	if kind == "modules" {
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
func (f folder) misplacedModuleFile(name string) *tree.Finding {
	target, missing := f.moduleTarget()
	if moduledoc.IsConfiguration(name) {
		version, folders := "VERSION", missing
		if n := len(f.names); n > 0 && isVersion(f.names[n-1]) {
			version = f.names[n-1]
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
		return misplaced("module packages are .tar.gz, .tgz or .zip files: pack the module as %s/%s", target, file)
	}
	return misplaced("%s: move it to %s/%s", missingFolders(missing), target, file)
}

// moduleTarget returns the folder of a module, with placeholders for unknown names, and the
// unknown names.
func (f folder) moduleTarget() (target string, missing []string) {
	names := f.names
	if i := slices.IndexFunc(names, isVersion); i >= 0 {
		names = names[:i]
	}
	missing = []string{"NAMESPACE", "NAME", "SYSTEM"}[min(len(names), 3):]
	return address.Plain(path.Join("modules", f.hostname, path.Join(names...), path.Join(missing...))), missing
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
func (p *providerFolder) misnamedReleaseFile(dir, version, name string, beside *siblings) (bad *tree.Finding, extra bool) {
	if harmlessInProvider(name) {
		return nil, true
	}
	typ := p.address.Name
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
	if bad := p.inOtherPart("providers", name); bad != nil {
		return bad, false
	}
	bad = misnamedPackage(address.Plain(dir), typ, name)
	if bad != nil && beside.packaged(prefix, version) {
		return nil, true // the same release in another format
	}
	return bad, false
}

const (
	// nothingYet is the hint for an empty root.
	nothingYet = "nothing is in the root yet: the first provider goes to " +
		"providers/NAMESPACE/TYPE/terraform-provider-TYPE_VERSION_OS_ARCH.zip, " +
		"the first module to modules/NAMESPACE/NAME/SYSTEM/VERSION.tar.gz"

	// maxHintDepth and maxHintEntries bound the search. The root may be any folder
	// of the machine.
	maxHintDepth   = 7
	maxHintEntries = 5000
)

// hint says what to do about a root without files of a tree: most often it is the wrong
// folder, such as the parent of the tree or a folder in it. The hint is empty if the path of
// the root is unknown.
func hint(t tree.Tree) string {
	if t.Root.Fs == nil {
		return ""
	}
	s := clueSearch{root: t.Root}
	s.search(nil)
	if s.clue == nil {
		return nothingYet
	}
	return s.clue.hint(t.Root)
}

// A clue is the first package of a provider or a module: its path shows where the tree is.
type clue struct {
	part    string   // providers or modules
	folders []string // from the root to the package, without the folder of a version
	path    string
}

// A clueSearch looks for a clue below a root.
type clueSearch struct {
	root    tree.Part
	entries int // seen so far
	clue    *clue
}

// search searches a folder and the folders below it. It reports whether the search is over:
// it has found a clue, or has seen enough entries.
func (s *clueSearch) search(folders []string) (over bool) {
	entries, err := s.root.List(path.Join(append([]string{"."}, folders...)...))
	if err != nil {
		return false // a folder that cannot be read cannot be the tree
	}
	if s.entries += len(entries); s.entries > maxHintEntries {
		return true
	}
	for _, e := range entries {
		switch {
		case e.Bad != nil || tree.IsHiddenOrTemporary(e.Name) || harmless(e.Name, !e.Info.IsDir()):
		case !e.Info.IsDir():
			if s.clue = clueOf(folders, e); s.clue != nil {
				return true
			}
		case len(folders) < maxHintDepth:
			if s.search(append(folders[:len(folders):len(folders)], e.Name)) {
				return true
			}
		}
	}
	return false
}

// clueOf returns the clue that a file gives, or nil.
func clueOf(folders []string, e tree.Entry) *clue {
	stem, _, supported := cutArchive(e.Name)
	_, isRelease := address.ReleaseFileType(e.Name)
	n := len(folders)
	inVersion := n > 0 && isVersion(folders[n-1])
	var c *clue
	switch {
	case isRelease && strings.HasSuffix(e.Name, ".zip"):
		c = &clue{"providers", folders, e.Path()}
	case supported && isVersion(stem):
		c = &clue{"modules", folders, e.Path()}
	case moduledoc.IsConfiguration(e.Name) && inVersion:
		c = &clue{"modules", folders, path.Dir(e.Path())}
	case providerProgram.MatchString(e.Name) && inUnpackedPackage(folders):
		c = &clue{"providers", folders[:n-1], path.Dir(e.Path())}
	default:
		return nil
	}
	if n := len(c.folders); n > 0 && isVersion(c.folders[n-1]) {
		c.folders = c.folders[:n-1]
	}
	return c
}

// inUnpackedPackage reports whether folders end in the path of an unpacked package,
// NAMESPACE/TYPE/VERSION/OS_ARCH.
func inUnpackedPackage(folders []string) bool {
	n := len(folders)
	if n < 4 || !isVersion(folders[n-2]) {
		return false
	}
	_, ok := platformOfFolder(folders[n-1])
	return ok
}

func (c clue) hint(root tree.Part) string {
	depth := map[string]int{"providers": 2, "modules": 3}[c.part]
	above := strings.Split(filepath.ToSlash(root.DiskPath(".")), "/") // the last name is the root's
	// The name may be nearly right: in another case, or without the s.
	isPart := func(name string) bool {
		return strings.EqualFold(name, c.part) || strings.EqualFold(name+"s", c.part)
	}
	switch at := slices.IndexFunc(c.folders, isPart); {
	case at > 0:
		return fmt.Sprintf("the tree is not the root but in it: make its folder %s the root", address.Plain(path.Join(c.folders[:at]...)))
	case at == 0 && c.folders[0] != c.part:
		return fmt.Sprintf("the folder %s in the root must be named %s: rename it", address.Plain(c.folders[0]), c.part)
	case at == 0:
		return fmt.Sprintf("the root has the folder %s, but another one is configured: remove the option %[1]s, or set it to that folder", c.part)
	case isPart(above[len(above)-1]):
		return fmt.Sprintf("the root is the folder %s of a tree (it has %s): make the folder above it the root", c.part, address.Plain(c.path))
	case slices.ContainsFunc(above, isPart):
		return fmt.Sprintf("the root is inside the folder %s of a tree (it has %s): make the folder that has %[1]s in it the root", c.part, address.Plain(c.path))
	case len(c.folders) >= depth:
		return fmt.Sprintf("%s are right in the root (%s): move them to the folder %[1]s in the root, or set the option %[1]s to the folder they are in", c.part, address.Plain(c.path))
	}
	target := "modules/NAMESPACE/NAME/SYSTEM"
	if typ, ok := address.ReleaseFileType(path.Base(c.path)); ok {
		target = "providers/NAMESPACE/" + typ
	}
	return fmt.Sprintf("the root is a folder inside a tree: seen from the root, the path of %s should be %s", address.Plain(c.path), address.Plain(path.Join(target, path.Base(c.path))))
}
