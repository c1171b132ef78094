package publish

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/git"
)

// Limits of what a repository may have.
const (
	maxGitFiles = 20_000  // of a module
	maxGitBytes = 8 << 30 // of all modules, which are on the disk at the same time
)

// A gitTree is the folder of a module at one or more tags.
type gitTree struct {
	*git.Tree
	dir     string   // to which it has been written
	refused []string // why it cannot be published, in sentences
}

func listGitTree(ctx context.Context, r *git.Repository, object string) (*gitTree, error) {
	listed, err := r.Tree(ctx, object, maxGitFiles)
	if err != nil {
		return nil, err
	}
	t := &gitTree{Tree: listed}
	t.refuse(listed.Refused)
	for _, f := range listed.Files {
		if f.Mode == git.Submodule {
			t.refused = append(t.refused, fmt.Sprintf("%s in it is a submodule, whose files are in another repository: add the files themselves, or call that module by its address in the registry", cli.Printable(f.Name)))
		}
	}
	return t, nil
}

// refuse adds why files cannot be published, and what their authors can do.
func (t *gitTree) refuse(refused git.Refusals) {
	for _, r := range refused {
		var why string
		switch name := cli.Printable(r.Name); r.Reason {
		case git.TooManyFiles:
			why = fmt.Sprintf("it has more than %d files: give the folder of the module with --path", maxGitFiles)
		case git.LongSymlink:
			why = fmt.Sprintf("%s in it is a symlink to a name of more than %d bytes: remove it", name, git.MaxSymlink)
		case git.SymlinkOut:
			why = fmt.Sprintf("%s in it is a symlink to %s, which is not in the folder of the module: add the file itself", name, cli.Printable(r.Target))
		default:
			why = name + " in it is not a name for a file: rename it"
		}
		t.refused = append(t.refused, why)
	}
}

// extract writes the trees of the modules, each tree once.
func (m *gitModules) extract(ctx context.Context, r *git.Repository) error {
	byObject := make(map[string]*gitTree)
	var fit []*gitTree
	for _, module := range m.modules {
		if byObject[module.tree] != nil {
			continue
		}
		t, err := listGitTree(ctx, r, module.tree)
		if err != nil {
			return err
		}
		if byObject[module.tree] = t; len(t.refused) == 0 {
			fit = append(fit, t)
		}
	}
	if err := fetchContents(ctx, r, fit); err != nil {
		return err
	}
	w := git.Writer{Left: maxGitBytes}
	for i := range m.modules {
		module := &m.modules[i]
		t := byObject[module.tree]
		if t.dir == "" && len(t.refused) == 0 {
			t.dir = filepath.Join(m.scratch, strconv.Itoa(i)) // versions may differ in their case only
			if err := os.Mkdir(t.dir, 0o700); err != nil {
				return err
			}
			refused, err := w.Write(ctx, r, t.Files, t.dir)
			if errors.Is(err, git.ErrTooLarge) {
				return fmt.Errorf("%s: the modules have more than %d GiB: publish some tags with --tag", r.Name(), maxGitBytes>>30)
			}
			if err != nil {
				return err
			}
			t.refuse(refused)
		}
		if module.refused = t.refused; len(t.refused) == 0 {
			module.dir = t.dir
		}
	}
	return nil
}

// fetchContents fetches the contents of all trees at once.
func fetchContents(ctx context.Context, r *git.Repository, trees []*gitTree) error {
	names := make(map[string]string) // of a file with a content, by its object
	var objects []string
	for _, t := range trees {
		objects = append(objects, t.Object)
		for _, f := range t.Files {
			names[f.Object] = f.Name
		}
	}
	err := r.FetchContents(ctx, objects)
	if missing, is := errors.AsType[*git.MissingError](err); is {
		return fmt.Errorf("%s: the content of %s is not in it: let git fetch it, or give the repository's URL", r.Name(), cli.Printable(names[missing.Object]))
	}
	return err
}
