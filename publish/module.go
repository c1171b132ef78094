package publish

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/archive"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/layout"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// ParseModuleFile returns the package of a module with a name. It leaves out a leading
// v of the version, which a tree allows, too. Its error is a Refusal.
func ParseModuleFile(a address.Address, name string) (File, error) {
	text, _, rank, ok := address.ParseModuleFile(name)
	if !ok {
		return File{}, refused("%.200q is not the package of a module: send %s", name, address.ModuleFileNames("VERSION"))
	}
	v, err := address.ParseModuleVersion(text)
	if err != nil {
		return File{}, refused("%v", err)
	}
	return File{Address: a.WithHostname(""), Version: v.String(), Name: v.String() + address.ModuleFormats[rank].Suffix, Kind: Module}, nil
}

// putModule publishes the package of a module. This one file is the whole version.
func (p *Publisher) putModule(ctx context.Context, files tree.Tree, f File, u Upload) (Result, error) {
	present, err := p.presentModule(files, f)
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
	part, dir, err := files.Folder(f.Address).Locate()
	if err != nil {
		return Result{}, err
	}
	r, err := p.receive(ctx, part, f, u)
	if err != nil {
		return Result{}, err
	}
	defer part.RemoveIfEmpty(stagingPath())
	defer r.Discard()
	digest, err := r.arriving.CheckModule(ctx, r, r.size, f.Name, r.sum)
	if err != nil {
		return Result{}, p.asRefusal(ctx, f, err)
	}
	if err := p.checkRecord(f, digest.FileHashes.H1(), r.sum); err != nil {
		return Result{}, err
	}
	notes, err := judge(archive.DoubtsOf(digest), u.AllowSecrets)
	if err != nil {
		return Result{}, err
	}
	if present, err = p.placeModule(ctx, files, f, r, digest, dir); err != nil {
		p.changed(f.Address) // the package may be there all the same
		return Result{}, err
	}
	if present != nil {
		return present.compare(f, r.sum)
	}
	result := p.completed(ctx, f, r.sum)
	result.Notes = notes
	return result, nil
}

// judge refuses a package for its faults, or returns notes on them for its publisher.
func judge(d archive.Doubts, allowSecrets bool) (notes []string, err error) {
	reasons := d.Unusable
	if !allowSecrets {
		for _, text := range d.Secrets {
			reasons = append(slices.Clip(reasons), text+", or allow it with X-Allow-Secrets: 1")
		}
	}
	if len(reasons) > 0 {
		return nil, &Refusal{Kind: ErrRefused, Reasons: reasons}
	}
	return d.All(), nil
}

// placeModule gives a package its name in the tree. If the version has been published
// meanwhile, it returns that package instead.
func (p *Publisher) placeModule(ctx context.Context, files tree.Tree, f File, r *received, digest archive.Digest, dir string) (*presentModule, error) {
	unlock, err := p.lock(ctx, files.Modules, tree.ModuleLock(f.Address, f.Version))
	if err != nil {
		return nil, err
	}
	defer unlock()
	present, err := p.presentModule(files, f)
	if err == nil && !present.isVersionOf(f) {
		err = p.checkNoOtherBuild(files, f.Address, f.Version)
	}
	if present != nil || err != nil {
		return present, err
	}
	// The client has sent everything, and may leave.
	name := path.Join(dir, f.Name)
	info, err := r.Create(context.WithoutCancel(ctx), name)
	switch {
	case errors.Is(err, tree.ErrChanged):
		present, err := p.presentModule(files, f)
		if present != nil || err != nil {
			return present, err
		}
		switch exists, err := files.Modules.Exists(name); {
		case err != nil:
			return nil, err
		case !exists:
			return nil, p.unavailable("looking at "+name, fs.ErrNotExist)
		}
		return nil, conflict("version %s has been copied into the tree meanwhile: a version never changes, publish a new one", f.Version)
	case err != nil:
		return nil, tree.StorageError(err)
	}
	// Only the same name makes creation fail. The version may have come under another
	// name since placeModule's caller looked for it: as a copy, or from an instance
	// that has lost the lock.
	present, err = p.presentModuleBut(files, f, name)
	if err != nil {
		return nil, err
	}
	if present != nil {
		return present, tree.StorageError(files.Modules.Remove(name))
	}
	if x := p.options.Index(); x != nil {
		x.Digests().Add(info, digest)
	}
	return nil, nil
}

