package offer

import (
	"slices"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/signing"
)

// A Signature says who signed a version that clients get: of a release, its SHA256SUMS. The zero value
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
// or "none". A nil Signature has no text.
func (s *Signature) String() string {
	switch {
	case s == nil:
		return ""
	case s.By == ByPublisher:
		return "publisher " + s.KeyID
	case s.By == ByRegistry:
		return "registry " + s.KeyID
	}
	return "none"
}

// Key returns the key that signed, or nil if only its ID is known.
func (s *Signature) Key() *signing.PublicKey {
	i := slices.IndexFunc(s.Keys, func(k signing.PublicKey) bool { return k.ID == s.KeyID })
	if i < 0 {
		return nil
	}
	return &s.Keys[i]
}

// KeysExpire returns the earliest time at which one of the keys expires; zero if none does. Of
// several copies of a key, the first one counts. A nil Signature has no keys.
func (s *Signature) KeysExpire() (first time.Time) {
	if s == nil {
		return first
	}
	for i, k := range s.Keys {
		copied := slices.ContainsFunc(s.Keys[:i], func(other signing.PublicKey) bool { return other.ID == k.ID })
		if !copied && !k.Expires.IsZero() && (first.IsZero() || k.Expires.Before(first)) {
			first = k.Expires
		}
	}
	return first
}
