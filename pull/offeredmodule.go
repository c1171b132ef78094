package pull

import (
	"context"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/offer"
	"github.com/caddy-terraform/caddy-terraform-registry/registryhcl"
)

// folderPatience is how long a request waits for the folder of a module in a package
// after it has waited for the package. Both are within the ten seconds that clients allow
// (checklist 25).
const folderPatience = time.Second

// Module returns a module with all versions of the tree and of the origin. If the origin
// fails, the list may be the tree's.
func (o *Offers) Module(p index.Place) (*index.Module, error) {
	p.Address = p.Clone() // it stays in memory longer than the request
	present := o.tree.Module(p)
	return mergedLists(o, p, &o.modules, present, func(metadata *registryhcl.File, origin Offering) (*index.Module, int) {
		further, _ := offer.WithoutWithdrawn(metadata, origin.Versions, nil)
		m := offer.MergedModule(p.Address, present, further, metadata, origin.listAge())
		if m == nil {
			return nil, 0
		}
		return m, len(m.List().Head) + len(m.List().Tail)
	})
}

// fetchedArchive is the name of every package of a module that an Upstream fetches from an
// origin.
const fetchedArchive = "archive.tar.gz"

// ModuleVersion returns a version of a module once its package is in the tree. The error
// is ErrUnfinished if that takes longer than the client waits.
func (o *Offers) ModuleVersion(p index.Place, version string) (*index.ModuleVersion, error) {
	m := o.tree.Module(p)
	if v := m.Version(version); v != nil {
		return v, nil
	}
	if !o.mayFetch(p, version) {
		return nil, ErrNotOffered
	}
	ctx, cancel := o.waitContext()
	defer cancel()
	filled, err := o.fillModule(ctx, p, version, m)
	if err != nil {
		return nil, err
	}
	number, err := address.ParseModuleVersion(version)
	if err != nil {
		return nil, ErrNotOffered
	}
	return offer.NewModuleVersion(originAddress(p).Hostname, number, filled.File, filled.Folder), nil
}

// ModuleFolder returns the name of the package of a version of a module, and the folder
// of the module in it. It does not wait for the package. A package that has not been read yet may
// be an archive of another kind.
func (o *Offers) ModuleFolder(p index.Place, version string) (archive, folder string, err error) {
	if o.tree.Pending(p, version) {
		return "", "", ErrNotYet
	}
	client, _ := o.ask()
	ctx, cancel := context.WithTimeout(client, folderPatience)
	defer cancel()
	folder, err = o.upstream.ModuleFolder(ctx, originAddress(p), version)
	return fetchedArchive, folder, err
}

// ModulePackage returns the package of a version of a module once it is in the tree,
// however long that takes. Only the tree knows its name: a package that the snapshot does not
// have yet need not be fetched, and may be an archive of another kind.
func (o *Offers) ModulePackage(p index.Place, version string) (*index.File, error) {
	m := o.tree.Module(p)
	switch v := m.Version(version); {
	case v != nil:
		return v.Archive, nil
	case !o.mayFetch(p, version):
		return nil, ErrNotOffered
	}
	client, _ := o.ask()
	filled, err := o.fillModule(client, p, version, m)
	if err != nil {
		return nil, err
	}
	o.fetched = &filled.Filled
	return filled.File, nil
}

func (o *Offers) fillModule(ctx context.Context, p index.Place, version string, present *index.Module) (*FilledModule, error) {
	filled, err := o.upstream.FillModule(ctx, originAddress(p), version, present)
	if err != nil {
		return nil, o.failed(ctx, p, version, err)
	}
	if filled.New {
		o.added(originAddress(p))
	}
	return filled, nil
}
