package offer

import (
	"slices"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/signing"
)

// A Signature says who signed the SHA256SUMS of a release that clients get. The zero value
// means that the release is not signed: only the mirror offers it.
type Signature struct {
	By    SignedBy
	KeyID string              // of the key that signed: 16 upper-case hexadecimal digits
	Keys  []signing.PublicKey // that clients verify the signature with
}

// SignedBy is the kind of a Signature's author.
type SignedBy uint8

// Authors of signatures.
const (
	NotSigned   SignedBy = iota // only the mirror offers the release
	ByRegistry                  // SHA256SUMS is the publisher's, or lists the packages in the tree
	ByPublisher                 // SHA256SUMS is the publisher's and lists all packages there are
)

// String returns the signature in the form of a report: "publisher KEYID", "registry KEYID"
// or "none".
func (s Signature) String() string {
	switch s.By {
	case ByPublisher:
		return "publisher " + s.KeyID
	case ByRegistry:
		return "registry " + s.KeyID
	}
	return "none"
}

// Key returns the key that signed, or nil if only its ID is known.
func (s Signature) Key() *signing.PublicKey {
	i := slices.IndexFunc(s.Keys, func(k signing.PublicKey) bool { return k.ID == s.KeyID })
	if i < 0 {
		return nil
	}
	return &s.Keys[i]
}

// KeysExpire returns the earliest time at which one of the keys expires; zero if none does. Of
// several copies of a key, the first one counts.
func (s Signature) KeysExpire() (first time.Time) {
	for i, k := range s.Keys {
		copied := slices.ContainsFunc(s.Keys[:i], func(other signing.PublicKey) bool { return other.ID == k.ID })
		if !copied && !k.Expires.IsZero() && (first.IsZero() || k.Expires.Before(first)) {
			first = k.Expires
		}
	}
	return first
}
