package module

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/fill"
)

// Holdings are the releases that a tree offers, with their files.
type holdings struct {
	in       index.Part
	releases []fill.Held
	sizes    map[string]int64 // of packages, by file
	folders  map[string]bool  // packages that are folders
	withheld int
}

func newHoldings(in index.Part, s *index.Snapshot) *holdings {
	h := &holdings{in: in, sizes: make(map[string]int64), folders: make(map[string]bool), withheld: len(s.Report.Withheld)}
	for p := range s.Providers() {
		for _, r := range p.Releases {
			h.releases = append(h.releases, h.held(p.Address, r))
		}
	}
	return h
}

// held are the files of a release: its packages, and behind them what vouches
// for these.
func (h *holdings) held(address address.Address, r *index.Release) fill.Held {
	held := fill.Held{Address: address, Version: r.Version}
	for _, p := range r.Packages {
		held.Files = append(held.Files, p.File.Path())
		h.sizes[p.File.Path()] = p.File.Size
		if p.File.IsFolder() {
			h.folders[p.File.Path()] = true
		}
	}
	dir := providerFolder(held.Files[0])
	for _, folder := range []string{dir, path.Join(dir, r.Version)} {
		for _, rest := range []string{"SHA256SUMS.sig", "SHA256SUMS", "manifest.json"} {
			name := path.Join(folder, "terraform-provider-"+address.Name+"_"+r.Version+"_"+rest)
			if _, err := h.in.Fs.Stat(path.Join(h.in.Dir, name)); err == nil {
				held.Files = append(held.Files, name)
			}
		}
	}
	return held
}

// providerFolder is that of the provider of a package, which may lie in a folder
// of its version there. No type is a version: it has no dots.
func providerFolder(file string) string {
	dir := path.Dir(file)
	if _, err := address.ParseProviderVersion(path.Base(dir)); err == nil {
		return path.Dir(dir)
	}
	return dir
}

// A pruning is one run of the prune command.
type pruning struct {
	*holdings
	plan     fill.Pruning
	files    int    // lock files
	from     string // the folder of the providers
	dry      bool
	shared   []string // files that stay, since they are reached by another name too
	unpacked []string // packages that stay, since they are folders
	failed   []error
}

// knowsOwn refuses to remove what may be the registry's own. Only of the public
// registries it is known that they are not; lock files name both kinds.
func (p *pruning) knowsOwn(said bool) error {
	var hostnames []string
	for _, h := range p.plan.Remove {
		if host := h.Address.Hostname; host != upstream.TerraformHost && host != upstream.OpenTofuHost && !slices.Contains(hostnames, host.ForDisplay()) {
			hostnames = append(hostnames, host.ForDisplay())
		}
	}
	if said || len(hostnames) == 0 {
		return nil
	}
	belong := "belong"
	if len(hostnames) == 1 {
		belong = "belongs"
	}
	return fmt.Errorf("it is not known whether %s %s to the registry itself: give its hostnames with --own, or --own \"\" if it has no providers under a hostname of its own", strings.Join(hostnames, ", "), belong)
}

// keepShared takes out of the plan what is reached by a name that is not in it
// too, and unpacked packages: their folders may be anything's, such as the
// plugin cache that a client works with. Folders may be symlinks to one another, and what is removed by one name
// is gone by all: what a lock file names, or what is the registry's own.
func (p *pruning) keepShared() {
	goes := make(map[string]bool)
	for _, file := range p.plan.Files() {
		goes[file] = true
	}
	if len(goes) == 0 {
		return
	}
	stays := make(map[int64][]fs.FileInfo) // by size, since identity is only known of two
	p.eachFile(".", 0, func(name string, info fs.FileInfo) {
		if !goes[name] {
			stays[info.Size()] = append(stays[info.Size()], info)
		}
	})
	shared := func(name string) bool {
		info, err := p.in.Fs.Stat(path.Join(p.in.Dir, name))
		return err == nil && slices.ContainsFunc(stays[info.Size()], func(other fs.FileInfo) bool { return os.SameFile(info, other) })
	}
	var remove []fill.Held
	for _, h := range p.plan.Remove {
		var files []string
		packages, kept := 0, 0
		for _, file := range h.Files {
			switch is := shared(file); {
			case p.folders[file]:
				p.unpacked = append(p.unpacked, file)
				kept++
			case is:
				p.shared = append(p.shared, file)
				if isPackage(file) {
					kept++
				}
			case isPackage(file):
				packages++
				files = append(files, file)
			case kept == 0: // packages come first; one that stays needs what vouches for it
				files = append(files, file)
			}
		}
		if h.Files = files; packages == 0 && kept > 0 {
			p.plan.Kept++
			continue
		}
		remove = append(remove, h)
	}
	p.plan.Remove = remove
}

