package address

import (
	"errors"
	"fmt"
	"strings"

	version "github.com/hashicorp/go-version"
)

// VersionPlace stands for the version in a tag pattern.
const VersionPlace = "{version}"

// A TagPattern says which tags of a git repository are versions of a module: v{version},
// vpc/v{version}, vpc-{version}. The text around the version is compared literally.
type TagPattern struct{ before, after string }

// ParseTagPattern reads a pattern.
func ParseTagPattern(s string) (TagPattern, error) {
	before, after, found := strings.Cut(s, VersionPlace)
	rest := before + after
	switch {
	case !found:
		return TagPattern{}, fmt.Errorf("%q has no %s: write it where tags have the version, such as vpc/v%[2]s", s, VersionPlace)
	case strings.Contains(after, VersionPlace):
		return TagPattern{}, fmt.Errorf("%q has %s twice: a tag has one version", s, VersionPlace)
	case strings.ContainsAny(rest, "{}"):
		return TagPattern{}, fmt.Errorf("%q: nothing but %s is replaced in a pattern: write the rest as the tags have it", s, VersionPlace)
	case strings.ContainsFunc(rest, neverInTags):
		return TagPattern{}, fmt.Errorf("%q has a character that no tag has: what is around %s is not a glob, write it as the tags have it", s, VersionPlace)
	}
	return TagPattern{before, after}, nil
}

func (p TagPattern) String() string { return p.before + VersionPlace + p.after }

// neverInTags reports whether git refuses the names of tags with this character.
func neverInTags(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune(`~^:?*[\`, r) }

// errIncompleteVersion: the version is like 1 or 1.2. Such tags are commonly moved to the
// latest release, but a published version never changes.
var errIncompleteVersion = errors.New("it is not a whole version, MAJOR.MINOR.PATCH: tags like v1 and v1.2 are moved with each release")

// Version returns the version of a tag. ok is false if the tag does not match the pattern: it
// may belong to another module. An error means that the tag matches but has no valid version.
func (p TagPattern) Version(tag string) (v *version.Version, ok bool, err error) {
	s, hasBefore := strings.CutPrefix(tag, p.before)
	s, hasAfter := strings.CutSuffix(s, p.after)
	if !hasBefore || !hasAfter || s == "" || s[0] < '0' || s[0] > '9' {
		return nil, false, nil
	}
	switch v, err = ParseModuleVersion(s); {
	case err != nil:
		return nil, true, err
	case v.String() != s:
		return nil, true, errIncompleteVersion
	}
	return v, true, nil
}

// Tag returns the tag of a version.
func (p TagPattern) Tag(version string) string { return p.before + version + p.after }
