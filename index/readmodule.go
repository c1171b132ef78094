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
)

// ReadModule reads what the tree has of a version of a module, as a scan does, where the
// snapshot may be behind what is on the disk; nil if there is nothing, or an empty file that
// is Abandoned. The error is a *PackageError where a scan would withhold it, ErrReserved or
// ErrChanged where it is still being written, and otherwise that of ctx or one of
// StorageError.
func (t Tree) ReadModule(ctx context.Context, a address.Address, v *version.Version) (*ModuleVersion, error) {
	part, dir, err := t.Folder(a).In()
	if err != nil {
		return nil, err
	}
	entries, err := part.list(dir)
	if err != nil {
		return nil, StorageError(err)
	}
	p, err := findVersion(entries, v)
	if p == nil || err != nil {
		return nil, err
	}
	p.archive.in = &folder{part: part, address: a}
	if err := p.read(ctx); err != nil {
		return nil, moduleUnread(ctx, err)
	}
	return p.offered(a.Hostname), nil
}

// NewModuleVersion is the version of a module whose package has come into the tree by the
// name VERSION.tar.gz, before a scan has seen it: the path in the tree's modules, what is
// there, and what CheckModule found in it.
func NewModuleVersion(a address.Address, v *version.Version, path string, info fs.FileInfo, d ModuleDigest) *ModuleVersion {
	p := &modulePackage{version: v, format: "tar.gz", archive: &archive{location: location{name: path}, digest: d.digest}}
	p.archive.stamp = stampOf(info)
	return p.offered(a.Hostname)
}

// findVersion returns the package or folder of a version among the entries of a module's
// folder, the preferred one of several; nil if there is none. The error is for an entry of
// the version that cannot be read, since it may be the preferred one, and ErrReserved where
// the only package is about to be written.
func findVersion(entries []entry, v *version.Version) (best *modulePackage, err error) {
	reserved := false
	for _, e := range entries {
		if hiddenOrTemporary(e.name) {
			continue
		}
		p := &modulePackage{format: "tar.gz", preference: len(address.ModuleFormats), archive: &archive{location: location{dir: e.dir, name: e.name}}}
		text, format, preference, isFile := address.ParseModuleFile(e.name)
		switch {
		case isFile && (e.bad != nil || !e.info.IsDir()):
			p.format, p.preference = format, preference
		case e.bad != nil || e.info.IsDir():
			text = e.name
		default:
			continue
		}
		if p.version, err = address.ParseModuleVersion(text); err != nil || p.version.String() != v.String() {
			continue
		}
		if e.bad != nil {
			return nil, fmt.Errorf("%w: %s", ErrNotWritable, e.bad.detail)
		}
		if isFile && e.info.Size() == 0 {
			reserved = reserved || Reserved(e.info)
			continue
		}
		if isFile {
			p.archive.stamp = stampOf(e.info)
		}
		if best == nil || p.preference < best.preference {
			best = p
		}
	}
	if best == nil && reserved {
		return nil, ErrReserved
	}
	return best, nil
}

// read reads a package or folder outside of a scan.
func (p *modulePackage) read(ctx context.Context) error {
	a := p.archive
	if p.preference < len(address.ModuleFormats) {
		d, err := readFile(ctx, a, func(f afero.File, d *digest) error { return d.readModule(ctx, f, d.size, p.format) })
		d.stamp = a.stamp
		a.digest = d
		return err
	}
	var dirs []string
	a.findModule(func(dir string) { dirs = append(dirs, dir) })
	a.stamp = stampFolder(a.files)
	// Where no scan follows, too, nothing else tells that it has been copied completely.
	if now := time.Now(); !a.bad.passes() && a.withChanges(dirs, now).tooYoung(now, folderRest) {
		return found(BeingWritten, "it is still being written")
	}
	if a.bad != nil {
		return a.bad
	}
	d, err := readFolder(ctx, a)
	d.stamp = a.stamp
	a.digest = d
	return err
}

func moduleUnread(ctx context.Context, err error) error {
	var bad *finding
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case !errors.As(err, &bad):
		return StorageError(err)
	}
	switch bad.reason {
	case BeingWritten:
		return ErrChanged
	case Unreadable, exhausted, storeFailed:
		return fmt.Errorf("%w: %s", ErrNotWritable, bad.detail)
	}
	return asPackageError(err)
}
