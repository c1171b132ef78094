package publish

import (
	"slices"

	"github.com/caddy-terraform/caddy-terraform-registry/registryhcl"
)

// NoticeChanges are the statements about versions that a registry.hcl adds to the file
// before it. Each is the constraint of a notice, as in "< 1.2.0".
type NoticeChanges struct {
	Withdrawn, Deprecated []string

	// Restored versions are no longer withdrawn or deprecated, or no longer withdrawn
	// but only deprecated.
	Restored []string
}

// Any reports whether there are any changes.
func (n NoticeChanges) Any() bool { return len(n.Withdrawn)+len(n.Deprecated)+len(n.Restored) > 0 }

// noticeChanges compares the contents of two files.
func noticeChanges(before, after []byte) NoticeChanges {
	was, _ := registryhcl.Parse(before)
	is, _ := registryhcl.Parse(after)
	wasWithdrawn, wasDeprecated := constraintsOf(was.Withdrawn), constraintsOf(was.Deprecated)
	withdrawn, deprecated := constraintsOf(is.Withdrawn), constraintsOf(is.Deprecated)
	return NoticeChanges{
		Withdrawn:  without(withdrawn, wasWithdrawn),
		Deprecated: without(deprecated, wasDeprecated),
		Restored:   append(without(wasWithdrawn, withdrawn), without(wasDeprecated, slices.Concat(deprecated, withdrawn, wasWithdrawn))...),
	}
}

func constraintsOf(notices []registryhcl.Notice) (all []string) {
	for _, n := range notices {
		all = append(all, n.Versions.String())
	}
	return all
}

// without returns the elements of a list that another list lacks.
func without(list, other []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(other, s) })
}
