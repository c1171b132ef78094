package publish

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	version "github.com/hashicorp/go-version"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
)

// versionPlace stands for the version in a tag pattern.
const versionPlace = "{version}"

// A tagPattern says which tags are versions of a module: v{version}, vpc/v{version},
// vpc-{version}. The text around the version is compared literally.
type tagPattern struct{ before, after string }

func (p tagPattern) String() string { return p.before + versionPlace + p.after }

func parseTagPattern(s string) (tagPattern, error) {
	before, after, found := strings.Cut(s, versionPlace)
	rest := before + after
	switch {
	case !found:
		return tagPattern{}, fmt.Errorf("%q has no %s: write it where tags have the version, such as vpc/v%[2]s", s, versionPlace)
	case strings.Contains(after, versionPlace):
		return tagPattern{}, fmt.Errorf("%q has %s twice: a tag has one version", s, versionPlace)
	case strings.ContainsAny(rest, "{}"):
		return tagPattern{}, fmt.Errorf("%q: nothing but %s is replaced in a pattern: write the rest as the tags have it", s, versionPlace)
	case strings.ContainsFunc(rest, neverInTags):
		return tagPattern{}, fmt.Errorf("%q has a character that no tag has: what is around %s is not a glob, write it as the tags have it", s, versionPlace)
	}
	return tagPattern{before, after}, nil
}

// neverInTags reports whether git refuses the names of tags with this character.
func neverInTags(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune(`~^:?*[\`, r) }

// errIncompleteVersion: the version is like 1 or 1.2. Such tags are commonly moved to the
// latest release, but a published version never changes.
var errIncompleteVersion = errors.New("it is not a whole version, MAJOR.MINOR.PATCH: tags like v1 and v1.2 are moved with each release")

// version returns the version of a tag. ok is false if the tag does not match the pattern: it
// may belong to another module. An error means that the tag matches but has no valid version.
func (p tagPattern) version(tag string) (v *version.Version, ok bool, err error) {
	s, hasBefore := strings.CutPrefix(tag, p.before)
	s, hasAfter := strings.CutSuffix(s, p.after)
	if !hasBefore || !hasAfter || s == "" || s[0] < '0' || s[0] > '9' {
		return nil, false, nil
	}
	switch v, err = address.ParseModuleVersion(s); {
	case err != nil:
		return nil, true, err
	case v.String() != s:
		return nil, true, errIncompleteVersion
	}
	return v, true, nil
}

// inTag finds the version in a tag whose pattern is unknown.
var inTag = regexp.MustCompile(`\d+\.\d+\.\d+[-+.0-9A-Za-z]*$`)

// maxClosest bounds the patterns that an error suggests.
const maxClosest = 3

// suggestPatterns returns the patterns that would match tags, the pattern of the most tags
// first; empty if no tag has a version.
func suggestPatterns(tags []string) string {
	matched := make(map[string]int)
	for _, tag := range tags {
		if at := inTag.FindStringIndex(tag); at != nil && cli.Printable(tag) == tag {
			matched[tag[:at[0]]+versionPlace]++
		}
	}
	patterns := slices.SortedFunc(maps.Keys(matched), func(a, b string) int {
		return cmp.Or(cmp.Compare(matched[b], matched[a]), cmp.Compare(a, b))
	})
	for i := range patterns {
		patterns[i] = fmt.Sprintf("'%s'", patterns[i])
	}
	if len(patterns) > maxClosest {
		patterns = append(patterns[:maxClosest], "others")
	}
	return strings.Join(patterns, ", ")
}
