package index

import (
	"io/fs"
	"path"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// Documents returns the publisher's SHA256SUMS and signature, byte for byte; nil for a
// release that the registry signs.
func (r *Release) Documents() (checksums, signature []byte) {
	if r.Signature.By != ByPublisher {
		return nil, nil
	}
	return r.checksums.source().content, r.signatureFile.source().content
}

// NewPackageFile returns a package that CheckPackage has verified and that no scan has seen
// yet. Its name is the path in the tree's providers, with slashes, and info describes the
// verified file.
func NewPackageFile(name, version string, platform address.Platform, info fs.FileInfo, sum wire.SHA256) *File {
	s := tree.StampOf(info)
	return &File{
		Name: path.Base(name), Version: version, Platform: platform.String(), Size: s.Size, SHA256: sum,
		ContentType: contentTypeOf(name), in: inProviders, base: name, modTime: s.ModTime, inode: s.Inode, changed: s.Changed,
	}
}

// NewDocumentFile returns a document of a release that is not in the tree.
func NewDocumentFile(name, version string, content []byte) *File {
	return newDocumentFile(name, version, content)
}

// Open opens f as it was verified. The error is ErrChanged if the file on the disk has
// changed since.
func Open(t tree.Tree, f *File) (*OpenFile, error) { return (&Snapshot{tree: t}).Open(f) }

// DigestOf returns the digest of a file in the tree's providers. If the file is unchanged,
// the digest comes from the release of a snapshot, which may be nil; otherwise the file is
// read.
func DigestOf(t tree.Tree, name string, r *Release) (wire.SHA256, error) {
	if r != nil {
		for _, k := range r.Packages {
			if k.File.Path() != name {
				continue
			}
			if f, err := Open(t, k.File); err == nil {
				f.Close()
				return k.File.SHA256, nil
			}
		}
	}
	return t.Providers.Digest(name)
}
