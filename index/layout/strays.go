package layout

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index/report"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// A Walk is where strays are found.
type Walk interface {
	// Look returns the entries of a folder from which nothing is offered.
	Look(part tree.Part, dir string) []tree.Entry

	// NoteFault has another scan follow an error that may be over a moment later.
	NoteFault(err error)
}

// Strays reports files and folders that are not offered, since they lie where nothing of
// their name belongs.
type Strays struct {
	Report *report.Report
	Walk   Walk
}

// misplace reports a file or folder that is not offered in its place, without an address.
func (s Strays) misplace(report string, f *tree.Finding) {
	s.Report.Withhold(report, address.Address{}, "", f)
}

// FileOnWay reports a file in a folder on the way to an address.
func (s Strays) FileOnWay(f Folder, e tree.Entry, beside *Siblings) {
	report := path.Join(f.Report, e.Name)
	if beside.represented(e.Name) {
		return
	}
	switch bad := f.misplacedFile(e.Name); {
	case IsMetadata(e):
		s.misplace(report, misplaced("it is in the folder of one provider or module: move it to %s/", f.addressTarget()))
	case bad != nil:
		s.misplace(report, bad)
	case !f.IsModule() && harmlessInProvider(e.Name):
	default:
		s.Report.Ignore(report, tree.NotPartOfTree, "there are only folders here: move or remove it")
	}
}

// BadAddress reports a folder whose path has the names of an address and is not one. err says
// why.
func (s Strays) BadAddress(f Folder, err error) {
	if f.IsModule() {
		s.badModuleAddress(f, err)
	} else {
		s.badProviderAddress(f, err)
	}
}

// badProviderAddress reports a folder whose path is not the address of a provider.
func (s Strays) badProviderAddress(f Folder, err error) {
	bad := tree.Findingf(tree.BadName, "%v", err)
	if len(f.Names) == 2 && isVersion(f.Names[1]) {
		typ := "TYPE"
		if files := s.releaseFilesIn(f.Part, f.Dir, f.Report, 1); len(files) > 0 {
			typ = files[0].typ
		}
		bad = misplaced("the folder of a version belongs in the folder of its provider: move it to %s/", f.providerTarget(typ))
	}
	s.misplace(f.Report, bad)
}

// badModuleAddress reports a folder whose path is not the address of a module.
func (s Strays) badModuleAddress(f Folder, err error) {
	bad := tree.Findingf(tree.BadName, "%v", err)
	if i := slices.IndexFunc(f.Names, isVersion); i > 0 {
		target, missing := f.moduleTarget()
		bad = misplaced("%s: move the module to %s/%s/", missingFolders(missing), target, address.Plain(f.Names[i]))
	}
	s.misplace(f.Report, bad)
}

// FileInProvider reports a file in a provider's folder that is not part of a
// release.
func (s Strays) FileInProvider(f Folder, dir, version string, e tree.Entry, beside *Siblings) {
	report := path.Join(dir, e.Name)
	if beside.represented(e.Name) {
		return
	}
	switch bad, extra := f.misnamedReleaseFile(dir, version, e.Name, beside); {
	case IsMetadata(e):
		s.Report.Withhold(report, f.Address, version, misplaced("it is of all versions: move it to %s/", address.Plain(f.Report)))
	case bad != nil:
		s.Report.Withhold(report, f.Address, version, bad)
	case !extra:
		s.Report.Ignore(report, tree.NotPartOfTree, "it is not a file of a provider release: move or remove it")
	}
}

// buildFolder is where GoReleaser leaves a program that it has packed.
var buildFolder = regexp.MustCompile(`_[a-z0-9]+_[a-z0-9]+(_[a-z0-9.]+)?$`)

// FolderInProvider reports a folder in a provider's folder that is not named
// after a version, or the release files in it.
func (s Strays) FolderInProvider(f Folder, dir string, e tree.Entry) {
	report := path.Join(dir, e.Name)
	files := s.releaseFilesIn(f.Part, e.Path(), report, 2)
	for _, file := range files {
		target := address.Plain(dir)
		if file.typ != f.Address.Name {
			target = address.Plain(path.Join("providers", f.Hostname, f.Names[0], file.typ))
		}
		s.misplace(file.report, misplaced("it lies too deep in the tree: move it to %s/", target))
	}
	if len(files) == 0 && !buildFolder.MatchString(e.Name) {
		s.Report.Ignore(report, tree.NotPartOfTree, "a folder here is named after a version, such as 1.0.0: move or remove it")
	}
}

// A misplacedRelease is a file of a release in a folder that has no releases.
type misplacedRelease struct{ report, typ string }

// releaseFilesIn looks for files of releases in a folder and depth-1 folders below.
func (s Strays) releaseFilesIn(part tree.Part, dir, report string, depth int) []misplacedRelease {
	var files []misplacedRelease
	for _, e := range s.Walk.Look(part, dir) {
		report := path.Join(report, e.Name)
		switch {
		case e.Bad != nil || tree.IsHiddenOrTemporary(e.Name):
		case e.Info.IsDir() && depth > 1:
			files = append(files, s.releaseFilesIn(part, e.Path(), report, depth-1)...)
		case !e.Info.IsDir():
			if typ, ok := address.ReleaseFileType(e.Name); ok {
				files = append(files, misplacedRelease{report, typ})
			}
		}
	}
	return files
}

