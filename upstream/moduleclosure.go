package upstream

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/caddy-terraform/caddy-terraform-registry/index/moduledoc"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// A moduleClosure is the part of a package that a module in a folder needs: the folder,
// the files that its configuration leads to by relative paths, the targets of links,
// and everything that these lead to. A missing file is not an error: clients report it
// when it matters.
type moduleClosure struct {
	ctx  context.Context
	root *os.Root       // has the files of the package
	lazy partialPackage // nil: all of them

	paths map[string]bool // found so far; "." is the whole package
	read  int64           // bytes of configuration
	named int             // paths in the configuration
}

// A partialPackage is a package whose files are written to the disk when a closure
// needs them.
type partialPackage interface {
	// bring writes the files at some paths of the package, and below them. It returns
	// the paths at which the closure has to look then.
	bring(ctx context.Context, paths []string) ([]string, error)

	// lacks reports whether the file at a path is not written together with the folders
	// above it.
	lacks(path string) bool
}

// collect finds everything that the module in a folder needs.
func (c *moduleClosure) collect(folder string) (err error) {
	for next := []string{folder}; len(next) > 0; {
		if c.lazy != nil {
			if next, err = c.lazy.bring(c.ctx, next); err != nil {
				return err
			}
		}
		for _, p := range next {
			c.paths[p] = true
		}
		found := make(map[string]bool)
		for _, p := range next {
			if err := c.look(p, found); err != nil {
				return err
			}
		}
		next = nil
		for _, p := range slices.Sorted(maps.Keys(found)) { // a folder comes before what is in it
			if !c.covers(p) {
				c.paths[p] = true
				next = append(next, p)
			}
		}
	}
	return nil
}

// covers reports whether a path is found, since it or a folder above it was.
func (c *moduleClosure) covers(p string) bool {
	for above := p; !c.paths[above]; above = path.Dir(above) {
		if above == "." {
			return false
		}
	}
	return c.lazy == nil || !c.lazy.lacks(p)
}

// look adds the paths that a path leads to.
func (c *moduleClosure) look(start string, found map[string]bool) error {
	if there, err := c.lookAbove(start, found); !there {
		return err
	}
	switch info, err := c.root.Lstat(start); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() == fs.ModeSymlink: // the walk would follow it
		return c.follow(start, found)
	}
	return fs.WalkDir(c.root.FS(), start, func(name string, e fs.DirEntry, err error) error {
		if err == nil {
			err = c.ctx.Err()
		}
		switch {
		case err != nil:
			return err
		case e.Type() == fs.ModeSymlink:
			return c.follow(name, found)
		case !e.Type().IsRegular() || !moduledoc.IsConfiguration(e.Name()):
			return nil
		case c.paths["."]: // all that it could lead to is found
			return nil
		case name == start && c.lazy == nil: // in archives, only the configuration in folders counts
			return nil
		}
		return c.readConfiguration(name, found)
	})
}

// lookAbove adds the links that a path goes through, which are then needed. It returns
// whether there is a folder above the path.
func (c *moduleClosure) lookAbove(p string, found map[string]bool) (there bool, err error) {
	for i := range len(p) {
		if p[i] != '/' {
			continue
		}
		above := p[:i]
		info, err := c.root.Lstat(above)
		if err == nil && info.Mode().Type() == fs.ModeSymlink {
			found[above] = true
			if info, err = c.root.Stat(above); leadsNowhere(err) {
				return false, nil // its target is missing, or checkLinks refuses it
			}
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return false, nil
		case err != nil:
			return false, err
		case !info.IsDir():
			return false, nil
		}
	}
	return true, nil
}

// follow adds the target of a link.
func (c *moduleClosure) follow(name string, found map[string]bool) error {
	target, err := c.root.Readlink(name)
	if err == nil {
		add(found, path.Dir(name), target)
	}
	return err
}

// add adds the target of a relative path, unless it is outside of the package, or no
// file can have that name.
func add(found map[string]bool, from, relative string) {
	to := path.Join(from, relative)
	isNoName := func(segment string) bool { return len(segment) > maxSegment || strings.ContainsRune(segment, 0) }
	if !path.IsAbs(relative) && filepath.IsLocal(to) && !slices.ContainsFunc(strings.Split(to, "/"), isNoName) {
		found[to] = true
	}
}

// readConfiguration adds the paths that a file of configuration leads to.
func (c *moduleClosure) readConfiguration(name string, found map[string]bool) error {
	f, err := c.root.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxModuleCalls-c.read+1))
	if err != nil {
		return err
	}
	if c.read += int64(len(content)); c.read > maxModuleCalls {
		return refuse(ErrTooLarge, "the module has more than %d bytes of configuration", maxModuleCalls)
	}
	paths, err := pathsFrom(path.Base(name), content)
	if err != nil {
		return err
	}
	if c.named += len(paths); c.named > maxModulePaths {
		return refuse(ErrTooLarge, "the configuration of the module has more than %d relative paths", maxModulePaths)
	}
	for _, p := range paths {
		add(found, path.Dir(name), p)
	}
	return nil
}

// hasFolder reports whether a folder is on the disk, without links on the way.
func (c *moduleClosure) hasFolder(name string) (bool, error) {
	links := make(map[string]bool)
	there, err := c.lookAbove(name+"/", links)
	return there && len(links) == 0, err
}

// keepNeeded removes the files of a package that the module in a folder does not need.
func keepNeeded(ctx context.Context, root *os.Root, folder string) error {
	c := moduleClosure{ctx: ctx, root: root, paths: make(map[string]bool)}
	switch there, err := c.hasFolder(folder); {
	case err != nil:
		return err
	case !there:
		return refuse(ErrMalformed, "the package has no folder %q, in which the origin says that the module is", folder)
	}
	if err := c.collect(folder); err != nil {
		return err
	}
	above := make(map[string]bool)
	for p := range c.paths {
		for p != "." {
			p = path.Dir(p)
			above[p] = true
		}
	}
	return c.prune(".", above)
}

// prune removes the files in a folder that are not needed.
func (c *moduleClosure) prune(name string, above map[string]bool) error {
	if c.paths[name] {
		return nil
	}
	entries, err := fs.ReadDir(c.root.FS(), name)
	if err != nil {
		return err
	}
	for _, e := range entries {
		p := path.Join(name, e.Name())
		switch {
		case c.paths[p]:
		case above[p] && e.IsDir():
			err = c.prune(p, above)
		default:
			err = c.root.RemoveAll(p)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkLinks refuses links that lead out of a package. A link to a missing file stays:
// clients unpack it as it is.
func checkLinks(ctx context.Context, root *os.Root) error {
	return fs.WalkDir(root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil || e.Type() != fs.ModeSymlink {
			return err
		}
		target, err := root.Readlink(name)
		if err != nil {
			return err
		}
		// Several links can lead out together even if none does alone. The root finds
		// this out.
		switch _, err = root.Stat(name); {
		case err != nil && !leadsNowhere(err):
			return err
		case path.IsAbs(target), !filepath.IsLocal(path.Join(path.Dir(name), target)), err != nil && !errors.Is(err, fs.ErrNotExist):
			return refuse(ErrUnsafe, "the module has a link %.200q that leads out of its package", name)
		}
		return nil
	})
}

// leadsNowhere reports whether a link cannot be followed because of the files of the module. Any
// other error is one of the disk, or of a server with too few open files.
func leadsNowhere(err error) bool {
	return err != nil && (tree.HasNoFile(err) || errors.Is(err, syscall.ENAMETOOLONG))
}
