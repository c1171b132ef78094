package publish

import (
	"context"

	version "github.com/hashicorp/go-version"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index/layout"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// To clients, versions that differ only in build metadata are the same. A publisher of
// 1.0.0+x beside 1.0.0 would change what they install, so there is only one of them.

// checkOnlyBuild refuses a file of a version if the tree has a version that is the same
// to clients, or such a version is staged and complete. If the tree has both already,
// neither changes.
func (p *Publisher) checkOnlyBuild(ctx context.Context, files tree.Tree, f File) error {
	if f.Version == "" {
		return nil
	}
	v, err := address.ParseModuleVersion(f.Version)
	if err != nil {
		return refused("%v", err)
	}
	other, err := p.otherBuild(files, f.Address, v)
	if err == nil && other == nil && !f.Address.IsModule() {
		other, err = p.otherStage(ctx, files, f.Address, v)
	}
	if err != nil || other == nil {
		return err
	}
	if present, err := p.present(files, f); present || err != nil {
		return err
	}
	return errOtherBuild(f.Address, v, other)
}

// checkNoOtherBuild is checkOnlyBuild for a version that is about to come into the
// tree. It ignores staged versions.
func (p *Publisher) checkNoOtherBuild(files tree.Tree, a address.Address, text string) error {
	v, err := address.ParseModuleVersion(text)
	if err != nil {
		return refused("%v", err)
	}
	other, err := p.otherBuild(files, a, v)
	if err != nil || other == nil {
		return err
	}
	return errOtherBuild(a, v, other)
}

func errOtherBuild(a address.Address, v, other *version.Version) error {
	return conflict("version %s of %s is there, and %s differs from it in build metadata only: clients take both for the same, publish a new version", other, a, v)
}

// present reports whether the tree has the version of a file.
func (p *Publisher) present(files tree.Tree, f File) (bool, error) {
	if f.Address.IsModule() {
		m, err := p.presentModule(files, f)
		return m.isVersionOf(f), err
	}
	r, err := p.presentRelease(files, f.Address, f.Version)
	return err == nil && r.exists, err
}

// otherBuild returns a version in the tree that is the same as v to clients, offered or
// not, under any of the registry's names. It is nil if there is none.
func (p *Publisher) otherBuild(files tree.Tree, a address.Address, v *version.Version) (*version.Version, error) {
	for _, hostname := range p.hostnames() {
		a := a.WithHostname(hostname)
		part, dir, err := files.Folder(a).Locate()
		if err != nil {
			return nil, err
		}
		entries, err := part.Entries(dir)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			other := versionOf(a, e)
			if other == nil || !address.SameToClients(v, other) {
				continue
			}
			if a.IsModule() || e.Bad != nil {
				return other, e.Err()
			}
			r, err := p.presentUnder(files, a, other.String()) // the folder may contain no package
			if err != nil {
				return nil, err
			}
			if r.exists {
				return other, nil
			}
		}
	}
	return nil, nil
}

// versionOf returns the version of an entry of an address's folder. It is nil if the
// entry has none. A symlink to an unknown target may be a folder or a file.
func versionOf(a address.Address, e tree.Entry) *version.Version {
	if a.IsModule() {
		p, _ := layout.ParseModulePackage(e)
		return p.Number
	}
	if e.IsDir() || e.Bad != nil {
		if v, err := address.ParseProviderVersion(e.Name); err == nil {
			return v
		}
	}
	f, err := address.ParseReleaseFile(a.Name, e.Name)
	if err != nil {
		return nil
	}
	return f.Version
}

// otherStage returns a version that is the same as v to clients and whose files are all
// staged: publishing it has failed, and will be tried again. It is nil if there is
// none.
func (p *Publisher) otherStage(ctx context.Context, files tree.Tree, a address.Address, v *version.Version) (*version.Version, error) {
	entries, err := files.Providers.Entries(stagingPath())
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		s, ok := parseStage(files.Providers, e.Name)
		if !ok || s.address != a.WithHostname("") {
			continue
		}
		other, err := address.ParseProviderVersion(s.version)
		if err != nil || !address.SameToClients(v, other) {
			continue
		}
		if complete, err := p.complete(ctx, files, s); complete || err != nil {
			return other, err
		}
	}
	return nil, nil
}

// complete reports whether all files of a release are staged.
func (p *Publisher) complete(ctx context.Context, files tree.Tree, s stage) (bool, error) {
	unlock, err := p.lock(ctx, s.part, s.lockName())
	if err != nil {
		return false, err
	}
	defer unlock()
	present, err := p.presentRelease(files, s.address, s.version)
	if err != nil {
		return false, err
	}
	c, err := p.read(ctx, files, s, present)
	return err == nil && len(c.missing()) == 0, err
}
