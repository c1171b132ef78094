package index

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// A root with nothing in it that the registry knows is most often another folder
// than the one that was meant: the parent of the tree, or one of its folders.
// What lies in it tells which.

const (
	// nothingYet is the hint for a root in which nothing is found.
	nothingYet = "nothing is in the root yet: the first provider goes to " +
		"providers/NAMESPACE/TYPE/terraform-provider-TYPE_VERSION_OS_ARCH.zip, " +
		"the first module to modules/NAMESPACE/NAME/SYSTEM/VERSION.tar.gz"

	// maxHintDepth and maxHintEntries bound the search. The root may be any folder
	// of the machine.
	maxHintDepth   = 7
	maxHintEntries = 5000
)

// errFound ends the search, errEnough gives it up.
var (
	errFound  = errors.New("found")
	errEnough = errors.New("enough")
)

// A clue is a file, or the folder of a version, by whose path the tree can be
// found.
type clue struct {
	part    string   // providers or modules
	folders []string // from the root to it, without that of a version
	path    string
}

// hint says what to do about a root in which nothing is found; empty if it is
// not known where the root is.
func (t Tree) hint() string {
	if t.root.Fs == nil {
		return ""
	}
	var c clue
	entries := 0
	if err := t.root.findClue(&c, nil, &entries); !errors.Is(err, errFound) {
		return nothingYet
	}
	return c.hint(t.root)
}

// findClue looks for the first package of a provider or a module.
func (p Part) findClue(c *clue, folders []string, seen *int) error {
	entries, err := p.list(path.Join(append([]string{"."}, folders...)...))
	if err != nil {
		return nil // what cannot be read cannot be the tree
	}
	if *seen += len(entries); *seen > maxHintEntries {
		return errEnough
	}
	for _, e := range entries {
		if e.bad != nil || hiddenOrTemporary(e.name) || harmless(e.name, !e.info.IsDir()) {
			continue
		}
		stem, _, supported := cutArchive(e.name)
		typ, isRelease := address.ReleaseFileType(e.name)
		switch {
		case !e.info.IsDir() && isRelease && typ != "" && strings.HasSuffix(e.name, ".zip"):
			*c = clue{"providers", folders, e.path}
		case !e.info.IsDir() && supported && isVersion(stem):
			*c = clue{"modules", folders, e.path}
		case !e.info.IsDir() && isConfiguration(e.name) && len(folders) > 0 && isVersion(folders[len(folders)-1]):
			*c = clue{"modules", folders, path.Dir(e.path)}
		case !e.info.IsDir() && providerProgram.MatchString(e.name) && inUnpackedPackage(folders):
			*c = clue{"providers", folders[:len(folders)-1], path.Dir(e.path)}
		case e.info.IsDir() && len(folders) < maxHintDepth:
			if err := p.findClue(c, append(folders[:len(folders):len(folders)], e.name), seen); err != nil {
				return err
			}
			continue
		default:
			continue
		}
		if n := len(c.folders); n > 0 && isVersion(c.folders[n-1]) {
			c.folders = c.folders[:n-1]
		}
		return errFound
	}
	return nil
}

// inUnpackedPackage reports whether folders end in those of an unpacked package,
// NAMESPACE/TYPE/VERSION/OS_ARCH.
func inUnpackedPackage(folders []string) bool {
	n := len(folders)
	if n < 4 || !isVersion(folders[n-2]) {
		return false
	}
	goos, arch, _ := strings.Cut(folders[n-1], "_")
	_, err := address.ParsePlatform(goos, arch)
	return err == nil
}

func (c clue) hint(root Part) string {
	depth := map[string]int{"providers": 2, "modules": 3}[c.part]
	above := root.folderNames()
	// Names that are nearly right: another case, or without the s.
	is := func(name string) bool {
		return strings.EqualFold(name, c.part) || strings.EqualFold(name+"s", c.part)
	}
	switch at := slices.IndexFunc(c.folders, is); {
	case at > 0:
		return fmt.Sprintf("the tree is not the root but in it: make its folder %s the root", plain(path.Join(c.folders[:at]...)))
	case at == 0 && c.folders[0] != c.part:
		return fmt.Sprintf("the folder %s in the root must be named %s: rename it", plain(c.folders[0]), c.part)
	case at == 0:
		return fmt.Sprintf("the root has the folder %s, but another one is configured: take out the option %[1]s, or point it there", c.part)
	case is(above[len(above)-1]):
		return fmt.Sprintf("the root is the folder %s of a tree (it has %s): make the folder above it the root", c.part, plain(c.path))
	case slices.ContainsFunc(above, is):
		return fmt.Sprintf("the root is inside the folder %s of a tree (it has %s): make the folder that has %[1]s in it the root", c.part, plain(c.path))
	case len(c.folders) >= depth:
		return fmt.Sprintf("%s are right in the root (%s): move them to the folder %[1]s in the root, or have the option %[1]s name the folder that they are in", c.part, plain(c.path))
	}
	target := "modules/NAMESPACE/NAME/SYSTEM"
	if typ, ok := address.ReleaseFileType(path.Base(c.path)); ok {
		target = "providers/NAMESPACE/" + typ
	}
	return fmt.Sprintf("the root is a folder inside a tree: seen from the root, the path of %s should be %s", plain(c.path), plain(path.Join(target, path.Base(c.path))))
}

// folderNames are the names of the root and of the folders above it.
func (p Part) folderNames() []string {
	return strings.Split(filepath.ToSlash(path.Join(p.disk, p.Dir)), "/")
}
