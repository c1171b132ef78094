package keys

import (
	"errors"
	"fmt"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index/memo"
	"github.com/caddy-terraform/caddy-terraform-registry/signing"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A Claim has the documents by which a publisher signs a release.
type Claim struct {
	Address   address.Address
	Version   string
	Checksums []byte         // SHA256SUMS; nil if there is none
	Signature []byte         // of the checksums; nil if there is none
	File      *tree.Location // of the signature
}

// verify verifies the signature by the keys of a file, unless the memo knows its key.
func (c *Claim) verify(k *File, m *memo.Memo, now time.Time) (signing.PublicKey, error) {
	sum := wire.SHA256Of(c.Checksums)
	of := wire.SHA256Of(append(append(sum[:], k.sum[:]...), c.Signature...))
	return m.Verify(c.File, of, func() (signing.PublicKey, error) { return k.Keyring.Verify(c.Checksums, c.Signature) }, now)
}

// Identify identifies the release if the keys verify its signature.
func (k *File) Identify(c Claim, m *memo.Memo, now time.Time) (Release, bool) {
	_, err := c.verify(k, m, now)
	return c.release(), err == nil
}

// A Verdict says whose signature of a release counts.
type Verdict struct {
	Signed bool              // by its publisher
	Key    signing.PublicKey // that made the signature
	Note   string            // for the operator
}

// Judge decides whether the publisher's signature of a release counts, by the keys of its
// namespace. A signature that is wrong, or made by a key that is not in the keys file,
// withholds the release. Without a keys file, which is nil, nothing is known of the publisher,
// and the signature is not used. The copy of a keys file verifies the releases that the file
// has verified, and then nothing else counts.
func (k *File) Judge(c Claim, m *memo.Memo, now time.Time) (v Verdict, bad *tree.Finding) {
	n := NamespaceOf(c.Address)
	switch {
	case k.IsCopy() && (c.Signature == nil || c.Checksums == nil):
		return v, n.Missing()
	case c.Signature == nil:
		return v, nil
	case c.Checksums == nil:
		v.Note = "there is a signature without the SHA256SUMS it is of"
		return v, nil
	case k == nil:
		v.Note = "the publisher's signature is not checked: put the publisher's public key in " + n.File()
		return v, nil
	case k.unsigned:
		v.Note = "the publisher's signature is not checked, since " + n.File() + " says that the namespace is not signed"
		return v, nil
	case k.IsCopy() && !k.copied.has(c.release()):
		return v, n.Missing()
	case !k.Verifies():
		return v, tree.Findingf(tree.UnknownKey, "its signature cannot be checked, as %s has no usable key: put the publisher's public key there, or write the line `unsigned` into it", n.File())
	}
	key, err := c.verify(k, m, now)
	switch {
	case errors.Is(err, signing.ErrUnknownKey):
		return v, tree.Findingf(tree.UnknownKey, "%v; if it is the publisher's, add it to %s", err, n.File())
	case errors.Is(err, signing.ErrKeyExpired):
		return v, tree.Findingf(tree.KeyExpired, "%v: sign the release with a valid key", err)
	case err != nil:
		return v, tree.Findingf(tree.BadSignature, "%v", err)
	}
	v = Verdict{Signed: true, Key: key}
	if !key.Expires.IsZero() && key.Expires.Before(now) {
		v.Note = fmt.Sprintf("the publisher's key %s expired on %s: clients warn", key.ID, key.Expires.Format(time.DateOnly))
	}
	return v, nil
}

// IsUndecided reports whether it is not known which signatures count, or whether the
// namespace is signed at all. The file may be nil. isSigned reports whether the release has a
// signature and the SHA256SUMS that it signs.
func (k *File) IsUndecided(isSigned bool) bool {
	if isSigned {
		return k != nil && k.unread
	}
	return k.IsCopy() && !k.gone
}