// InModule reports an entry of a module's folder, and returns false without a report if
// the entry is named after a version.
func (s Strays) InModule(f Folder, e tree.Entry, beside *Siblings) bool {
	report := path.Join(f.Report, e.Name)
	if e.Info.IsDir() {
		if LooksLikeVersion(e.Name) {
			return false
		}
		s.folderInModule(f, e, beside)
		return true
	}
	if beside.represented(e.Name) {
		return true
	}
	if bad := f.misplacedFile(e.Name); bad != nil {
		s.Report.Withhold(report, f.Address, "", bad)
		return true
	}
	if _, _, _, ok := address.ParseModuleFile(e.Name); ok {
		return false
	}
	s.Report.Ignore(report, tree.NotPartOfTree, "a module is a folder or an archive named after its version, such as 1.0.0.tar.gz: move or remove it")
	return true
}

// versionAtEnd matches the version at the end of a longer name.
var versionAtEnd = regexp.MustCompile(`[0-9]+\.[0-9]+\.[0-9]+[0-9A-Za-z.+-]*$`)

// folderInModule reports a folder that is not named after a version, or the modules in
// it. Beside configuration the folder is part of that module, unless there is a version in
// its name or in it.
func (s Strays) folderInModule(f Folder, e tree.Entry, beside *Siblings) {
	isPart := beside.configuration != ""
	report := path.Join(f.Report, e.Name)
	entries := slices.DeleteFunc(s.Walk.Look(f.Part, e.Path()), func(e tree.Entry) bool { return e.Bad != nil || tree.IsHiddenOrTemporary(e.Name) })
	if firstConfiguration(entries) != "" {
		version := versionAtEnd.FindString(e.Name)
		if _, err := address.ParseModuleVersion(version); err != nil {
			if isPart {
				return
			}
			version = "its version, such as 1.0.0"
		}
		s.Report.Withhold(report, f.Address, "", misplaced("the folder of a module is named after its version: rename it to %s", version))
		return
	}
	tooDeep := false
	for _, inner := range entries {
		stem, _, supported := cutArchive(inner.Name)
		if !supported && !inner.Info.IsDir() || !isVersion(stem) {
			continue
		}
		tooDeep = true
		s.Report.Withhold(path.Join(report, inner.Name), f.Address, "", misplaced("it lies too deep in the tree: move it to %s/", address.Plain(f.Report)))
	}
	if !tooDeep && !isPart {
		s.Report.Ignore(report, tree.NotPartOfTree, "a folder here is named after a version, such as 1.0.0: move or remove it")
	}
}

// The beginnings of keys in text form.
const (
	publicKeyBlock  = "-----BEGIN PGP PUBLIC KEY BLOCK-----"
	privateKeyBlock = "-----BEGIN PGP PRIVATE KEY BLOCK-----"
)

// InKeys reports an entry of keys that is not named NAMESPACE.asc.
func (s Strays) InKeys(keys tree.Part, report string, e tree.Entry) {
	if e.Info.IsDir() {
		if slices.ContainsFunc(s.Walk.Look(keys, e.Path()), func(e tree.Entry) bool { return s.containsBlock(keys, e, publicKeyBlock) }) {
			s.misplace(report, misplaced("the public keys of a namespace are in one file: put them into %s", address.Plain(report+".asc")))
			return
		}
		s.Report.Ignore(report, tree.NotPartOfTree, "a folder here is named after a registry, such as registry.terraform.io: move or remove it")
		return
	}
	extension := path.Ext(e.Name)
	target := address.Plain(strings.TrimSuffix(report, extension) + ".asc")
	switch {
	case s.containsBlock(keys, e, publicKeyBlock):
		s.misplace(report, misplaced("public keys are in files named NAMESPACE.asc: rename it to %s", target))
	case s.containsBlock(keys, e, privateKeyBlock):
		s.misplace(report, misplaced("it is a private key: remove it, and write the public one with `gpg --armor --export KEY > %s`", target))
	case slices.Contains(keysExtensions, extension) || extension == ".pub" || extension == ".key":
		s.misplace(report, misplaced("public keys are in text form here: write them with `gpg --armor --export KEY > %s`", target))
	default:
		s.Report.Ignore(report, tree.NotPartOfTree, "public keys are in files named NAMESPACE.asc: move or remove it")
	}
}

// containsBlock reports whether a file below keys begins with a kind of block.
func (s Strays) containsBlock(keys tree.Part, e tree.Entry, block string) bool {
	if e.Bad != nil || !e.Info.Mode().IsRegular() || e.Info.Size() > tree.MaxDocument {
		return false
	}
	content, err := keys.ReadDocument(e.Path())
	s.Walk.NoteFault(err)
	return err == nil && strings.HasPrefix(strings.TrimSpace(string(content)), block)
}
