package index

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// What a walk finds that is no file of the tree goes to the report here: as
// misplaced if it was meant to be offered, and else as ignored.

func (w *walker) misplace(report string, of address.Address, version string, f *finding) {
	p := Problem{Path: report, Version: version, Reason: f.reason, Detail: f.detail}
	if of != (address.Address{}) {
		p.Address = of.String()
	}
	w.report.withhold(p)
}

// siblings are what is in a folder, looked up by what a stray file in it would be
// called if it were right. There may be any number of either.
type siblings struct {
	entries []entry

	configuration string          // which stands for a module in a report
	names         map[string]bool // nil until one is asked for
	versions      map[string]bool // of which there are packages; the same
}

func newSiblings(entries []entry) *siblings {
	return &siblings{entries: entries, configuration: firstConfiguration(entries)}
}

// has reports whether there is a file or folder of that name.
func (s *siblings) has(name string) bool {
	if s.names == nil {
		s.names = make(map[string]bool, len(s.entries))
		for _, e := range s.entries {
			s.names[e.name] = true
		}
	}
	return s.names[name]
}

// packaged reports whether there are packages of a version, or of any if it is
// empty, whose names have the prefix.
func (s *siblings) packaged(prefix, version string) bool {
	if s.versions == nil {
		s.versions = make(map[string]bool)
		for _, e := range s.entries {
			rest, ours := strings.CutPrefix(e.name, prefix)
			if of, _, ok := strings.Cut(rest, "_"); ours && ok && strings.HasSuffix(rest, ".zip") {
				s.versions[of], s.versions[""] = true, true
			}
		}
	}
	return s.versions[version]
}

// fileWithoutAddress reports a file in a folder on the way to an address.
func (w *walker) fileWithoutAddress(f folder, part string, e entry, beside *siblings) {
	kind := KindProvider
	if part == "modules" {
		kind = KindModule
	}
	report := path.Join(f.report, e.name)
	if isConfiguration(e.name) && e.name != beside.configuration {
		return // one stands for the module
	}
	switch bad := f.misplaced(kind, e.name); {
	case bad != nil:
		w.misplace(report, address.Address{}, "", bad)
	case kind == KindProvider && harmlessInProvider(e.name):
	default:
		w.report.ignore(report, NotPartOfTree, "there are only folders here: move or remove it")
	}
}

// firstConfiguration names the file that stands for a module in a report.
func firstConfiguration(entries []entry) string {
	first := ""
	for _, e := range entries {
		if !e.info.IsDir() && isConfiguration(e.name) && (first == "" || e.name == "main.tf") {
			first = e.name
		}
	}
	return first
}

func (w *walker) badProviderAddress(f folder, err error) {
	bad := found(BadName, "%v", err)
	if len(f.names) == 2 && isVersion(f.names[1]) {
		typ := "TYPE"
		if files := w.releaseFilesIn(f.part, f.dir, f.report, 1); len(files) > 0 {
			typ = files[0].typ
		}
		bad = misplaced("the folder of a version is in that of its provider: move it to %s/", f.providerTarget(typ))
	}
	w.misplace(f.report, address.Address{}, "", bad)
}

func (w *walker) badModuleAddress(f folder, err error) {
	bad := found(BadName, "%v", err)
	if i := slices.IndexFunc(f.names, isVersion); i > 0 {
		target, missing := f.moduleTarget()
		bad = misplaced("%s: move the module to %s/%s/", missingFolders(missing), target, plain(f.names[i]))
	}
	w.misplace(f.report, address.Address{}, "", bad)
}

// strayProviderFile reports a file of a provider's folder that is none of a
// release.
func (w *walker) strayProviderFile(p *providerFolder, dir, version string, e entry, beside *siblings) {
	report := path.Join(dir, e.name)
	if isConfiguration(e.name) && e.name != beside.configuration {
		return
	}
	switch bad, extra := p.misnamedReleaseFile(dir, version, e.name, beside); {
	case bad != nil:
		w.misplace(report, p.address, version, bad)
	case !extra:
		w.report.ignore(report, NotPartOfTree, "it is not a file of a provider release: move or remove it")
	}
}

// buildFolder is where GoReleaser leaves a program that it has packed.
var buildFolder = regexp.MustCompile(`_[a-z0-9]+_[a-z0-9]+(_[a-z0-9.]+)?$`)

// strayProviderFolder reports a folder in a provider's folder that is not named
// after a version, and the release files in it.
func (w *walker) strayProviderFolder(p *providerFolder, part Part, dir string, e entry) {
	report := path.Join(dir, e.name)
	files := w.releaseFilesIn(part, e.path, report, 2)
	for _, f := range files {
		target := plain(dir)
		if f.typ != p.address.Name {
			target = plain(path.Join("providers", p.hostname, p.names[0], f.typ))
		}
		w.misplace(f.report, address.Address{}, "", misplaced("it lies too deep in the tree: move it to %s/", target))
	}
	if len(files) == 0 && !buildFolder.MatchString(e.name) {
		w.report.ignore(report, NotPartOfTree, "a folder here is named after a version, such as 1.0.0: move or remove it")
	}
}

// A foundRelease is a file of a release where there should be none.
type foundRelease struct{ report, typ string }

