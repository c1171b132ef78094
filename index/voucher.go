package index

import (
	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/signing"
)

// A Voucher is what the registry itself vouches with for a release, if no signature of
// its publisher can be used: SHA256SUMS, its signature, which is made when it is first
// opened, and the key.
type Voucher struct {
	Checksums, Signature *File
	Key                  signing.PublicKey
}

func newVoucher(typ, version string, checksums []byte, signer Signer) *Voucher {
	return &Voucher{
		Checksums: newDocumentFile(address.ChecksumsName(typ, version), version, checksums),
		Signature: newSignatureFile(address.SignatureName(typ, version), version, checksums, signer),
		Key:       signer.PublicKey(),
	}
}

// Vouch returns the Voucher of a release of the provider called typ that is not in the
// tree: the one that it will have there, if its SHA256SUMS is the same. It returns nil
// if the registry vouches for no release.
func (s *Snapshot) Vouch(typ, version string, checksums []byte) *Voucher {
	if s.signer == nil {
		return nil
	}
	return newVoucher(typ, version, checksums, s.signer)
}
