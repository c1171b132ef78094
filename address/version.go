package address

import (
	"fmt"
	"slices"
	"strings"

	version "github.com/hashicorp/go-version"
	"golang.org/x/mod/semver"
)

// maxVersion bounds what is handed to the version parsers.
const maxVersion = 128

// ParseProviderVersion accepts what every client accepts, which is the strict
// form MAJOR.MINOR.PATCH[-PRERELEASE][+BUILD]. One entry of any other form
// makes OpenTofu and Terraform before 1.13 refuse the whole provider
// (checklist 14).
func ParseProviderVersion(s string) (*version.Version, error) {
	if strings.HasPrefix(s, "v") && semver.IsValid(s) {
		return nil, fmt.Errorf("version %q must not begin with a v: rename it to %q", s, s[1:])
	}
	v, err := parseVersion(s)
	if err != nil {
		return nil, err
	}
	if v.String() != s {
		return nil, fmt.Errorf("version %q must be written out: rename it to %q", s, v)
	}
	return v, nil
}

// ParseModuleVersion also accepts a leading v and versions with parts left out,
// as clients do for modules; String returns the form they request
// (checklist 80).
func ParseModuleVersion(s string) (*version.Version, error) {
	return parseVersion(strings.TrimPrefix(s, "v"))
}

// parseVersion uses two libraries: x/mod/semver for the form, which is strict, and
// go-version for the value, since clients order by it.
func parseVersion(s string) (*version.Version, error) {
	if len(s) > maxVersion {
		return nil, fmt.Errorf("a version is at most %d characters long", maxVersion)
	}
	if !semver.IsValid("v" + s) {
		return nil, fmt.Errorf("%q is not a version: use MAJOR.MINOR.PATCH, like 1.2.3 or 1.2.3-rc.1", s)
	}
	v, err := version.NewVersion(s)
	if err != nil {
		return nil, fmt.Errorf("%q is not a version: use MAJOR.MINOR.PATCH, like 1.2.3 or 1.2.3-rc.1", s)
	}
	return v, nil
}

// SortNewestFirst sorts by precedence, then by text: builds of one version have
// the same precedence and still need an order.
func SortNewestFirst[T any](list []T, versionOf func(T) *version.Version) {
	slices.SortStableFunc(list, func(a, b T) int {
		va, vb := versionOf(a), versionOf(b)
		if order := vb.Compare(va); order != 0 {
			return order
		}
		return strings.Compare(vb.String(), va.String())
	})
}
