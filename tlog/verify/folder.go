package verify

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/archive"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A content is the files of a package with their digests, and its links with their targets.
// Names have slashes.
type content struct {
	Files map[string]wire.SHA256 `json:"files"`
	Links map[string]string      `json:"links"`
}

// h1 returns the hash of the files, without the links. It is the hash of a text that has a line
// for each file. A name with a line feed could stand for other files: there is no hash then.
func (c content) h1() string {
	for name := range c.Files {
		if hasLineFeed(name) {
			return ""
		}
	}
	return archive.H1(c.Files)
}

func hasLineFeed(name string) bool { return strings.Contains(name, "\n") }

// readContent reads a folder, which may be a link itself. With follow, links in it count as
// the files to which they lead, as they do for the hashes of providers.
func readContent(ctx context.Context, cache *Cache, dir string, follow bool) (c content, err error) {
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return c, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return c, err
	}
	c.Files, c.Links = make(map[string]wire.SHA256), make(map[string]string)
	err = filepath.WalkDir(dir, func(file string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case file == dir && !e.IsDir():
			return fmt.Errorf("%s is not a folder", dir)
		case e.IsDir():
			return nil
		}
		name := filepath.ToSlash(file[len(dir)+1:])
		info, err := e.Info()
		if err != nil {
			return err
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			target, err := os.Readlink(file)
			if err != nil {
				return err
			}
			c.Links[name] = filepath.ToSlash(target)
			if followed, err := os.Stat(file); follow && err == nil && followed.Mode().IsRegular() {
				delete(c.Links, name)
				info = followed
			} else {
				return nil
			}
		}
		if !info.Mode().IsRegular() {
			c.Links[name] = "" // a pipe or a device: no package has one
			return nil
		}
		c.Files[name], err = digestOf(ctx, cache, file, info)
		return err
	})
	return c, err
}

func digestOf(ctx context.Context, cache *Cache, file string, info fs.FileInfo) (sum wire.SHA256, err error) {
	stamp := tree.StampOf(info)
	if sum, ok := cache.digest(file, stamp); ok {
		return sum, nil
	}
	f, err := os.Open(file)
	if err != nil {
		return sum, err
	}
	defer f.Close()
	if sum, err = tree.DigestFile(ctx, f); err != nil {
		return sum, err
	}
	if after, err := f.Stat(); err == nil && tree.StampOf(after) == stamp {
		cache.keepDigest(file, stamp, sum)
	}
	return sum, nil
}

// A Difference is a file of an installed package that is not as in the package.
type Difference struct {
	File   string `json:"file"`
	Change string `json:"change"` // changed, added or missing
}

// differences compares a folder with its package.
//
// Files whose names begin with a dot may be missing, and all in folders with such names: a
// client copies the package for a second call without them. Links may be as in the package. Some
// clients write a file instead: the target itself, its name as text, or an empty file.
func (c content) differences(pack content) (list []Difference) {
	for name, sum := range pack.Files {
		found, ok := c.Files[name]
		_, isLink := c.Links[name]
		switch {
		case isLink || ok && (found != sum || hasLineFeed(name)):
			list = append(list, Difference{name, "changed"})
		case !ok && !isHidden(name):
			list = append(list, Difference{name, "missing"})
		}
	}
	for name, sum := range c.Files {
		if _, ok := pack.Files[name]; !ok && (hasLineFeed(name) || !pack.makes(name, sum)) {
			list = append(list, Difference{name, "added"})
		}
	}
	for name, target := range c.Links {
		_, isFile := pack.Files[name]
		if was, ok := pack.Links[name]; !isFile && (!ok || was != target) {
			list = append(list, Difference{name, "added"})
		}
	}
	slices.SortFunc(list, func(a, b Difference) int { return strings.Compare(a.File, b.File) })
	return list
}

func isHidden(name string) bool {
	return strings.HasPrefix(name, ".") || strings.Contains(name, "/.")
}

// makes reports whether clients may make a file with that digest of a link in the package.
func (c content) makes(name string, sum wire.SHA256) bool {
	if target, ok := c.Links[name]; ok && (sum == wire.SHA256Of(nil) || sum == wire.SHA256Of([]byte(target))) {
		return true
	}
	const maxLinks = 10
	for range maxLinks {
		at, target := "", ""
		for link, to := range c.Links {
			if name == link || strings.HasPrefix(name, link+"/") {
				at, target = link, to
			}
		}
		if at == "" {
			break
		}
		rest := strings.TrimPrefix(name, at)
		if c.Files[path.Clean(target+rest)] == sum { // a hard link names its file from the root on
			return true
		}
		name = path.Join(path.Dir(at), target) + rest
	}
	return c.Files[name] == sum
}