// maxFolders is how deep a package may lie: in folders of its hostname,
// namespace, type and version.
const maxFolders = 4

// eachFile visits all files by all their names, symlinks followed. What cannot
// be read is passed over: the registry does not offer it.
func (p *pruning) eachFile(dir string, depth int, visit func(name string, info fs.FileInfo)) {
	entries, _ := afero.ReadDir(p.in.Fs, path.Join(p.in.Dir, dir))
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		info, err := p.in.Fs.Stat(path.Join(p.in.Dir, name))
		switch {
		case err != nil:
		case !info.IsDir():
			visit(name, info)
		case depth < maxFolders:
			p.eachFile(name, depth+1, visit)
		}
	}
}

func isPackage(file string) bool { return strings.HasSuffix(file, ".zip") }

// size is that of the packages that go.
func (p *pruning) size() (sum int64) {
	for _, file := range p.plan.Files() {
		sum += p.sizes[file]
	}
	return sum
}

// remove carries out the plan. A failure does not stop the rest, and takes its
// release out of what was removed.
func (p *pruning) remove() {
	p.plan.Remove = slices.DeleteFunc(slices.Clone(p.plan.Remove), func(h fill.Held) bool {
		failed := len(p.failed)
		p.removeRelease(h)
		return len(p.failed) > failed
	})
}

// removeRelease removes the packages first, and what vouches for them only if
// none is left: a package that is withheld because it is not the one that was
// signed would be offered without it.
func (p *pruning) removeRelease(h fill.Held) {
	var documents []string
	for _, file := range h.Files {
		if !isPackage(file) {
			documents = append(documents, file)
		} else if !p.removeFile(file) {
			return
		}
	}
	if len(h.Files) == 0 {
		return
	}
	dir := providerFolder(h.Files[0])
	if !p.hasPackages(dir, h) && !p.hasPackages(path.Join(dir, h.Version), h) {
		for _, file := range documents {
			p.removeFile(file)
		}
	}
	p.removeFolder(path.Join(dir, h.Version))
	if p.onlyRecord(dir) {
		p.removeFile(path.Join(dir, recordName))
	}
	for dir != "." && p.removeFolder(dir) {
		dir = path.Dir(dir)
	}
}

func (p *pruning) removeFile(name string) bool {
	err := p.in.Fs.Remove(path.Join(p.in.Dir, name))
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return true
	}
	var inner *fs.PathError
	if errors.As(err, &inner) {
		err = inner.Err
	}
	p.failed = append(p.failed, fmt.Errorf("%s: %w", name, err))
	return false
}

// removeFolder removes one that is empty: others are refused.
func (p *pruning) removeFolder(dir string) bool {
	name := path.Join(p.in.Dir, dir)
	entries, err := afero.ReadDir(p.in.Fs, name)
	return err == nil && len(entries) == 0 && p.in.Fs.Remove(name) == nil
}

// hasPackages tells whether a folder has packages of a release, also such as are
// not offered.
func (p *pruning) hasPackages(dir string, h fill.Held) bool {
	entries, _ := afero.ReadDir(p.in.Fs, path.Join(p.in.Dir, dir))
	return slices.ContainsFunc(entries, func(e fs.FileInfo) bool {
		return strings.HasPrefix(e.Name(), "terraform-provider-"+h.Address.Name+"_"+h.Version+"_") && strings.HasSuffix(e.Name(), ".zip")
	})
}

// recordName is the file in which a mirror keeps the list of a provider's
// versions, which is of no use without the provider.
const recordName = ".versions.json"

func (p *pruning) onlyRecord(dir string) bool {
	entries, _ := afero.ReadDir(p.in.Fs, path.Join(p.in.Dir, dir))
	return len(entries) == 1 && entries[0].Name() == recordName
}