// releaseFilesIn looks for the files of releases in a folder.
func (w *walker) releaseFilesIn(part Part, dir, report string, depth int) []foundRelease {
	entries, err := part.list(dir)
	if err != nil || w.scan.ctx.Err() != nil {
		return nil // it is only about what could be offered from elsewhere
	}
	var files []foundRelease
	for _, e := range entries {
		report := path.Join(report, e.name)
		switch {
		case e.bad != nil || hiddenOrTemporary(e.name):
		case e.info.IsDir() && depth > 1:
			files = append(files, w.releaseFilesIn(part, e.path, report, depth-1)...)
		case !e.info.IsDir():
			if typ, ok := address.ReleaseFileType(e.name); ok {
				files = append(files, foundRelease{report, typ})
			}
		}
	}
	return files
}

// strayInModule reports what is not named after a version in a module's folder;
// false if it is.
func (w *walker) strayInModule(m *moduleFolder, e entry, beside *siblings) bool {
	report := path.Join(m.report, e.name)
	if e.info.IsDir() {
		if looksLikeVersion(e.name) {
			return false
		}
		w.strayModuleFolder(m, e, beside.configuration != "")
		return true
	}
	if isConfiguration(e.name) && e.name != beside.configuration {
		return true
	}
	if bad := m.misplaced(KindModule, e.name); bad != nil {
		w.misplace(report, m.address, "", bad)
		return true
	}
	if _, _, _, ok := parseModuleFile(e.name); ok {
		return false
	}
	w.report.ignore(report, NotPartOfTree, "a module is a folder or an archive named after its version, such as 1.0.0.tar.gz: move or remove it")
	return true
}

// someVersion is a version in a name that has more than that.
var someVersion = regexp.MustCompile(`[0-9]+\.[0-9]+\.[0-9]+[0-9A-Za-z.+-]*$`)

// strayModuleFolder reports a folder that is not named after a version, and the
// modules in it. If the module lies beside it, it belongs to that.
func (w *walker) strayModuleFolder(m *moduleFolder, e entry, besideModule bool) {
	if besideModule {
		return
	}
	report := path.Join(m.report, e.name)
	entries, err := m.part.list(e.path)
	if err != nil {
		entries = nil
	}
	entries = slices.DeleteFunc(entries, func(e entry) bool { return e.bad != nil || hiddenOrTemporary(e.name) })
	if firstConfiguration(entries) != "" {
		version := someVersion.FindString(e.name)
		if _, err := address.ParseModuleVersion(version); err != nil {
			version = "its version, such as 1.0.0"
		}
		w.misplace(report, m.address, "", misplaced("the folder of a module is named after its version: rename it to %s", version))
		return
	}
	stray := false
	for _, inner := range entries {
		stem, _, supported := cutArchive(inner.name)
		if !supported && !inner.info.IsDir() || !isVersion(stem) {
			continue
		}
		stray = true
		w.misplace(path.Join(report, inner.name), m.address, "", misplaced("it lies too deep in the tree: move it to %s/", plain(m.report)))
	}
	if !stray {
		w.report.ignore(report, NotPartOfTree, "a folder here is named after a version, such as 1.0.0: move or remove it")
	}
}

// The beginnings of keys in text form.
const (
	publicKeyBlock  = "-----BEGIN PGP PUBLIC KEY BLOCK-----"
	privateKeyBlock = "-----BEGIN PGP PRIVATE KEY BLOCK-----"
)

// strayInKeys reports what is in keys and is not named NAMESPACE.asc.
func (w *walker) strayInKeys(report string, e entry) {
	if e.info.IsDir() {
		entries, _ := w.scan.tree.Keys.list(e.path)
		if slices.ContainsFunc(entries, w.holdsPublicKey) {
			w.misplace(report, address.Address{}, "", misplaced("the public keys of a namespace are in one file: put them into %s", plain(report+".asc")))
			return
		}
		w.report.ignore(report, NotPartOfTree, "a folder here is named after a registry, such as registry.terraform.io: move or remove it")
		return
	}
	extension := path.Ext(e.name)
	target := plain(strings.TrimSuffix(report, extension) + ".asc")
	switch {
	case w.holds(e, publicKeyBlock):
		w.misplace(report, address.Address{}, "", misplaced("public keys are in files named NAMESPACE.asc: rename it to %s", target))
	case w.holds(e, privateKeyBlock):
		w.misplace(report, address.Address{}, "", misplaced("it is a private key: remove it, and write the public one with `gpg --armor --export KEY > %s`", target))
	case slices.Contains(keysExtensions, extension) || extension == ".pub" || extension == ".key":
		w.misplace(report, address.Address{}, "", misplaced("public keys are in text form here: write them with `gpg --armor --export KEY > %s`", target))
	default:
		w.report.ignore(report, NotPartOfTree, "public keys are in files named NAMESPACE.asc: move or remove it")
	}
}

// holds reports whether a file of keys begins with a kind of block.
func (w *walker) holds(e entry, block string) bool {
	if e.bad != nil || !e.info.Mode().IsRegular() || e.info.Size() > maxDocument {
		return false
	}
	content, err := w.scan.tree.Keys.read(e.path)
	return err == nil && strings.HasPrefix(strings.TrimSpace(string(content)), block)
}

func (w *walker) holdsPublicKey(e entry) bool { return w.holds(e, publicKeyBlock) }
