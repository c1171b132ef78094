package publish

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
)

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
			matched[tag[:at[0]]+address.VersionPlace]++
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
