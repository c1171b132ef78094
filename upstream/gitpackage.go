package upstream

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/index/moduledoc"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/git"
)

// A gitPackage collects the files of a commit that a module needs: the files of its
// folder, and the files that these lead to by relative paths in configuration, as
// targets of symlinks, and as submodules. Only their contents are fetched.
type gitPackage struct {
	fetch  *gitFetch
	module string // its folder; empty for the root

	commits []*gitCommit // of the package, and then of submodules
	folders map[string]bool
	files   map[string]packageFile // by path in the package

	configuration int64 // bytes that were read
	named         int   // paths in the configuration
}

// A gitCommit is a commit of a repository, at a path of the package.
type gitCommit struct {
	repository *git.Repository
	id         string
	folder     string // empty: the root
	url        *url.URL
	number     int // of the repository in the relay
	depth      int
	submodules map[string]string // URLs in their original form, by path in the commit
}

// A packageFile is a file of a commit, with its name in the package.
type packageFile struct {
	git.File
	commit *gitCommit
	target string // of a symlink, in the package
}

// entry returns the file or folder of the commit at a path of the package.
func (c *gitCommit) entry(ctx context.Context, name string) (f git.File, ok bool, err error) {
	return c.repository.Entry(ctx, c.id, strings.TrimPrefix(strings.TrimPrefix(name, c.folder), "/"))
}

// within reports whether a path is a folder or below it.
func within(name, folder string) bool {
	return folder == "" || name == folder || strings.HasPrefix(name, folder+"/")
}

// collect finds the files.
func (p *gitPackage) collect(ctx context.Context) error {
	there, err := p.add(ctx, p.module)
	if err == nil && (!there || !p.folders[p.module]) {
		err = fail(p.commits[0].url, ErrMalformed, "the origin links to the folder %q of a repository, which is not there", p.module)
	}
	return err
}

// maxSymlinks is the number of symlinks that a path may go through. Systems have the
// same limit.
const maxSymlinks = 40

// followed replaces symlinks in a path by their targets.
func (p *gitPackage) followed(name string) string {
	for range maxSymlinks {
		next, ok := p.follow(name)
		if !ok {
			break
		}
		name = next
	}
	return name
}

// follow replaces the first symlink in a path.
func (p *gitPackage) follow(name string) (next string, ok bool) {
	for i := range len(name) + 1 {
		if i < len(name) && name[i] != '/' {
			continue
		}
		if f, ok := p.files[name[:i]]; ok && f.Mode == git.Symlink {
			return path.Join(f.target, name[i:]), true
		}
	}
	return "", false
}

