package upstream

import (
	"context"
	"errors"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/upstream/git"
)

// A gitPackage is the package of a commit, and of the commits of its submodules. The
// contents of files are fetched and written when a moduleClosure needs them.
type gitPackage struct {
	fetch  *gitFetch
	module string // its folder; empty for the root
	into   *os.Root

	commits []*gitCommit              // of the package, and then of submodules
	files   map[string]bool           // added so far, by path in the package
	added   map[*gitCommit][]git.File // to be written
	written int64                     // bytes
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

// relative returns the path in the commit for a path of the package.
func (c *gitCommit) relative(name string) string {
	if name == c.folder || name == "." {
		return ""
	}
	return strings.TrimPrefix(strings.TrimPrefix(name, c.folder), "/")
}

// within reports whether a path is a folder or below it.
func within(name, folder string) bool {
	return folder == "" || name == folder || strings.HasPrefix(name, folder+"/")
}

// maxSymlinks is the number of symlinks that a path may go through. Systems have the
// same limit.
const maxSymlinks = 40

// bring implements partialPackage. A path that goes through symlinks is followed.
func (p *gitPackage) bring(ctx context.Context, names []string) (look []string, err error) {
	look = slices.Clone(names)
	known := len(p.commits)
	for i := 0; i < maxSymlinks && len(names) > 0; i++ {
		var through []symlink // the names that go through one, and the rest of them
		for _, name := range names {
			link, err := p.add(ctx, name)
			if err != nil {
				return nil, err
			}
			if link != "" && link != name {
				through = append(through, symlink{link, strings.TrimPrefix(name, link)})
			}
		}
		if err := p.write(ctx); err != nil {
			return nil, err
		}
		names = nil
		for _, l := range through {
			target, err := p.into.Readlink(l.name)
			if err != nil {
				return nil, err
			}
			names = append(names, path.Join(path.Dir(l.name), target, l.target))
		}
	}
	for _, c := range p.commits[known:] {
		if !within(c.folder, p.module) { // the module's folder was looked at already, or is
			look = append(look, c.folder)
		}
	}
	return look, nil
}

// lacks implements partialPackage.
func (p *gitPackage) lacks(name string) bool { return p.submoduleOf(name) != "" }

// add adds the file or folder at a path, or the symlink that the path goes through. It
// returns the symlink.
func (p *gitPackage) add(ctx context.Context, name string) (link string, err error) {
	if folder := p.submoduleOf(name); folder != "" {
		if err := p.addSubmodule(ctx, folder); err != nil {
			return "", err
		}
		return p.add(ctx, name)
	}
	c := p.commitOf(name)
	p.fetch.asked = c.url
	f, ok, err := c.repository.Entry(ctx, c.id, c.relative(name))
	f.Name = path.Join(c.folder, f.Name)
	switch {
	case err != nil:
		return "", err
	case f.Mode == git.Symlink:
		return f.Name, p.addFiles(ctx, c, []git.File{f})
	case f.Mode == git.Submodule: // it would have been fetched if .gitmodules listed it
		return "", p.addSubmodule(ctx, f.Name)
	case !ok:
		return "", nil
	case f.Mode != git.Folder:
		return "", p.addFiles(ctx, c, []git.File{f})
	}
	listed, err := c.repository.Tree(ctx, f.Object, maxModuleFiles)
	if err != nil {
		return "", err
	}
	if len(listed.Refused) > 0 {
		return "", p.refusal(c.url, listed.Refused[0])
	}
	for i := range listed.Files {
		listed.Files[i].Name = path.Join(name, listed.Files[i].Name)
	}
	return "", p.addFiles(ctx, c, listed.Files)
}

// addFiles adds files of a commit, and the submodules among them that are in the
// module.
func (p *gitPackage) addFiles(ctx context.Context, c *gitCommit, files []git.File) error {
	for _, f := range files {
		if p.files[f.Name] {
			continue
		}
		p.files[f.Name] = true
		p.added[c] = append(p.added[c], f)
		if f.Mode == git.Submodule && within(f.Name, p.module) {
			if err := p.addSubmodule(ctx, f.Name); err != nil {
				return err
			}
		}
	}
	if len(p.files) > maxModuleFiles {
		return p.refusal(c.url, git.Refusal{Reason: git.TooManyFiles})
	}
	return nil
}

// write fetches the contents of the added files, all at once, and writes them.
func (p *gitPackage) write(ctx context.Context) error {
	for _, c := range p.commits {
		if len(p.added[c]) == 0 {
			continue
		}
		var objects []string
		for _, f := range p.added[c] {
			if f.Mode != git.Submodule {
				objects = append(objects, f.Object)
			}
		}
		p.fetch.asked = c.url
		if err := c.repository.FetchContents(ctx, objects); err != nil {
			return err
		}
		limit := min(p.fetch.client.maxUnpacked, max(freeUnpacked, maxModuleRatio*p.fetch.received()))
		w := git.Writer{Left: limit - p.written}
		refused, err := w.Write(ctx, c.repository, p.added[c], p.into.Name())
		switch {
		case errors.Is(err, git.ErrTooLarge):
			return fail(c.url, ErrTooLarge, "the limit for the files of a module is %d bytes", limit)
		case err != nil:
			return err
		case len(refused) > 0:
			return p.refusal(c.url, refused[0])
		}
		p.written = limit - w.Left
	}
	clear(p.added)
	return nil
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

// addSubmodule fetches the commit of a submodule and adds its files. It does nothing if
// the commit has no submodule there, as when .gitmodules still lists a removed
// submodule.
func (p *gitPackage) addSubmodule(ctx context.Context, folder string) error {
	c := p.commitOf(folder)
	relative := c.relative(folder)
	written, listed := c.submodules[relative]
	delete(c.submodules, relative)
	p.fetch.asked = c.url
	entry, ok, err := c.repository.Entry(ctx, c.id, relative)
	switch {
	case err != nil || !ok || entry.Mode != git.Submodule || c.folder == folder:
		return err
	case !listed:
		return fail(c.url, ErrMalformed, "its submodule %q has no URL in .gitmodules", relative)
	case c.depth == maxSubmoduleDepth:
		return fail(c.url, ErrMalformed, "submodules are nested more than %d deep", maxSubmoduleDepth)
	case len(p.commits) > maxSubmodules:
		return fail(c.url, ErrTooLarge, "it has more than %d submodules", maxSubmodules)
	}
	s, err := p.fetch.submoduleSource(c, relative, written)
	if err != nil {
		return err
	}
	s.Ref = entry.Object
	submodule, err := p.fetch.commit(ctx, s)
	if err != nil {
		return err
	}
	submodule.folder, submodule.depth = folder, c.depth+1
	p.commits = append(p.commits, submodule)
	_, err = p.add(ctx, folder)
	return err
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
	if s, err = ParseModuleSource("git::"+text, parent); err == nil && (s.Folder != "" || s.Ref != "") {
		err = refuse(ErrMalformed, "its URL is not the URL of a repository")
	}
	var refused *refusal
	switch {
	case errors.As(err, &refused):
		return s, fail(parent, refused.kind, "its submodule %q: %s", name, refused.text)
	case err != nil:
		return s, err
	}
	s.trust = f.client.submodule(f.relay.repository(of.number), s.URL)
	return s, nil
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