// A presentModule is a package or folder of a module's version in the tree.
type presentModule struct {
	path    string // in the tree's modules
	version string // it may differ from the version of the upload in build metadata
	info    fs.FileInfo

	offered *index.ModuleVersion // nil if the version is not offered
	tree    tree.Tree
}

// isVersionOf reports whether m has the version of a file, with the same build
// metadata. m may be nil.
func (m *presentModule) isVersionOf(f File) bool { return m != nil && m.version == f.Version }

// presentModule returns the package or folder of a version under any name of the
// registry, with any format and any build metadata. It is nil if there is none.
func (p *Publisher) presentModule(files tree.Tree, f File) (*presentModule, error) {
	return p.presentModuleBut(files, f, "")
}

// presentModuleBut is presentModule without one path.
func (p *Publisher) presentModuleBut(files tree.Tree, f File, but string) (*presentModule, error) {
	for _, hostname := range p.hostnames() {
		m, err := p.presentModuleUnder(files, f, hostname, but)
		if m != nil || err != nil {
			return m, err
		}
	}
	return nil, nil
}

func (p *Publisher) presentModuleUnder(files tree.Tree, f File, hostname svchost.Hostname, but string) (*presentModule, error) {
	part, dir, err := files.Folder(f.Address.WithHostname(hostname)).Locate()
	if err != nil {
		return nil, err
	}
	entries, err := part.Entries(dir)
	if err != nil {
		return nil, err
	}
	var present *presentModule
	for _, e := range entries {
		found, err := layout.ParseModulePackage(e)
		if err != nil || e.Path() == but {
			continue
		}
		version := found.Number.String()
		switch {
		case withoutBuild(version) != withoutBuild(f.Version):
			continue
		case e.Bad != nil:
			return nil, e.Err()
		case tree.Abandoned(e.Info):
			continue
		case e.IsFile() && tree.Reserved(e.Info):
			return nil, tree.ErrReserved
		}
		if present == nil || version == f.Version && present.version != version {
			present = &presentModule{path: e.Path(), version: version, info: e.Info, tree: files}
		}
	}
	if s := p.snapshot(); s != nil && present != nil {
		present.offered = s.Module(index.PlaceOf(f.Address.WithHostname(hostname))).Version(present.version)
	}
	return present, nil
}

// has reports whether the package in the tree has a digest. For a folder, it compares
// the package that the registry makes of the folder.
func (m *presentModule) has(sum wire.SHA256) (bool, error) {
	if m.offered != nil && m.offered.Archive.Path() == m.path {
		f, err := m.offered.Archive.Open(&m.tree)
		switch {
		case err == nil: // it is unchanged
			f.Close()
			return m.offered.Archive.SHA256 == sum, nil
		case !errors.Is(err, tree.ErrChanged):
			return false, tree.StorageError(err)
		}
	}
	if m.info.IsDir() {
		return false, nil
	}
	other, err := m.tree.Modules.Digest(m.path)
	return other == sum, err
}

// compare answers an upload of a version that the tree has.
func (m *presentModule) compare(f File, sum wire.SHA256) (Result, error) {
	same, err := m.has(sum)
	switch {
	case err != nil:
		return Result{}, err
	case !same, m.version != f.Version:
		return Result{}, f.errOtherBytes()
	case address.ModuleFormatOf(m.packageName()) != address.ModuleFormatOf(f.Name):
		return Result{}, f.errOtherFormat(m.packageName())
	}
	result := f.unchanged(sum)
	if m.offered != nil {
		result.Notes = m.offered.Doubts.All()
	}
	return result, nil
}

// packageName returns the name of the package, or the name that the registry gives to
// the package of a folder.
func (m *presentModule) packageName() string {
	if m.info.IsDir() {
		return m.version + ".tar.gz"
	}
	return path.Base(m.path)
}

// errOtherFormat refuses the bytes of a published package under a name that says
// another format. As the first upload of the version, they would have been refused,
// too.
func (f File) errOtherFormat(published string) error {
	return refused("%s is the file that is published as %s, and no %s: send it under that name", f.Name, published, address.ModuleFormatOf(f.Name))
}

// asRefusal turns the error of checking a file into one for its publisher.
func (p *Publisher) asRefusal(ctx context.Context, f File, err error) error {
	var bad *archive.PackageError
	switch {
	case errors.As(err, &bad):
		return refused("%s: %s", f.Name, bad.Detail)
	case ctx.Err() != nil:
		return ErrInterrupted
	}
	return tree.StorageError(err)
}
