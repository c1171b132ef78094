package mirror

import (
	"context"
	"fmt"

	version "github.com/hashicorp/go-version"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/registryhcl"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// treeFolders are the folders of providers and modules in a tree.
type treeFolders map[address.Address]treeFolder

type treeFolder struct {
	versions []*version.Version // that lie in it

	metadata registryhcl.File
	broken   error // something in registry.hcl cannot be read that may withdraw versions
}

// readTreeFolders reads the versions and the registry.hcl files of the providers in a tree.
// With modules, it reads the modules, too.
func readTreeFolders(ctx context.Context, open func() (tree.Tree, error), modules bool) (treeFolders, error) {
	files, err := open()
	if err != nil {
		return nil, err
	}
	if !modules {
		files.Modules = tree.Part{}
	}
	folders, err := index.Folders(ctx, files)
	if err != nil {
		return nil, err
	}
	all := make(treeFolders)
	for _, f := range folders {
		w := treeFolder{versions: f.Versions}
		content, err := f.ReadMetadata()
		var problems []registryhcl.Problem
		if content != nil {
			w.metadata, problems = registryhcl.Parse(content)
		}
		for _, p := range problems {
			if p.MayWithdraw && err == nil {
				err = fmt.Errorf("%s", p)
			}
		}
		if err != nil {
			w.broken = fmt.Errorf("%s/%s, which may withdraw it, cannot be read: %w", f.Path, tree.MetadataName, err)
		}
		all[f.Address] = w
	}
	return all, nil
}

// has reports whether a version lies in the tree, offered or not.
func (t treeFolders) has(a address.Address, version string) bool {
	for _, v := range t[a].versions {
		if v.String() == version {
			return true
		}
	}
	return false
}

// withdrawn says why a version is not fetched; empty if it may be fetched. It is an error if
// that is unknown.
func (t treeFolders) withdrawn(a address.Address, version string) (string, error) {
	of, ok := t[a]
	if !ok {
		return "", nil
	}
	parse := address.ParseProviderVersion
	if a.IsModule() {
		parse = address.ParseModuleVersion
	}
	v, err := parse(version)
	if err != nil {
		return "", of.broken
	}
	n := of.metadata.WithdrawnVersion(v)
	switch {
	case n == nil:
		return "", of.broken
	case n.String() == "":
		return "it is withdrawn in this tree", nil
	}
	return "it is withdrawn in this tree: " + n.String(), nil
}
