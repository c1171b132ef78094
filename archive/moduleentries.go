package archive

import (
	"archive/tar"
	"archive/zip"
	"context"
	"io"

	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// ModuleEntries are the entries of a module's package that clients unpack.
type ModuleEntries struct {
	Files map[string]wire.SHA256

	// Links have the targets of symlinks and hard links, as they are written. A link is not
	// in the h1 of the package, and clients differ in what they make of it.
	Links map[string]string
}

// ReadModuleEntries reads the entries of a module's package. The error is a *PackageError if
// the package is at fault.
func ReadModuleEntries(ctx context.Context, f interface {
	io.Reader
	io.ReaderAt
}, size int64, format string) (e ModuleEntries, err error) {
	m := newModuleFinder()
	m.links = make(map[string]string)
	if format == "zip" {
		var z *zip.Reader
		if z, err = openZip(ctx, f, size); err == nil {
			err = m.addMembers(z.File)
		}
	} else {
		err = tarEntries(ctx, f, size, format, m)
	}
	if err != nil {
		return e, asPackageError(archiveFinding(ctx, err))
	}
	return ModuleEntries{Files: m.sums, Links: m.links}, nil
}

// addLink notes an entry if it is a link, and links are kept.
func (m *moduleFinder) addLink(name string, kind byte, target string) {
	if m.links != nil && (kind == tar.TypeSymlink || kind == tar.TypeLink) {
		m.links[name] = target
	}
}
