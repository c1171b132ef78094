package index

import (
	"io/fs"
	"path"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// Documents returns SHA256SUMS and its signature as the publisher made them, byte
// for byte; nil for a release that the registry signs.
func (r *Release) Documents() (checksums, signature []byte) {
	if r.Signature.By != ByPublisher {
		return nil, nil
	}
	return r.checksums.source().content, r.signatureFile.source().content
}

// NewPackageFile returns a package that was verified with CheckPackage and that no
// scan has seen yet. Its name is the path in the tree's providers, with slashes,
// and info is of the file as it was verified.
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

// Open opens f as it was verified. The error is ErrChanged when the file on the
// disk is not that one any more.
func Open(t tree.Tree, f *File) (*OpenFile, error) { return (&Snapshot{tree: t}).Open(f) }

// DigestOf returns the digest of a file in the tree's providers: from the release as a
// snapshot has it, which may be nil, if the file is unchanged, or by reading the file.
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
