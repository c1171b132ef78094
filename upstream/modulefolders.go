package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/caddy-terraform/caddy-terraform-registry/index/moduledoc"
)

// A moduleClosure is the part of a package that a module in a folder needs: the folder,
// the files that its configuration leads to by relative paths, the targets of links,
// and everything that these lead to. A missing file is not an error: clients report it
// when it matters.
type moduleClosure struct {
	ctx  context.Context
	root *os.Root

	paths map[string]bool // found so far; "." is the whole package
	read  int64           // bytes of configuration
	named int             // paths in the configuration
}

// collect finds everything that the module in a folder needs.
func (c *moduleClosure) collect(folder string) error {
	for next := []string{folder}; len(next) > 0; {
		found := make(map[string]bool)
		for _, p := range next {
			c.paths[p] = true
		}
		for _, p := range next {
			if err := c.look(p, found); err != nil {
				return err
			}
		}
		next = nil
		for p := range found {
			if !c.covers(p) {
				next = append(next, p)
			}
		}
	}
	return nil
}

// covers reports whether a path or a folder above it has been found.
func (c *moduleClosure) covers(p string) bool {
	for ; ; p = path.Dir(p) {
		if c.paths[p] {
			return true
		}
		if p == "." {
			return false
		}
	}
}

// look adds the paths that a path leads to.
func (c *moduleClosure) look(start string, found map[string]bool) error {
	// A call may go through a link, which is then needed.
	for above := path.Dir(start); above != "."; above = path.Dir(above) {
		if info, err := c.root.Lstat(above); err == nil && info.Mode().Type() == fs.ModeSymlink {
			found[above] = true
		}
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
		case e.IsDir():
			return c.lookInFolder(name, found)
		case e.Type() == fs.ModeSymlink:
			return c.follow(name, found)
		}
		return nil
	})
}

// follow adds the target of a link.
func (c *moduleClosure) follow(name string, found map[string]bool) error {
	target, err := c.root.Readlink(name)
	if err == nil {
		add(found, path.Dir(name), target)
	}
	return err
}

// add adds the target of a relative path, unless it is outside of the package.
func add(found map[string]bool, from, relative string) {
	if to := path.Join(from, relative); !path.IsAbs(relative) && filepath.IsLocal(to) {
		found[to] = true
	}
}

// lookInFolder adds the paths that the configuration in a folder leads to.
func (c *moduleClosure) lookInFolder(name string, found map[string]bool) error {
	entries, err := fs.ReadDir(c.root.FS(), name)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || !moduledoc.IsConfiguration(e.Name()) {
			continue
		}
		f, err := c.root.Open(path.Join(name, e.Name()))
		if err != nil {
			return err
		}
		content, err := io.ReadAll(io.LimitReader(f, maxModuleCalls-c.read+1))
		f.Close()
		if err != nil {
			return err
		}
		if c.read += int64(len(content)); c.read > maxModuleCalls {
			return tooMuch("the module has more than %d bytes of configuration", maxModuleCalls)
		}
		paths, err := pathsFrom(e.Name(), content)
		if err != nil {
			return err
		}
		if c.named += len(paths); c.named > maxModulePaths {
			return tooMuch("the configuration of the module has more than %d relative paths", maxModulePaths)
		}
		for _, p := range paths {
			add(found, name, p)
		}
	}
	return nil
}

// keepNeeded removes the files of a package that the module in a folder does not need.
func keepNeeded(ctx context.Context, root *os.Root, folder string) error {
	for p := folder; p != "."; p = path.Dir(p) {
		if info, err := root.Lstat(p); errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
			return bad("the package has no folder %q, in which the origin says that the module is", folder)
		} else if err != nil {
			return err
		}
	}
	c := moduleClosure{ctx: ctx, root: root, paths: make(map[string]bool)}
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
		_, err = root.Stat(name)
		if path.IsAbs(target) || !filepath.IsLocal(path.Join(path.Dir(name), target)) || err != nil && !errors.Is(err, fs.ErrNotExist) {
			return &badModule{ErrUnsafe, fmt.Sprintf("the module has a link %.200q that leads out of its package", name)}
		}
		return nil
	})
}
