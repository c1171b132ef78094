package layout

import (
	"fmt"
	"io/fs"

	version "github.com/hashicorp/go-version"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// A ModulePackage is an archive or a folder in the folder of a module, with the version that
// its name says.
type ModulePackage struct {
	Number     *version.Version
	Format     string
	Preference int // of its format: of several packages of a version, the lowest counts
	IsFolder   bool
}

// ParseModulePackage parses the name of an entry. An entry that cannot be read counts by its
// name. The error of another file is fs.ErrInvalid.
func ParseModulePackage(e tree.Entry) (p ModulePackage, err error) {
	text, format, preference, isArchive := address.ParseModuleFile(e.Name)
	switch {
	case isArchive && (e.Bad != nil || !e.Info.IsDir()):
		p.Format, p.Preference = format, preference
	case e.Bad != nil || e.Info.IsDir():
		text, p.IsFolder = e.Name, true
		p.Format, p.Preference = "tar.gz", len(address.ModuleFormats)
	default:
		return p, fs.ErrInvalid
	}
	p.Number, err = address.ParseModuleVersion(text)
	return p, err
}

// FindModulePackage returns the package of a version among the entries of a module's folder, by
// preference, and its entry; nil if there is none. The error is set if an entry of the version cannot be read,
// since that entry may be the preferred one. It is ErrReserved if a process is about to write
// the only package.
func FindModulePackage(entries []tree.Entry, v *version.Version) (best *ModulePackage, at tree.Entry, err error) {
	reserved := false
	for _, e := range entries {
		if tree.IsHiddenOrTemporary(e.Name) {
			continue
		}
		p, err := ParseModulePackage(e)
		switch {
		case err != nil || p.Number.String() != v.String():
		case e.Bad != nil:
			return nil, at, fmt.Errorf("%w: %s", tree.ErrNotWritable, e.Bad.Detail)
		case !p.IsFolder && e.Info.Size() == 0:
			reserved = reserved || tree.Reserved(e.Info)
		case best == nil || p.Preference < best.Preference:
			best, at = &p, e
		}
	}
	if best == nil && reserved {
		return nil, at, tree.ErrReserved
	}
	return best, at, nil
}
