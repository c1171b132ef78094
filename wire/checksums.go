package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// SHA256 is the digest of a file's bytes.
type SHA256 [sha256.Size]byte

// String returns the digest in lower-case hexadecimal.
func (s SHA256) String() string { return hex.EncodeToString(s[:]) }

// SHA256Of returns the digest of content.
func SHA256Of(content []byte) SHA256 { return sha256.Sum256(content) }

// ParseSHA256 reads a digest in hexadecimal of either case.
func ParseSHA256(digits string) (sum SHA256, err error) {
	if len(digits) != hex.EncodedLen(len(sum)) {
		return sum, hex.ErrLength
	}
	var b [2 * len(sum)]byte
	copy(b[:], digits)
	_, err = hex.Decode(sum[:], b[:])
	return sum, err
}

// maxChecksumsLine is far below the length at which clients stop reading.
const maxChecksumsLine = 4096

// ErrNoChecksums means that a SHA256SUMS document is empty.
var ErrNoChecksums = errors.New("SHA256SUMS is empty: copy it again")

// Checksums is a SHA256SUMS document: digests by file name.
type Checksums map[string]SHA256

// DecodeChecksums reads a SHA256SUMS document and refuses every form that some
// client stumbles over: a blank line crashes all of them (checklist 50); a
// comment or a malformed line makes them drop the hashes of all other platforms
// (51); the `*name` and `./name` of some sha256sum programs are not found (52).
func DecodeChecksums(document []byte) (Checksums, error) {
	if len(document) == 0 {
		return nil, ErrNoChecksums
	}
	text := strings.TrimSuffix(string(document), "\n")
	sums, number := make(Checksums, strings.Count(text, "\n")+1), 0
	// One line feed at the end closes the last line; a second is a blank line.
	for line := range strings.SplitSeq(text, "\n") {
		number++
		var fields [2]string
		words := 0
		for word := range strings.FieldsSeq(line) {
			if words < len(fields) {
				fields[words] = word
			}
			words++
		}
		switch {
		case words == 0:
			return nil, fmt.Errorf("line %d of SHA256SUMS is blank, which crashes Terraform and OpenTofu: remove it and sign again", number)
		case strings.HasPrefix(fields[0], "#"):
			return nil, fmt.Errorf("line %d of SHA256SUMS is a comment, which makes clients drop hashes: remove it and sign again", number)
		case len(line) > maxChecksumsLine:
			return nil, fmt.Errorf("line %d of SHA256SUMS is %d bytes long, which makes clients drop it and all that follow", number, len(line))
		case words != len(fields):
			return nil, fmt.Errorf("line %d of SHA256SUMS is not a digest and a file name", number)
		}
		name := fields[1]
		if strings.HasPrefix(name, "*") || strings.HasPrefix(name, "./") {
			return nil, fmt.Errorf("line %d of SHA256SUMS names %q, which clients do not find: write the bare file name and sign again", number, name)
		}
		sum, err := ParseSHA256(fields[0])
		if err != nil {
			return nil, fmt.Errorf("line %d of SHA256SUMS does not begin with 64 hexadecimal digits", number)
		}
		if earlier, twice := sums[name]; twice && earlier != sum {
			return nil, fmt.Errorf("SHA256SUMS lists %q twice with different digests", name)
		}
		sums[name] = sum
	}
	return sums, nil
}

// Encode returns the document in the form every client reads, ordered by name.
func (c Checksums) Encode() []byte {
	names, size := make([]string, 0, len(c)), 0
	for name := range c {
		names = append(names, name)
		size += hex.EncodedLen(sha256.Size) + len("  ") + len(name) + len("\n")
	}
	slices.Sort(names)
	b := make([]byte, 0, size)
	for _, name := range names {
		sum := c[name]
		b = hex.AppendEncode(b, sum[:])
		b = append(b, "  "...)
		b = append(b, name...)
		b = append(b, '\n')
	}
	return b
}
