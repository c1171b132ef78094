package moduledoc

import (
	"slices"
	"strings"
)

// MayHave reports whether the package may have a submodule or an example at a path, as far
// as the summary tells: it does not name examples, and not all of many submodules.
func (s Summary) MayHave(part string) bool {
	if strings.HasPrefix(part, "examples/") {
		return s.Examples > 0
	}
	named := func(sub SubmoduleSummary) bool { return sub.Path == part }
	return len(s.Submodules) == maxSubmodules || slices.ContainsFunc(s.Submodules, named)
}