// addNamed adds the files that the configuration in files leads to by relative paths. A
// missing file is not an error: clients report it when it matters.
func (p *gitPackage) addNamed(ctx context.Context, c *gitCommit, files []git.File) error {
	if p.folders[""] {
		return nil // everything is added already
	}
	files = slices.DeleteFunc(slices.Clone(files), func(f git.File) bool {
		return f.Mode == git.Symlink || f.Mode == git.Submodule || !moduledoc.IsConfiguration(path.Base(f.Name))
	})
	found := make(map[string]bool) // by path in the package
	err := c.repository.Contents(ctx, files, func(f git.File, size int64, r io.Reader) error {
		if p.configuration += size; p.configuration > maxModuleCalls {
			return fail(c.url, ErrTooLarge, "the limit for the configuration of a module is %d bytes", maxModuleCalls)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		paths, err := pathsFrom(f.Name, content)
		if p.named += len(paths); p.named > maxModulePaths {
			return fail(c.url, ErrTooLarge, "the limit for the relative paths in the configuration of a module is %d", maxModulePaths)
		}
		for _, name := range paths {
			found[path.Join(path.Dir(f.Name), name)] = true
		}
		return err
	})
	if err != nil {
		return p.fetch.failure(ctx, c.url, err)
	}
	names := slices.Sorted(maps.Keys(found))
	if err := p.fetchNamed(ctx, names); err != nil {
		return err
	}
	for _, name := range names {
		if err := p.addPath(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// fetchNamed fetches the files at all paths at once, since each of them alone would
// need a request.
func (p *gitPackage) fetchNamed(ctx context.Context, names []string) error {
	objects := make(map[*gitCommit][]string)
	for _, name := range names {
		if name = p.followed(name); name == "." {
			name = ""
		} else if !fs.ValidPath(name) || p.submoduleOf(name) != "" {
			continue
		}
		c := p.commitOf(name)
		entry, ok, err := c.entry(ctx, name)
		switch {
		case err != nil:
			return p.fetch.failure(ctx, c.url, err)
		case ok && entry.Mode != git.Submodule:
			objects[c] = append(objects[c], entry.Object)
		}
	}
	for _, c := range p.commits {
		if err := c.repository.FetchContents(ctx, objects[c]); err != nil {
			return p.fetch.failure(ctx, c.url, err)
		}
	}
	return nil
}

// addPath adds the file or folder at a path that a file leads to, unless the path is
// outside of the package.
func (p *gitPackage) addPath(ctx context.Context, name string) error {
	for range maxSymlinks {
		if name = p.followed(name); name == "." {
			name = ""
		} else if !fs.ValidPath(name) {
			return nil
		}
		there, err := p.add(ctx, name)
		if there || err != nil {
			return err
		}
		link, err := p.addSymlinkTo(ctx, name)
		if !link || err != nil {
			return err
		}
	}
	return nil
}

// addSymlinkTo adds the symlink that a path goes through, if a symlink above it is not
// known yet. The path may then exist.
func (p *gitPackage) addSymlinkTo(ctx context.Context, name string) (added bool, err error) {
	for i := range len(name) {
		if name[i] != '/' {
			continue
		}
		above := name[:i]
		c := p.commitOf(above)
		f, ok, err := c.entry(ctx, above)
		switch {
		case err != nil:
			return false, p.fetch.failure(ctx, c.url, err)
		case !ok || f.Mode != git.Symlink && f.Mode != git.Folder:
			return false, nil
		case f.Mode == git.Symlink:
			_, err := p.add(ctx, above)
			return err == nil, err
		}
	}
	return false, nil
}

// add adds a folder or a file with everything that it leads to. It returns whether the
// file exists.
func (p *gitPackage) add(ctx context.Context, name string) (there bool, err error) {
	if folder := p.submoduleOf(name); folder != "" {
		added, err := p.addSubmodule(ctx, folder)
		if err != nil || !added {
			return false, err
		}
		return p.add(ctx, name)
	}
	c := p.commitOf(name)
	for folder := range p.folders {
		if within(name, folder) && p.commitOf(folder) == c {
			return true, nil
		}
	}
	if f, ok := p.files[name]; ok && f.Mode != git.Submodule {
		return true, nil
	}
	entry, ok, err := c.entry(ctx, name)
	switch {
	case err != nil:
		return false, p.fetch.failure(ctx, c.url, err)
	case !ok:
		return false, nil
	case entry.Mode != git.Folder:
		entry.Name = name
		return true, p.addFiles(ctx, c, entry.Object, []git.File{entry})
	}
	listed, err := c.repository.Tree(ctx, entry.Object, maxModuleFiles)
	if err != nil {
		return false, p.fetch.failure(ctx, c.url, err)
	}
	if len(listed.Refused) > 0 {
		return false, p.refusal(c.url, listed.Refused[0])
	}
	for i := range listed.Files {
		listed.Files[i].Name = path.Join(name, listed.Files[i].Name)
	}
	p.folders[name] = true
	return true, p.addFiles(ctx, c, entry.Object, listed.Files)
}

// addFiles adds files of a commit, with the contents of an object.
func (p *gitPackage) addFiles(ctx context.Context, c *gitCommit, object string, files []git.File) error {
	if err := c.repository.FetchContents(ctx, []string{object}); err != nil {
		return p.fetch.failure(ctx, c.url, err)
	}
	var symlinks, submodules []git.File
	for _, f := range files {
		if _, ok := p.files[f.Name]; ok {
			continue
		}
		p.files[f.Name] = packageFile{File: f, commit: c}
		switch f.Mode {
		case git.Symlink:
			symlinks = append(symlinks, f)
		case git.Submodule:
			submodules = append(submodules, f)
		}
	}
	if len(p.files) > maxModuleFiles {
		return p.refusal(c.url, git.Refusal{Reason: git.TooManyFiles})
	}
	var targets []string
	err := c.repository.Contents(ctx, symlinks, func(f git.File, size int64, content io.Reader) error {
		target, refused, err := git.ReadSymlink(f, content, size)
		if refused != nil {
			return p.refusal(c.url, *refused)
		}
		p.files[f.Name] = packageFile{File: f, commit: c, target: target}
		targets = append(targets, target)
		return err
	})
	if err != nil {
		return p.fetch.failure(ctx, c.url, err)
	}
	for _, target := range targets {
		if err := p.addPath(ctx, target); err != nil {
			return err
		}
	}
	for _, f := range submodules {
		if within(f.Name, p.module) {
			if _, err := p.addSubmodule(ctx, f.Name); err != nil {
				return err
			}
		}
	}
	return p.addNamed(ctx, c, files)
}

// commitOf returns the commit that contains a path of the package.
func (p *gitPackage) commitOf(name string) *gitCommit {
	var innermost *gitCommit
	for _, c := range p.commits {
		if within(name, c.folder) && (innermost == nil || len(c.folder) > len(innermost.folder)) {
			innermost = c
		}
	}
	return innermost
}

// submoduleOf returns the submodule that a path is in or at, if it is not fetched yet.
func (p *gitPackage) submoduleOf(name string) (folder string) {
	c := p.commitOf(name)
	for submodule := range c.submodules {
		if folder := path.Join(c.folder, submodule); folder != c.folder && within(name, folder) {
			return folder
		}
	}
	return ""
}

// addSubmodule fetches the commit of a submodule and adds its files. It returns false
// if the commit has no submodule there, as when .gitmodules still lists a removed
// submodule.
func (p *gitPackage) addSubmodule(ctx context.Context, folder string) (added bool, err error) {
	c := p.commitOf(folder)
	relative := strings.TrimPrefix(strings.TrimPrefix(folder, c.folder), "/")
	written, listed := c.submodules[relative]
	delete(c.submodules, relative)
	entry, ok, err := c.repository.Entry(ctx, c.id, relative)
	if err != nil {
		return false, p.fetch.failure(ctx, c.url, err)
	}
	if !ok || entry.Mode != git.Submodule || c.folder == folder {
		return false, nil
	}
	if !listed {
		return false, fail(c.url, ErrMalformed, "its submodule %q has no URL in .gitmodules", relative)
	}
	if c.depth == maxSubmoduleDepth {
		return false, fail(c.url, ErrMalformed, "submodules are nested more than %d deep", maxSubmoduleDepth)
	}
	if len(p.commits) > maxSubmodules {
		return false, fail(c.url, ErrTooLarge, "it has more than %d submodules", maxSubmodules)
	}
	s, err := p.fetch.submoduleSource(c, relative, written)
	if err != nil {
		return false, err
	}
	s.Ref = entry.Object
	submodule, err := p.fetch.commit(ctx, s)
	if err != nil {
		return false, err
	}
	submodule.folder, submodule.depth = folder, c.depth+1
	p.commits = append(p.commits, submodule)
	return p.add(ctx, folder)
}

// submoduleSource returns the source of a submodule of a repository, given its URL in
// .gitmodules.
func (f *gitFetch) submoduleSource(of *gitCommit, name, written string) (s ModuleSource, err error) {
	parent, text := of.url, written
	if strings.HasPrefix(written, "./") || strings.HasPrefix(written, "../") {
		u := *parent
		u.Path, u.RawPath = path.Join(u.Path, written), "" // the repository counts as a folder
		text = u.String()
	}
	if s, err = ParseModuleSource("git::"+text, parent); err == nil {
		if s.Folder != "" || s.Ref != "" || !s.Git {
			err = errors.New("its URL is not that of a repository")
		} else {
			s.trust = f.client.submodule(f.relay.repository(of.number), s.URL)
		}
	}
	if err != nil {
		kind := ErrMalformed
		if errors.Is(err, ErrUnsafe) {
			kind = ErrUnsafe
		}
		return s, fail(parent, kind, "its submodule %q: %v", name, err)
	}
	return s, nil
}

// write writes the files to a folder.
func (p *gitPackage) write(ctx context.Context, into string) error {
	byCommit := make(map[*gitCommit][]git.File)
	for _, name := range slices.Sorted(maps.Keys(p.files)) {
		f := p.files[name]
		byCommit[f.commit] = append(byCommit[f.commit], f.File)
	}
	limit := min(p.fetch.client.maxUnpacked, max(freeUnpacked, maxModuleRatio*p.fetch.relay.received()))
	w := git.Writer{Left: limit}
	for _, c := range p.commits {
		refused, err := w.Write(ctx, c.repository, byCommit[c], into)
		switch {
		case errors.Is(err, git.ErrTooLarge):
			return fail(c.url, ErrTooLarge, "the limit for the files of a module is %d bytes", limit)
		case err != nil:
			return p.fetch.failure(ctx, c.url, err)
		case len(refused) > 0:
			return p.refusal(c.url, refused[0])
		}
	}
	return nil
}

// refusal returns the failure of a repository that has a refused file.
func (p *gitPackage) refusal(from *url.URL, r git.Refusal) error {
	switch r.Reason {
	case git.TooManyFiles:
		return fail(from, ErrTooLarge, "the limit for a module is %d files", maxModuleFiles)
	case git.SymlinkOut:
		return fail(from, ErrMalformed, "%.200q in the module is a symlink that leads out of the repository", r.Name)
	case git.LongSymlink:
		return fail(from, ErrMalformed, "%.200q in the module is a symlink to a name of more than %d bytes", r.Name, git.MaxSymlink)
	}
	return fail(from, ErrMalformed, "%.200q in the module is not a name for a file", r.Name)
}

// newGitPackage returns the package of a commit. Nothing is collected yet.
func newGitPackage(f *gitFetch, c *gitCommit, module string) *gitPackage {
	return &gitPackage{
		fetch: f, module: module, commits: []*gitCommit{c},
		folders: make(map[string]bool), files: make(map[string]packageFile),
	}
}
