package layout

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index/moduledoc"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

const (
	// NothingYet is the hint for an empty root.
	NothingYet = "nothing is in the root yet: the first provider goes to " +
		"providers/NAMESPACE/TYPE/terraform-provider-TYPE_VERSION_OS_ARCH.zip, " +
		"the first module to modules/NAMESPACE/NAME/SYSTEM/VERSION.tar.gz"

	// maxHintDepth and maxHintEntries bound the search. The root may be any folder
	// of the machine.
	maxHintDepth   = 7
	maxHintEntries = 5000
)

// Hint says what to do about a root without files of a tree: most often it is the wrong
// folder, such as the parent of the tree or a folder in it. The hint is empty if the path of
// the root is unknown.
func Hint(t tree.Tree) string {
	if t.Root.Path() == "" {
		return ""
	}
	s := clueSearch{root: t.Root}
	s.search(nil)
	if s.clue == nil {
		return NothingYet
	}
	return s.clue.hint(t.Root)
}

// A clue is the first package of a provider or a module: its path shows where the tree is.
type clue struct {
	part    string   // providers or modules
	folders []string // from the root to the package, without the folder of a version
	path    string
}

// A clueSearch looks for a clue below a root.
type clueSearch struct {
	root    tree.Part
	entries int // seen so far
	clue    *clue
}

// search searches a folder and the folders below it. It reports whether the search is over:
// it has found a clue, or has seen enough entries.
func (s *clueSearch) search(folders []string) (over bool) {
	entries, err := s.root.List(path.Join(append([]string{"."}, folders...)...))
	if err != nil {
		return false // a folder that cannot be read cannot be the tree
	}
	if s.entries += len(entries); s.entries > maxHintEntries {
		return true
	}
	for _, e := range entries {
		switch {
		case e.Bad != nil || tree.IsHiddenOrTemporary(e.Name) || IsHarmless(e.Name, !e.Info.IsDir()):
		case !e.Info.IsDir():
			if s.clue = clueOf(folders, e); s.clue != nil {
				return true
			}
		case len(folders) < maxHintDepth:
			if s.search(append(folders[:len(folders):len(folders)], e.Name)) {
				return true
			}
		}
	}
	return false
}

// clueOf returns the clue that a file gives, or nil.
func clueOf(folders []string, e tree.Entry) *clue {
	stem, _, supported := cutArchive(e.Name)
	_, isRelease := address.ReleaseFileType(e.Name)
	n := len(folders)
	inVersion := n > 0 && isVersion(folders[n-1])
	var c *clue
	switch {
	case isRelease && strings.HasSuffix(e.Name, ".zip"):
		c = &clue{"providers", folders, e.Path()}
	case supported && isVersion(stem):
		c = &clue{"modules", folders, e.Path()}
	case moduledoc.IsConfiguration(e.Name) && inVersion:
		c = &clue{"modules", folders, path.Dir(e.Path())}
	case providerProgram.MatchString(e.Name) && inUnpackedPackage(folders):
		c = &clue{"providers", folders[:n-1], path.Dir(e.Path())}
	default:
		return nil
	}
	if n := len(c.folders); n > 0 && isVersion(c.folders[n-1]) {
		c.folders = c.folders[:n-1]
	}
	return c
}

// inUnpackedPackage reports whether folders end in the path of an unpacked package,
// NAMESPACE/TYPE/VERSION/OS_ARCH.
func inUnpackedPackage(folders []string) bool {
	n := len(folders)
	if n < 4 || !isVersion(folders[n-2]) {
		return false
	}
	_, err := address.ParsePlatformName(folders[n-1])
	return err == nil
}

func (c clue) hint(root tree.Part) string {
	depth := map[string]int{"providers": 2, "modules": 3}[c.part]
	above := strings.Split(filepath.ToSlash(root.Path()), "/") // the last name is the root's
	// The name may be nearly right: in another case, or without the s.
	isPart := func(name string) bool {
		return strings.EqualFold(name, c.part) || strings.EqualFold(name+"s", c.part)
	}
	switch at := slices.IndexFunc(c.folders, isPart); {
	case at > 0:
		return fmt.Sprintf("the tree is not the root but in it: make its folder %s the root", address.Plain(path.Join(c.folders[:at]...)))
	case at == 0 && c.folders[0] != c.part:
		return fmt.Sprintf("the folder %s in the root must be named %s: rename it", address.Plain(c.folders[0]), c.part)
	case at == 0:
		return fmt.Sprintf("the root has the folder %s, but another one is configured: remove the option %[1]s, or set it to that folder", c.part)
	case isPart(above[len(above)-1]):
		return fmt.Sprintf("the root is the folder %s of a tree (it has %s): make the folder above it the root", c.part, address.Plain(c.path))
	case slices.ContainsFunc(above, isPart):
		return fmt.Sprintf("the root is inside the folder %s of a tree (it has %s): make the folder that has %[1]s in it the root", c.part, address.Plain(c.path))
	case len(c.folders) >= depth:
		return fmt.Sprintf("%s are right in the root (%s): move them to the folder %[1]s in the root, or set the option %[1]s to the folder they are in", c.part, address.Plain(c.path))
	}
	target := "modules/NAMESPACE/NAME/SYSTEM"
	if typ, ok := address.ReleaseFileType(path.Base(c.path)); ok {
		target = "providers/NAMESPACE/" + typ
	}
	return fmt.Sprintf("the root is a folder inside a tree: seen from the root, the path of %s should be %s", address.Plain(c.path), address.Plain(path.Join(target, path.Base(c.path))))
}
