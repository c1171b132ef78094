package publish

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/archive"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// putModule publishes the package of a module: one file is the whole version.
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
	part, dir, err := files.Folder(f.Address).In()
	if err != nil {
		return Result{}, err
	}
	r, err := p.receive(ctx, part, f, u)
	if err != nil {
		return Result{}, err
	}
	defer part.RemoveIfEmpty(stagingPath())
	defer r.Discard()
	digest, err := archive.CheckModule(ctx, r.File, r.size, f.Name, r.sum)
	if err != nil {
		return Result{}, p.asRefusal(ctx, f, err)
	}
	notes, err := judge(digest.Doubts, u.AllowSecrets)
	if err != nil {
		return Result{}, err
	}
	if present, err = p.placeModule(ctx, files, f, r, digest, dir); err != nil {
		return Result{}, err
	}
	if present != nil {
		return present.compare(f, r.sum)
	}
	result := p.completed(ctx, f, r.sum)
	result.Notes = notes
	return result, nil
}

// judge refuses a package for what is wrong with it, or returns what its publisher should
// know of it all the same.
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

// placeModule gives a package its name in the tree, unless the version has been
// published meanwhile. That is what it returns.
func (p *Publisher) placeModule(ctx context.Context, files tree.Tree, f File, r *received, digest archive.ModuleDigest, dir string) (*presentModule, error) {
	unlock, err := p.lockIn(ctx, files.Modules, f.Address.String()+"@"+withoutBuild(f.Version))
	if err != nil {
		return nil, err
	}
	defer unlock()
	present, err := p.presentModule(files, f)
	if err == nil && !present.is(f) {
		err = p.checkNoOtherBuild(files, f.Address, f.Version)
	}
	if present != nil || err != nil {
		return present, err
	}
	// The client may leave: what it has sent is complete.
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
	// Creation fails for the same name only. The version may have come under another one
	// since it was looked for: copied there, or by an instance that has lost the lock.
	present, err = p.presentModuleBut(files, f, name)
	if err != nil {
		return nil, err
	}
	if present != nil {
		return present, tree.StorageError(files.Modules.Fs.Remove(path.Join(files.Modules.Dir, name)))
	}
	if x := p.options.Index(); x != nil {
		x.Digests().AddModule(info, digest)
	}
	return nil, nil
}

// A presentModule is a package or folder of a module's version in the tree.
type presentModule struct {
	part    tree.Part
	path    string
	version string // it may differ in build metadata
	info    fs.FileInfo

	offered *index.ModuleVersion // nil if it is not
	tree    tree.Tree
}

// is reports whether it is the version of a file, and no other build. It may be nil.
func (m *presentModule) is(f File) bool { return m != nil && m.version == f.Version }

// presentModule looks for a version under all names of the registry, whatever its format
// and its build metadata; nil if there is none.
func (p *Publisher) presentModule(files tree.Tree, f File) (*presentModule, error) {
	return p.presentModuleBut(files, f, "")
}

// presentModuleBut passes over one path.
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
	part, dir, err := files.Folder(f.Address.At(hostname)).In()
	if err != nil {
		return nil, err
	}
	entries, err := list(part, dir)
	if err != nil {
		return nil, err
	}
	var present *presentModule
	for _, e := range entries {
		version, name := moduleVersionOf(f.Address, e), path.Join(dir, e.Name())
		if version == "" || withoutBuild(version) != withoutBuild(f.Version) || name == but {
			continue
		}
		switch {
		case unresolved(e):
			if _, err := part.Stat(name); !errors.Is(err, fs.ErrNotExist) {
				return nil, cmp.Or(err, tree.StorageError(fs.ErrNotExist))
			}
			continue // it has gone meanwhile
		case tree.Abandoned(e):
			continue
		case e.Mode().IsRegular() && tree.Reserved(e):
			return nil, tree.ErrReserved
		}
		if present == nil || version == f.Version && present.version != version {
			present = &presentModule{part: part, path: name, version: version, info: e, tree: files}
		}
	}
	if s := p.snapshot(); s != nil && present != nil {
		present.offered = s.Module(f.Address.At(hostname)).Version(present.version)
	}
	return present, nil
}

// moduleVersionOf returns the version that an entry in the folder of a module is of; empty
// if it is of none.
func moduleVersionOf(a address.Address, e fs.FileInfo) string {
	if !unresolved(e) && !e.IsDir() {
		f, _ := ParseModuleFile(a, e.Name())
		return f.Version
	}
	if v, err := address.ParseModuleVersion(e.Name()); err == nil {
		return v.String()
	}
	if unresolved(e) {
		f, _ := ParseModuleFile(a, e.Name())
		return f.Version
	}
	return ""
}

// has reports whether the tree's package has a digest. A folder has that of the
// package that the registry makes of it.
func (m *presentModule) has(sum wire.SHA256) (bool, error) {
	if m.offered != nil && m.offered.Archive.Path() == m.path {
		f, err := index.Open(m.tree, m.offered.Archive)
		switch {
		case err == nil: // it has not changed
			f.Close()
			return m.offered.Archive.SHA256 == sum, nil
		case !errors.Is(err, tree.ErrChanged):
			return false, tree.StorageError(err)
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
	case !same, m.version != f.Version:
		return Result{}, f.errOtherBytes()
	case isZip(m.packageName()) != isZip(f.Name):
		return Result{}, f.errOtherFormat(m.packageName())
	}
	result := f.unchanged(sum)
	if m.offered != nil {
		result.Notes = m.offered.Doubts.All()
	}
	return result, nil
}

// packageName is the name of the package, or the one that the registry's package of a folder
// would have.
func (m *presentModule) packageName() string {
	if m.info.IsDir() {
		return m.version + ".tar.gz"
	}
	return path.Base(m.path)
}

func isZip(name string) bool { return strings.HasSuffix(name, ".zip") }

// errOtherFormat is for the bytes of a package under a name that says another format. Had
// they come first, they would have been refused for that.
func (f File) errOtherFormat(published string) error {
	format := "zip"
	if !isZip(f.Name) {
		format = "tar.gz"
	}
	return refused("%s is the file that is published as %s, and no %s: send it under that name", f.Name, published, format)
}

// asRefusal is the error of a check of a file as its publisher is told of it.
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
