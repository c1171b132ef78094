package index

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	version "github.com/hashicorp/go-version"
	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/archive"
	"github.com/caddy-terraform/caddy-terraform-registry/index/memo"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// ReadVersion reads what the tree has of a version of a module, as a scan does, where the
// snapshot may be behind what is on the disk; nil if there is nothing, or an empty file that
// is Abandoned. The error is a *PackageError where a scan would withhold it, ErrReserved or
// ErrChanged where it is still being written, and otherwise that of ctx or one of
// StorageError.
func ReadVersion(ctx context.Context, t tree.Tree, a address.Address, v *version.Version) (*ModuleVersion, error) {
	part, dir, err := t.Folder(a).In()
	if err != nil {
		return nil, err
	}
	entries, err := part.List(dir)
	if err != nil {
		return nil, tree.StorageError(err)
	}
	p, err := findVersion(entries, v)
	if p == nil || err != nil {
		return nil, err
	}
	p.job.in = &folder{part: part, address: a}
	if err := p.read(ctx); err != nil {
		return nil, moduleUnread(ctx, err)
	}
	return p.offered(a.Hostname), nil
}

// NewModuleVersion is the version of a module whose package has come into the tree by the
// name VERSION.tar.gz, before a scan has seen it: the path in the tree's modules, what is
// there, and what CheckModule found in it.
func NewModuleVersion(a address.Address, v *version.Version, path string, info fs.FileInfo, d archive.ModuleDigest) *ModuleVersion {
	p := &modulePackage{version: v, format: "tar.gz", job: &job{Location: tree.Location{Name: path}, Record: memo.Record{Digest: d.Digest}}}
	p.job.Stamp = tree.StampOf(info)
	return p.offered(a.Hostname)
}

// findVersion returns the package or folder of a version among the entries of a module's
// folder, the preferred one of several; nil if there is none. The error is for an entry of
// the version that cannot be read, since it may be the preferred one, and ErrReserved where
// the only package is about to be written.
func findVersion(entries []tree.Entry, v *version.Version) (best *modulePackage, err error) {
	reserved := false
	for _, e := range entries {
		if tree.IsHiddenOrTemporary(e.Name) {
			continue
		}
		p := &modulePackage{format: "tar.gz", preference: len(address.ModuleFormats), job: &job{Location: tree.Location{Dir: e.Dir, Name: e.Name}}}
		text, format, preference, isFile := address.ParseModuleFile(e.Name)
		switch {
		case isFile && (e.Bad != nil || !e.Info.IsDir()):
			p.format, p.preference = format, preference
		case e.Bad != nil || e.Info.IsDir():
			text = e.Name
		default:
			continue
		}
		if p.version, err = address.ParseModuleVersion(text); err != nil || p.version.String() != v.String() {
			continue
		}
		if e.Bad != nil {
			return nil, fmt.Errorf("%w: %s", tree.ErrNotWritable, e.Bad.Detail)
		}
		if isFile && e.Info.Size() == 0 {
			reserved = reserved || tree.Reserved(e.Info)
			continue
		}
		if isFile {
			p.job.Stamp = tree.StampOf(e.Info)
		}
		if best == nil || p.preference < best.preference {
			best = p
		}
	}
	if best == nil && reserved {
		return nil, tree.ErrReserved
	}
	return best, nil
}

// read reads a package or folder outside of a scan.
func (p *modulePackage) read(ctx context.Context) error {
	a := p.job
	if p.preference < len(address.ModuleFormats) {
		d, err := readFile(a, func(f afero.File, size int64) (archive.Digest, error) {
			return archive.ReadModule(ctx, f, size, p.format, wire.SHA256{})
		})
		d.Stamp = a.Stamp
		a.Record = d
		return err
	}
	var dirs []string
	a.module, a.Bad = archive.FindModule(a.in.part, a.Path(), func(dir string) { dirs = append(dirs, dir) })
	a.Stamp = a.module.Stamp()
	// Where no scan follows, too, nothing else tells that it has been copied completely.
	if now := time.Now(); !a.Bad.Passes() && a.withChanges(dirs, now).TooYoung(now, folderRest) {
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

func moduleUnread(ctx context.Context, err error) error {
	var bad *tree.Finding
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case !errors.As(err, &bad):
		return tree.StorageError(err)
	}
	switch bad.Reason {
	case tree.BeingWritten:
		return tree.ErrChanged
	case tree.Unreadable, tree.Exhausted, tree.StoreFailed:
		return fmt.Errorf("%w: %s", tree.ErrNotWritable, bad.Detail)
	}
	return archive.AsPackageError(err)
}
