package wire

import (
	"encoding/base64"
	"errors"
	"strings"
)

// The hash of a package begins with its scheme, which says what it is computed of. Lock files,
// documents of mirrors and registries, and the log have hashes in this form.
const (
	h1Scheme = "h1:" // of the package's files: Go's dirhash, in base64
	zhScheme = "zh:" // of the package's bytes: the sha256, in hexadecimal
)

// H1 returns the digest that Go's dirhash computes as a hash of a package's files, "h1:…".
func (s SHA256) H1() string { return h1Scheme + base64.StdEncoding.EncodeToString(s[:]) }

// ZH returns the digest as a hash of a package's bytes, "zh:…".
func (s SHA256) ZH() string { return zhScheme + s.String() }

// IsH1 reports whether a hash is one of files.
func IsH1(hash string) bool { return strings.HasPrefix(hash, h1Scheme) }

// IsZH reports whether a hash is one of bytes.
func IsZH(hash string) bool { return strings.HasPrefix(hash, zhScheme) }

// IsCompared reports whether clients compare a hash. They pass over schemes that they do not
// know.
func IsCompared(hash string) bool { return IsH1(hash) || IsZH(hash) }

// ParseH1 returns the digest in a hash of files.
func ParseH1(hash string) (sum SHA256, ok bool) {
	value, ok := strings.CutPrefix(hash, h1Scheme)
	b, err := base64.StdEncoding.DecodeString(value)
	if !ok || err != nil || len(b) != len(sum) {
		return sum, false
	}
	return SHA256(b), true
}

// ParseZH returns the digest in a hash of bytes.
func ParseZH(hash string) (sum SHA256, ok bool) {
	value, ok := strings.CutPrefix(hash, zhScheme)
	sum, err := ParseSHA256(value)
	if !ok || err != nil {
		return SHA256{}, false
	}
	return sum, true
}

// checkHash reports whether clients know the scheme of a package's hash. The error says
// why they refuse the hash.
func checkHash(hash string) (known bool, err error) {
	switch {
	case !strings.Contains(hash, ":"):
		return false, errors.New("a hash does not begin with its scheme")
	case IsH1(hash):
		if _, ok := ParseH1(hash); !ok {
			return false, errors.New("a hash of the scheme h1 is not one")
		}
		return true, nil
	case IsZH(hash):
		if _, ok := ParseZH(hash); !ok {
			return false, errors.New("a hash of the scheme zh is not one")
		}
		return true, nil
	}
	return false, nil
}
