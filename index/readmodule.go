package index

import (
	"context"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/archive"
	"github.com/caddy-terraform/caddy-terraform-registry/index/layout"
	"github.com/caddy-terraform/caddy-terraform-registry/index/queue"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	version "github.com/hashicorp/go-version"
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
	p := &modulePackage{ModulePackage: *found, job: &job{part: part, Location: tree.Location{Dir: at.Dir, Name: at.Name}, Task: queue.Task{Address: a}}}
	if found.IsFolder {
		err = p.find()
	} else {
		p.Stamp = tree.StampOf(at.Info)
	}
	if err == nil {
		p.Digest, err = p.read(ctx)
	}
	if err != nil {
		return nil, archive.AsModuleError(ctx, err)
	}
	return p.offered(a.Hostname, nil), nil
}

// find finds the files of a folder outside of a scan.
func (p *modulePackage) find() error {
	var dirs []string
	var bad *tree.Finding
	p.module, bad = archive.FindModule(p.part, p.job.Path(), func(dir string) { dirs = append(dirs, dir) })
	p.Stamp = p.module.Stamp()
	// Even if no scan follows, there is no other sign that the folder has been copied
	// completely.
	if now := time.Now(); !bad.Passes() && p.part.WithChanges(p.Stamp, p.job.Path(), dirs, now).TooYoung(now, folderRest) {
		return beingWritten()
	}
	if bad != nil {
		return bad
	}
	return nil
}
