package offer

import (
	"fmt"
	"slices"
	"strings"

	version "github.com/hashicorp/go-version"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/registryhcl"
)

// Limits of the warnings that clients print at every init: the characters of a warning
// without its link, and the versions in it.
const (
	maxWarning         = 200
	maxWarningVersions = 80
	maxWithdrawnNames  = 4 // versions that are withdrawn for one reason
)

// withdrawalWarnings returns the warnings about withdrawn versions, the newest first: one
// line, since a lock file or a cache may still have one of the versions.
func withdrawalWarnings(withdrawn []WithdrawnVersion) []string {
	if len(withdrawn) == 0 {
		return nil
	}
	var parts []string
	for i := 0; i < len(withdrawn); {
		n := withdrawn[i].Notice
		var names []string
		for ; i < len(withdrawn) && withdrawn[i].Notice.Reason == n.Reason; i++ {
			names = append(names, withdrawn[i].Version)
		}
		if more := len(names) - maxWithdrawnNames; more > 0 {
			names = append(names[:maxWithdrawnNames], fmt.Sprintf("%d more", more))
		}
		part := strings.Join(names, ", ")
		if n.Reason != "" {
			part += " (" + n.Reason + ")"
		}
		parts = append(parts, part)
	}
	text, _ := registryhcl.Shorten("withdrawn, use other versions than "+strings.Join(parts, ", "), maxWarning)
	return []string{text}
}

// deprecationWarnings returns the warnings about releases, which are ordered, the newest
// first: one line for each notice that deprecates some of them. It names the versions, since
// clients that use other versions print it too.
func deprecationWarnings(releases []*Release) (warnings []string) {
	var notices []*registryhcl.Notice
	for _, r := range releases {
		if n := r.deprecated; n != nil && !slices.Contains(notices, n) {
			notices = append(notices, n)
		}
	}
	for _, n := range notices {
		warnings = append(warnings, deprecationWarning(releases, n))
	}
	return warnings
}

// deprecationWarning returns the line about the releases that a notice deprecates.
func deprecationWarning(releases []*Release, n *registryhcl.Notice) string {
	covered := make([]*version.Version, len(releases)) // nil: not covered
	total := 0
	for i, r := range releases {
		if r.deprecated == n {
			covered[i] = r.version
			total++
		}
	}
	text := "versions " + nameVersions(covered, total) + " are deprecated"
	if total == 1 {
		text = "version " + nameVersions(covered, total) + " is deprecated"
	}
	if n.Reason != "" {
		text += ": " + n.Reason
	}
	text, _ = registryhcl.Shorten(text, maxWarning)
	if n.Link != "" {
		text += " (" + n.Link + ")"
	}
	return text
}

// nameVersions names the versions in a list that are not nil, in ascending order: "1.0.0 to
// 1.1.4 and 1.3.0", or "1.0.0, 1.2.0 and 12 more". total is their number. The list has an
// element for every version, the newest first: versions in a range are next to each other.
func nameVersions(list []*version.Version, total int) string {
	type run struct {
		text  string
		count int
	}
	var runs []run
	for i := len(list) - 1; i >= 0; i-- {
		if list[i] == nil {
			continue
		}
		first := list[i]
		count := 1
		for i > 0 && list[i-1] != nil {
			i--
			count++
		}
		switch count {
		case 1:
			runs = append(runs, run{first.String(), 1})
		case 2:
			runs = append(runs, run{first.String(), 1}, run{list[i].String(), 1})
		default:
			runs = append(runs, run{first.String() + " to " + list[i].String(), count})
		}
	}
	var names []string
	length := 0
	for _, r := range runs {
		rest := total - r.count
		if length += len(r.text) + 2; len(names) > 0 && rest > 0 && length > maxWarningVersions {
			break
		}
		names, total = append(names, r.text), rest
	}
	if total > 0 {
		names = append(names, fmt.Sprintf("%d more", total))
	}
	if n := len(names); n > 1 {
		names = []string{strings.Join(names[:n-1], ", ") + " and " + names[n-1]}
	}
	return strings.Join(names, "")
}

// Covered returns the number and, in short, the names of the versions that meet
// constraints.
func Covered(versions []*version.Version, c address.Constraints) (n int, names string) {
	covered := slices.Clone(versions)
	for i, v := range covered {
		if c.Cover(v) {
			n++
		} else {
			covered[i] = nil
		}
	}
	return n, nameVersions(covered, n)
}
