package access

import (
	"fmt"
	"strconv"
)

// A Right is what somebody may do with an address.
type Right int

const (
	Read    Right = iota // know of it and download it
	Publish              // put a version of it into the registry
)

// String is the word for it in a rule.
func (r Right) String() string {
	switch r {
	case Read:
		return "read"
	case Publish:
		return "publish"
	}
	return "Right(" + strconv.Itoa(int(r)) + ")"
}

// ParseRight reads the word for a right.
func ParseRight(s string) (Right, error) {
	for _, r := range [...]Right{Read, Publish} {
		if s == r.String() {
			return r, nil
		}
	}
	return 0, fmt.Errorf("%q is not a right: use read or publish", s)
}
