package access

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A Right is a right of subjects to resources.
type Right int

// The rights.
const (
	Read    Right = iota // to list and download it
	Publish              // to add a version of it to the registry, and documentation
	Manage               // to write its registry.hcl as well, which withdraws versions and restores them
)

// rightWords has the word for each right in a rule.
var rightWords = [...]string{Read: "read", Publish: "publish", Manage: "manage"}

// includes reports whether subjects with the right r have the other one, too.
func (r Right) includes(other Right) bool {
	return r == other || r == Manage && other == Publish
}

// String returns the word for the right in a rule.
func (r Right) String() string {
	if r < 0 || int(r) >= len(rightWords) {
		return "Right(" + strconv.Itoa(int(r)) + ")"
	}
	return rightWords[r]
}

// ParseRight reads the word for a right.
func ParseRight(s string) (Right, error) {
	if r := slices.Index(rightWords[:], s); r >= 0 {
		return Right(r), nil
	}
	return 0, fmt.Errorf("%q is not a right: use %s", s, rightsInWords())
}

// RightWords returns the words for all rights.
func RightWords() []string { return slices.Clone(rightWords[:]) }

// rightsInWords returns the words for all rights for a message: "read, publish or manage".
func rightsInWords() string {
	words := RightWords()
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
