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

// A reach finds what a module in a folder of a package needs of it: the folder, what
// configuration in it leads to by relative paths, and what links lead to, from there on
// too. What is not there is not an error: clients say so when it matters.
type reach struct {
	ctx  context.Context
	root *os.Root

	paths map[string]bool // found so far; "." is the whole package
	read  int64           // bytes of configuration
	named int             // paths in it
}

// from finds what the module in a folder needs.
func (r *reach) from(folder string) error {
	for next := []string{folder}; len(next) > 0; {
		found := make(map[string]bool)
		for _, p := range next {
			r.paths[p] = true
		}
		for _, p := range next {
			if err := r.look(p, found); err != nil {
				return err
			}
		}
		next = nil
		for p := range found {
			if !r.covers(p) {
				next = append(next, p)
			}
		}
	}
	return nil
}

// covers reports whether a path, or a folder above it, has been found.
func (r *reach) covers(p string) bool {
	for ; ; p = path.Dir(p) {
		if r.paths[p] {
			return true
		}
		if p == "." {
			return false
		}
	}
}

// look adds what a path leads to.
func (r *reach) look(start string, found map[string]bool) error {
	// A call may go through a link, which is needed then.
	for above := path.Dir(start); above != "."; above = path.Dir(above) {
		if info, err := r.root.Lstat(above); err == nil && info.Mode().Type() == fs.ModeSymlink {
			found[above] = true
		}
	}
	switch info, err := r.root.Lstat(start); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() == fs.ModeSymlink: // which the walk would follow
		return r.follow(start, found)
	}
	return fs.WalkDir(r.root.FS(), start, func(name string, e fs.DirEntry, err error) error {
		if err == nil {
			err = r.ctx.Err()
		}
		switch {
		case err != nil:
			return err
		case e.IsDir():
			return r.lookInFolder(name, found)
		case e.Type() == fs.ModeSymlink:
			return r.follow(name, found)
		}
		return nil
	})
}

// follow adds where a link leads.
func (r *reach) follow(name string, found map[string]bool) error {
	target, err := r.root.Readlink(name)
	if err == nil {
		add(found, path.Dir(name), target)
	}
	return err
}

// add adds where a relative path leads, unless that is outside of the package.
func add(found map[string]bool, from, relative string) {
	if to := path.Join(from, relative); !path.IsAbs(relative) && filepath.IsLocal(to) {
		found[to] = true
	}
}

// lookInFolder adds what the configuration in a folder leads to.
func (r *reach) lookInFolder(name string, found map[string]bool) error {
	entries, err := fs.ReadDir(r.root.FS(), name)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || !moduledoc.IsConfiguration(e.Name()) {
			continue
		}
		f, err := r.root.Open(path.Join(name, e.Name()))
		if err != nil {
			return err
		}
		content, err := io.ReadAll(io.LimitReader(f, maxModuleCalls-r.read+1))
		f.Close()
		if err != nil {
			return err
		}
		if r.read += int64(len(content)); r.read > maxModuleCalls {
			return tooMuch("the module has more than %d bytes of configuration", maxModuleCalls)
		}
		paths, err := pathsFrom(e.Name(), content)
		if err != nil {
			return err
		}
		if r.named += len(paths); r.named > maxModulePaths {
			return tooMuch("the configuration of the module has more than %d relative paths", maxModulePaths)
		}
		for _, p := range paths {
			add(found, name, p)
		}
	}
	return nil
}

// keepReached removes from a package what the module in a folder of it does not need.
func keepReached(ctx context.Context, root *os.Root, folder string) error {
	for p := folder; p != "."; p = path.Dir(p) {
		if info, err := root.Lstat(p); errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
			return bad("the package has no folder %q, in which the origin says that the module is", folder)
		} else if err != nil {
			return err
		}
	}
	r := reach{ctx: ctx, root: root, paths: make(map[string]bool)}
	if err := r.from(folder); err != nil {
		return err
	}
	above := make(map[string]bool)
	for p := range r.paths {
		for p != "." {
			p = path.Dir(p)
			above[p] = true
		}
	}
	return r.prune(".", above)
}

// prune removes what is in a folder and is not needed.
func (r *reach) prune(name string, above map[string]bool) error {
	if r.paths[name] {
		return nil
	}
	entries, err := fs.ReadDir(r.root.FS(), name)
	if err != nil {
		return err
	}
	for _, e := range entries {
		p := path.Join(name, e.Name())
		switch {
		case r.paths[p]:
		case above[p] && e.IsDir():
			err = r.prune(p, above)
		default:
			err = r.root.RemoveAll(p)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkLinks refuses links that lead out of a package. One that leads to nothing stays:
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
		// Links can lead out together that do not alone, which the root finds out.
		_, err = root.Stat(name)
		if path.IsAbs(target) || !filepath.IsLocal(path.Join(path.Dir(name), target)) || err != nil && !errors.Is(err, fs.ErrNotExist) {
			return &badModule{ErrUnsafe, fmt.Sprintf("the module has a link %.200q that leads out of its package", name)}
		}
		return nil
	})
}
