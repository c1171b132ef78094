package wire

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"iter"
	"strings"
)

// The hash of a package begins with its scheme, which says what it is computed of. Lock files,
// documents of mirrors and registries, and the log have hashes in this form.
const (
	h1Scheme = "h1:" // of the package's files: Go's dirhash, in base64
	zhScheme = "zh:" // of the package's bytes: the sha256, in hexadecimal
)

// h1Length is the length of a digest in base64. Logs and trees have a million hashes, so that
// writing one allocates its text alone, and reading one nothing.
const h1Length = (len(SHA256{}) + 2) / 3 * 4

// FileHashes are the hashes of a package's files by all schemes, the "h1:" first, with a space between
// them. A list would take more memory, and trees have a million packages.
type FileHashes string

// H1 returns the "h1:" hash.
func (h FileHashes) H1() string {
	first, _, _ := strings.Cut(string(h), " ")
	return first
}

// All yields the hashes one by one.
func (h FileHashes) All() iter.Seq[string] { return strings.FieldsSeq(string(h)) }

// ListHashes returns all of the hashes as a list, in which one of the package's bytes may follow.
func ListHashes(all ...FileHashes) []string {
	list := make([]string, 0, 2) // of most packages
	for _, h := range all {
		for hash := range h.All() {
			list = append(list, hash)
		}
	}
	return list
}

// H1 returns the digest that Go's dirhash computes as a hash of a package's files, "h1:…".
func (s SHA256) H1() string {
	text := append(make([]byte, 0, len(h1Scheme)+h1Length), h1Scheme...)
	return string(base64.StdEncoding.AppendEncode(text, s[:]))
}

// ZH returns the digest as a hash of a package's bytes, "zh:…".
func (s SHA256) ZH() string {
	text := append(make([]byte, 0, len(zhScheme)+2*len(s)), zhScheme...)
	return string(hex.AppendEncode(text, s[:]))
}

// IsH1 reports whether a hash is one of files, of the scheme that all clients know.
func IsH1(hash string) bool { return strings.HasPrefix(hash, h1Scheme) }

// IsZH reports whether a hash is one of bytes.
func IsZH(hash string) bool { return strings.HasPrefix(hash, zhScheme) }

// IsOfFiles reports whether a hash is one of files, of any scheme that clients know.
func IsOfFiles(hash string) bool { return IsH1(hash) }

// IsCompared reports whether clients compare a hash. They pass over schemes that they do not
// know.
func IsCompared(hash string) bool { return IsH1(hash) || IsZH(hash) }

// ParseH1 returns the digest in a hash of files.
func ParseH1(hash string) (sum SHA256, ok bool) {
	value, ok := strings.CutPrefix(hash, h1Scheme)
	if !ok || len(value) != h1Length {
		return sum, false
	}
	var text [h1Length]byte
	var decoded [h1Length / 4 * 3]byte
	copy(text[:], value)
	n, err := base64.StdEncoding.Decode(decoded[:], text[:])
	if err != nil || n != len(sum) {
		return sum, false
	}
	return SHA256(decoded[:n]), true
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
