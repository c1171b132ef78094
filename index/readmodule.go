package index

import (
	"context"
	"io/fs"
	"time"

	version "github.com/hashicorp/go-version"
	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/archive"
	"github.com/caddy-terraform/caddy-terraform-registry/index/layout"
	"github.com/caddy-terraform/caddy-terraform-registry/index/memo"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// ReadVersion reads a version of a module in the tree, as a scan does, for callers that
// cannot use a snapshot, which may be older than the tree. It returns nil if there is no
// such version, or only an empty file that is Abandoned. The error is a *PackageError if a
// scan would withhold the version, ErrReserved or ErrChanged if it is still being written,
// and otherwise an error of ctx or a StorageError.
func ReadVersion(ctx context.Context, t tree.Tree, a address.Address, v *version.Version) (*ModuleVersion, error) {
	part, dir, err := t.Folder(a).Locate()
	if err != nil {
		return nil, err
	}
	entries, err := part.List(dir)
	if err != nil {
		return nil, tree.StorageError(err)
	}
	found, at, err := layout.FindModulePackage(entries, v)
	if found == nil || err != nil {
		return nil, err
	}
	p := &modulePackage{ModulePackage: *found, job: &job{part: part, Location: tree.Location{Dir: at.Dir, Name: at.Name}}}
	if !found.IsFolder {
		p.Stamp = tree.StampOf(at.Info)
	}
	if err := p.read(ctx); err != nil {
		return nil, archive.AsModuleError(ctx, err)
	}
	return p.offered(a.Hostname), nil
}

// NewModuleVersion returns the version of a module whose package has been written to the
// tree as VERSION.tar.gz, before a scan has seen it. path is the path in the tree's modules,
// info describes the file, and d is the result of CheckModule.
func NewModuleVersion(a address.Address, v *version.Version, path string, info fs.FileInfo, d archive.ModuleDigest) *ModuleVersion {
	p := &modulePackage{ModulePackage: layout.ModulePackage{Number: v, Format: "tar.gz"}, job: &job{Location: tree.Location{Name: path}, Record: memo.Record{Digest: d.Digest}}}
	p.job.Stamp = tree.StampOf(info)
	return p.offered(a.Hostname)
}

// read reads a package or folder outside of a scan.
func (p *modulePackage) read(ctx context.Context) error {
	a := p.job
	if !p.IsFolder {
		d, err := readFile(a, func(f afero.File, size int64) (archive.Digest, error) {
			return archive.ReadModule(ctx, f, size, p.Format, wire.SHA256{})
		})
		d.Stamp = a.Stamp
		a.Record = d
		return err
	}
	var dirs []string
	a.module, a.Bad = archive.FindModule(a.part, a.Path(), func(dir string) { dirs = append(dirs, dir) })
	a.Stamp = a.module.Stamp()
	// Even if no scan follows, there is no other sign that the folder has been copied
	// completely.
	if now := time.Now(); !a.Bad.Passes() && a.part.WithChanges(a.Stamp, a.Path(), dirs, now).TooYoung(now, folderRest) {
		return tree.Findingf(tree.BeingWritten, "it is still being written")
	}
	if a.Bad != nil {
		return a.Bad
	}
	d, err := readModuleFolder(ctx, a)
	d.Stamp = a.Stamp
	a.Record = d
	return err
}
