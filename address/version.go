package address

import (
	"fmt"
	"slices"
	"strings"

	version "github.com/hashicorp/go-version"
	"golang.org/x/mod/semver"
)

// maxVersion limits the input of the version parsers.
const maxVersion = 128

// ParseProviderVersion accepts the versions that every client accepts. They have the
// strict form MAJOR.MINOR.PATCH[-PRERELEASE][+BUILD]. A single version of any other
// form makes OpenTofu and Terraform before 1.13 refuse the whole provider
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

// ParseModuleVersion also accepts a leading v and versions with missing parts, as
// clients do for modules. String returns the form in which clients request the version
// (checklist 80).
func ParseModuleVersion(s string) (*version.Version, error) {
	return parseVersion(strings.TrimPrefix(s, "v"))
}

// CheckModuleVersion returns the error of ParseModuleVersion. It is much faster for usual versions:
// go-version compares them with a regular expression, and a log has millions.
func CheckModuleVersion(s string) error {
	const anyNumber = 18 // digits; an int64 has room for them
	if text := strings.TrimPrefix(s, "v"); len(text) <= anyNumber && !strings.ContainsAny(text, "-+") && semver.IsValid("v"+text) {
		return nil
	}
	_, err := ParseModuleVersion(s)
	return err
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

// CompareVersions orders versions by precedence, the older first. Clients treat
// versions that differ only in build metadata as equal, and for modules install the
// first of them in a list, whichever is asked for. So the version without metadata
// counts as the newest, and the others are ordered by the text of their metadata.
func CompareVersions(a, b *version.Version) int {
	if order := a.Compare(b); order != 0 {
		return order
	}
	switch ma, mb := a.Metadata(), b.Metadata(); {
	case ma == mb:
		return 0
	case ma == "":
		return 1
	case mb == "":
		return -1
	default:
		return strings.Compare(ma, mb)
	}
}

// SortNewestFirst sorts by CompareVersions: 1.1.0, 1.0.0, 1.0.0+b, 1.0.0+a.
func SortNewestFirst[T any](list []T, versionOf func(T) *version.Version) {
	slices.SortStableFunc(list, func(a, b T) int { return CompareVersions(versionOf(b), versionOf(a)) })
}

// SameToClients reports whether clients treat two different versions as the same one,
// because only their build metadata differs.
func SameToClients(a, b *version.Version) bool {
	return a.Metadata() != b.Metadata() && a.Equal(b)
}
