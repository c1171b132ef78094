package publish

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// putModule publishes the package of a module: one file is the whole version.
func (p *Publisher) putModule(ctx context.Context, tree index.Tree, f File, u Upload) (Result, error) {
	present, err := p.presentModule(tree, f)
	if err != nil {
		return Result{}, err
	}
	if u.announced() && present != nil {
		return present.compare(f, u.SHA256)
	}
	switch {
	case u.Bodiless:
		return Result{}, ErrNothing
	case present != nil:
		sum, _, err := p.digest(io.Discard, f.Kind, u)
		if err != nil {
			return Result{}, err
		}
		return present.compare(f, sum)
	}
	part, dir, err := tree.Folder(f.Address).In()
	if err != nil {
		return Result{}, err
	}
	r, err := p.receive(ctx, part, f, u)
	if err != nil {
		return Result{}, err
	}
	defer part.RemoveIfEmpty(stagingPath())
	defer r.Discard()
	digest, err := index.CheckModule(ctx, r.File, r.size, f.Name, r.sum)
	if err != nil {
		return Result{}, p.asRefusal(ctx, f, err)
	}
	if present, err = p.placeModule(ctx, tree, f, r, digest, dir); err != nil {
		return Result{}, err
	}
	if present != nil {
		return present.compare(f, r.sum)
	}
	return p.completed(ctx, f, r.sum), nil
}

// placeModule gives a package its name in the tree, unless the version has been
// published meanwhile.
func (p *Publisher) placeModule(ctx context.Context, tree index.Tree, f File, r *received, digest index.ModuleDigest, dir string) (*presentModule, error) {
	unlock, err := p.lockIn(ctx, tree.Modules, f.Address.String()+"@"+f.Version)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if present, err := p.presentModule(tree, f); present != nil || err != nil {
		return present, err
	}
	if err := p.checkNoOtherBuild(tree, f.Address, f.Version); err != nil {
		return nil, err
	}
	// The client may leave: what it has sent is complete.
	info, err := r.Create(context.WithoutCancel(ctx), path.Join(dir, f.Name))
	switch {
	case errors.Is(err, index.ErrChanged):
		return nil, conflict("version %s has been copied into the tree meanwhile: a version never changes, publish a new one", f.Version)
	case err != nil:
		return nil, index.StorageError(err)
	}
	if x := p.options.Index(); x != nil {
		x.Digests().AddModule(info, digest)
	}
	return nil, nil
}

// A presentModule is a package or folder of a module's version in the tree.
type presentModule struct {
	part index.Part
	path string
	info fs.FileInfo

	offered *index.ModuleVersion // nil if it is not
	tree    index.Tree
}

// presentModule looks for a version under all names of the registry; nil if there
// is none.
func (p *Publisher) presentModule(tree index.Tree, f File) (*presentModule, error) {
	for _, hostname := range p.hostnames() {
		m, err := p.presentModuleUnder(tree, f, hostname)
		if m != nil || err != nil {
			return m, err
		}
	}
	return nil, nil
}

func (p *Publisher) presentModuleUnder(tree index.Tree, f File, hostname svchost.Hostname) (*presentModule, error) {
	part, dir, err := tree.Folder(f.Address.At(hostname)).In()
	if err != nil {
		return nil, err
	}
	entries, err := list(part, dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		version := ""
		if e.IsDir() {
			if v, err := address.ParseModuleVersion(e.Name()); err == nil {
				version = v.String()
			}
		} else if other, err := ParseModuleFile(f.Address, e.Name()); err == nil {
			version = other.Version
		}
		if version != f.Version {
			continue
		}
		m := &presentModule{part: part, path: path.Join(dir, e.Name()), info: e, tree: tree}
		if s := p.snapshot(); s != nil {
			m.offered = s.Module(f.Address.At(hostname)).Version(f.Version)
		}
		return m, nil
	}
	return nil, nil
}

// has reports whether the tree's package has a digest. A folder has that of the
// package that the registry makes of it.
func (m *presentModule) has(sum wire.SHA256) (bool, error) {
	if m.offered != nil && m.offered.Archive.Path() == m.path {
		if f, err := m.tree.OpenFile(m.offered.Archive); err == nil { // it has not changed
			f.Close()
			return m.offered.Archive.SHA256 == sum, nil
		}
	}
	if m.info.IsDir() {
		return false, nil
	}
	other, err := m.part.Digest(m.path)
	return other == sum, err
}

// compare answers an upload of a version that the tree has.
func (m *presentModule) compare(f File, sum wire.SHA256) (Result, error) {
	same, err := m.has(sum)
	switch {
	case err != nil:
		return Result{}, err
	case !same:
		return Result{}, f.errOtherBytes()
	}
	return f.unchanged(sum), nil
}

// asRefusal is the error of a check of a file as its publisher is told of it.
func (p *Publisher) asRefusal(ctx context.Context, f File, err error) error {
	var bad *index.PackageError
	switch {
	case errors.As(err, &bad):
		return refused("%s: %s", f.Name, bad.Detail)
	case ctx.Err() != nil:
		return ErrInterrupted
	}
	return index.StorageError(err)
}
