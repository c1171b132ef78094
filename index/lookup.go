package index

import (
	"github.com/caddy-terraform/caddy-terraform-registry/index/offer"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// Open opens f as it was verified. The error is ErrChanged if the file on the disk has
// changed since.
func Open(t tree.Tree, f *File) (*OpenFile, error) { return f.Open(&t) }

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

// SignChecksums returns the SignedChecksums of a release of the provider called typ that is
// not in the tree. The release will have the same documents in the tree, if its SHA256SUMS
// is the same. SignChecksums returns nil if the registry signs no releases.
func (s *Snapshot) SignChecksums(typ, version string, checksums []byte) *SignedChecksums {
	if s.signer == nil {
		return nil
	}
	return offer.NewSignedChecksums(typ, version, checksums, s.signer)
}
