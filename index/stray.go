package index

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index/moduledoc"
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

// harmless reports whether tools, file systems or people leave files or folders of
// that name anywhere in a tree.
func harmless(name string, isFile bool) bool {
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

// siblings are the entries of a folder, for looking up the names that a stray file among
// them should have. There may be any number of entries and stray files.
type siblings struct {
	entries []tree.Entry

	configuration string          // the file that a report names in place of all configuration here
	names         map[string]bool // nil until the first look-up
	versions      map[string]bool // versions with packages; nil until the first look-up
}

func newSiblings(entries []tree.Entry) *siblings {
	return &siblings{entries: entries, configuration: firstConfiguration(entries)}
}

// firstConfiguration returns the name of the file that a report names for a module; empty if
// there is no configuration.
func firstConfiguration(entries []tree.Entry) string {
	first := ""
	for _, e := range entries {
		if !e.Info.IsDir() && moduledoc.IsConfiguration(e.Name) && (first == "" || e.Name == "main.tf") {
			first = e.Name
		}
	}
	return first
}

// represented reports whether a report names another file of the same module instead of this
// one.
func (s *siblings) represented(name string) bool {
	return moduledoc.IsConfiguration(name) && name != s.configuration
}

// has reports whether there is a file or folder of that name.
func (s *siblings) has(name string) bool {
	if s.names == nil {
		s.names = make(map[string]bool, len(s.entries))
		for _, e := range s.entries {
			s.names[e.Name] = true
		}
	}
	return s.names[name]
}

// packaged reports whether there are packages of a version, or of any version if it is
// empty. The names of the packages begin with prefix.
func (s *siblings) packaged(prefix, version string) bool {
	if s.versions == nil {
		s.versions = make(map[string]bool)
		for _, e := range s.entries {
			rest, ok := strings.CutPrefix(e.Name, prefix)
			if v, _, cut := strings.Cut(rest, "_"); ok && cut && strings.HasSuffix(rest, ".zip") {
				s.versions[v], s.versions[""] = true, true
			}
		}
	}
	return s.versions[version]
}

// misplace reports a file or folder that is not offered in its place, without an address.
func (w *walker) misplace(report string, f *tree.Finding) {
	w.report.Withhold(report, address.Address{}, "", f)
}

// fileWithoutAddress reports a file in a folder on the way to an address.
func (w *walker) fileWithoutAddress(f folder, e tree.Entry, beside *siblings) {
	kind, _, _ := strings.Cut(f.report, "/") // providers or modules
	report := path.Join(f.report, e.Name)
	if beside.represented(e.Name) {
		return
	}
	switch bad := f.misplacedFile(kind, e.Name); {
	case isMetadata(e):
		w.misplace(report, misplaced("it is in the folder of one provider or module: move it to %s/", f.addressTarget(kind)))
	case bad != nil:
		w.misplace(report, bad)
	case kind == "providers" && harmlessInProvider(e.Name):
	default:
		w.report.Ignore(report, tree.NotPartOfTree, "there are only folders here: move or remove it")
	}
}

// badProviderAddress reports a folder whose path is not the address of a provider.
func (w *walker) badProviderAddress(f folder, err error) {
	bad := tree.Findingf(tree.BadName, "%v", err)
	if len(f.names) == 2 && isVersion(f.names[1]) {
		typ := "TYPE"
		if files := w.releaseFilesIn(f.part, f.dir, f.report, 1); len(files) > 0 {
			typ = files[0].typ
		}
		bad = misplaced("the folder of a version belongs in the folder of its provider: move it to %s/", f.providerTarget(typ))
	}
	w.misplace(f.report, bad)
}

// badModuleAddress reports a folder whose path is not the address of a module.
func (w *walker) badModuleAddress(f folder, err error) {
	bad := tree.Findingf(tree.BadName, "%v", err)
	if i := slices.IndexFunc(f.names, isVersion); i > 0 {
		target, missing := f.moduleTarget()
		bad = misplaced("%s: move the module to %s/%s/", missingFolders(missing), target, address.Plain(f.names[i]))
	}
	w.misplace(f.report, bad)
}

// strayProviderFile reports a file in a provider's folder that is not part of a
// release.
func (w *walker) strayProviderFile(p *providerFolder, dir, version string, e tree.Entry, beside *siblings) {
	report := path.Join(dir, e.Name)
	if beside.represented(e.Name) {
		return
	}
	switch bad, extra := p.misnamedReleaseFile(dir, version, e.Name, beside); {
	case isMetadata(e):
		w.report.Withhold(report, p.address, version, misplaced("it is of all versions: move it to %s/", address.Plain(p.report)))
	case bad != nil:
		w.report.Withhold(report, p.address, version, bad)
	case !extra:
		w.report.Ignore(report, tree.NotPartOfTree, "it is not a file of a provider release: move or remove it")
	}
}

// buildFolder is where GoReleaser leaves a program that it has packed.
var buildFolder = regexp.MustCompile(`_[a-z0-9]+_[a-z0-9]+(_[a-z0-9.]+)?$`)

// strayProviderFolder reports a folder in a provider's folder that is not named
// after a version, or the release files in it.
func (w *walker) strayProviderFolder(p *providerFolder, dir string, e tree.Entry) {
	w.depends = true // the result depends on the files in the folder
	report := path.Join(dir, e.Name)
	files := w.releaseFilesIn(p.part, e.Path(), report, 2)
	for _, f := range files {
		target := address.Plain(dir)
		if f.typ != p.address.Name {
			target = address.Plain(path.Join("providers", p.hostname, p.names[0], f.typ))
		}
		w.misplace(f.report, misplaced("it lies too deep in the tree: move it to %s/", target))
	}
	if len(files) == 0 && !buildFolder.MatchString(e.Name) {
		w.report.Ignore(report, tree.NotPartOfTree, "a folder here is named after a version, such as 1.0.0: move or remove it")
	}
}

// A misplacedRelease is a file of a release in a folder that has no releases.
type misplacedRelease struct{ report, typ string }

// releaseFilesIn looks for files of releases in a folder and depth-1 folders below.
func (w *walker) releaseFilesIn(part tree.Part, dir, report string, depth int) []misplacedRelease {
	var files []misplacedRelease
	for _, e := range w.look(part, dir) {
		report := path.Join(report, e.Name)
		switch {
		case e.Bad != nil || tree.IsHiddenOrTemporary(e.Name):
		case e.Info.IsDir() && depth > 1:
			files = append(files, w.releaseFilesIn(part, e.Path(), report, depth-1)...)
		case !e.Info.IsDir():
			if typ, ok := address.ReleaseFileType(e.Name); ok {
				files = append(files, misplacedRelease{report, typ})
			}
		}
	}
	return files
}

// strayInModule reports an entry of a module's folder, and returns false without a report if
// the entry is named after a version.
func (w *walker) strayInModule(m *moduleFolder, e tree.Entry, beside *siblings) bool {
	report := path.Join(m.report, e.Name)
	if e.Info.IsDir() {
		if looksLikeVersion(e.Name) {
			return false
		}
		w.strayModuleFolder(m, e, beside)
		return true
	}
	if beside.represented(e.Name) {
		return true
	}
	if bad := m.misplacedFile("modules", e.Name); bad != nil {
		w.report.Withhold(report, m.address, "", bad)
		return true
	}
	if _, _, _, ok := address.ParseModuleFile(e.Name); ok {
		return false
	}
	w.report.Ignore(report, tree.NotPartOfTree, "a module is a folder or an archive named after its version, such as 1.0.0.tar.gz: move or remove it")
	return true
}

// versionAtEnd matches the version at the end of a longer name.
var versionAtEnd = regexp.MustCompile(`[0-9]+\.[0-9]+\.[0-9]+[0-9A-Za-z.+-]*$`)

// strayModuleFolder reports a folder that is not named after a version, or the modules in
// it. Beside configuration the folder is part of that module, unless there is a version in
// its name or in it.
func (w *walker) strayModuleFolder(m *moduleFolder, e tree.Entry, beside *siblings) {
	w.depends = true // on what is in the folder
	isPart := beside.configuration != ""
	report := path.Join(m.report, e.Name)
	entries := slices.DeleteFunc(w.look(m.part, e.Path()), func(e tree.Entry) bool { return e.Bad != nil || tree.IsHiddenOrTemporary(e.Name) })
	if firstConfiguration(entries) != "" {
		version := versionAtEnd.FindString(e.Name)
		if _, err := address.ParseModuleVersion(version); err != nil {
			if isPart {
				return
			}
			version = "its version, such as 1.0.0"
		}
		w.report.Withhold(report, m.address, "", misplaced("the folder of a module is named after its version: rename it to %s", version))
		return
	}
	tooDeep := false
	for _, inner := range entries {
		stem, _, supported := cutArchive(inner.Name)
		if !supported && !inner.Info.IsDir() || !isVersion(stem) {
			continue
		}
		tooDeep = true
		w.report.Withhold(path.Join(report, inner.Name), m.address, "", misplaced("it lies too deep in the tree: move it to %s/", address.Plain(m.report)))
	}
	if !tooDeep && !isPart {
		w.report.Ignore(report, tree.NotPartOfTree, "a folder here is named after a version, such as 1.0.0: move or remove it")
	}
}

// The beginnings of keys in text form.
const (
	publicKeyBlock  = "-----BEGIN PGP PUBLIC KEY BLOCK-----"
	privateKeyBlock = "-----BEGIN PGP PRIVATE KEY BLOCK-----"
)

// strayInKeys reports an entry of keys that is not named NAMESPACE.asc.
func (w *walker) strayInKeys(report string, e tree.Entry) {
	if e.Info.IsDir() {
		if slices.ContainsFunc(w.look(w.scan.tree.Keys, e.Path()), w.holdsPublicKey) {
			w.misplace(report, misplaced("the public keys of a namespace are in one file: put them into %s", address.Plain(report+".asc")))
			return
		}
		w.report.Ignore(report, tree.NotPartOfTree, "a folder here is named after a registry, such as registry.terraform.io: move or remove it")
		return
	}
	extension := path.Ext(e.Name)
	target := address.Plain(strings.TrimSuffix(report, extension) + ".asc")
	switch {
	case w.containsBlock(e, publicKeyBlock):
		w.misplace(report, misplaced("public keys are in files named NAMESPACE.asc: rename it to %s", target))
	case w.containsBlock(e, privateKeyBlock):
		w.misplace(report, misplaced("it is a private key: remove it, and write the public one with `gpg --armor --export KEY > %s`", target))
	case slices.Contains(keysExtensions, extension) || extension == ".pub" || extension == ".key":
		w.misplace(report, misplaced("public keys are in text form here: write them with `gpg --armor --export KEY > %s`", target))
	default:
		w.report.Ignore(report, tree.NotPartOfTree, "public keys are in files named NAMESPACE.asc: move or remove it")
	}
}

// containsBlock reports whether a file below keys begins with a kind of block.
func (w *walker) containsBlock(e tree.Entry, block string) bool {
	if e.Bad != nil || !e.Info.Mode().IsRegular() || e.Info.Size() > tree.MaxDocument {
		return false
	}
	content, err := w.scan.tree.Keys.ReadDocument(e.Path())
	w.noteFault(err)
	return err == nil && strings.HasPrefix(strings.TrimSpace(string(content)), block)
}

func (w *walker) holdsPublicKey(e tree.Entry) bool { return w.containsBlock(e, publicKeyBlock) }
