package index

import (
	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/signing"
)

// SignedChecksums are the registry's own documents for a release without a usable signature
// of its publisher: SHA256SUMS, its signature, which is made when it is first opened, and
// the key.
type SignedChecksums struct {
	Checksums, Signature *File
	Key                  signing.PublicKey
}

func newSignedChecksums(typ, version string, checksums []byte, signer Signer) *SignedChecksums {
	return &SignedChecksums{
		Checksums: newDocumentFile(address.ChecksumsName(typ, version), version, checksums),
		Signature: newSignatureFile(address.SignatureName(typ, version), version, checksums, signer),
		Key:       signer.PublicKey(),
	}
}

// SignChecksums returns the SignedChecksums of a release of the provider called typ that is
// not in the tree. The release will have the same documents in the tree, if its SHA256SUMS
// is the same. SignChecksums returns nil if the registry signs no releases.
func (s *Snapshot) SignChecksums(typ, version string, checksums []byte) *SignedChecksums {
	if s.signer == nil {
		return nil
	}
	return newSignedChecksums(typ, version, checksums, s.signer)
}
