package offer

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

// NewSignedChecksums signs the SHA256SUMS of a release of the provider called typ.
func NewSignedChecksums(typ, version string, checksums []byte, signer Signer) *SignedChecksums {
	return &SignedChecksums{
		Checksums: NewDocumentFile(address.ChecksumsName(typ, version), version, checksums),
		Signature: newSignatureFile(address.SignatureName(typ, version), version, checksums, signer),
		Key:       signer.PublicKey(),
	}
}

// A Signer signs the SHA256SUMS documents of releases that are not signed by their
// publishers; usually it is a *signing.Key.
type Signer interface {
	// PublicKey returns the key that clients verify the signatures with.
	PublicKey() signing.PublicKey

	// Sign returns a binary detached signature over document. For the same document it
	// returns the same bytes, on every instance that holds the key.
	Sign(document []byte) ([]byte, error)
}
