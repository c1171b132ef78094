package registryhcl

import (
	"errors"
	"fmt"
	"slices"
)

// checkEdited returns why an edited file cannot be written: a part of what it should say would not
// count. Every edit is checked, since its user is told that it is done.
func checkEdited(before, after []byte, want File) error {
	if len(after) > MaxSize {
		return fmt.Errorf("it would be larger than %d KiB: put several versions into one constraint", MaxSize>>10)
	}
	is, problems := Parse(after)
	for _, kind := range []Kind{DeprecatedNotice, WithdrawnNotice} {
		switch list := *is.notices(kind); {
		case hasAll(list, *want.notices(kind)):
		case len(list) == maxNotices:
			return fmt.Errorf("it would have more than %d blocks %s: put several versions into one constraint", maxNotices, kind)
		default:
			return errNotEdited
		}
	}
	_, earlier := Parse(before)
	_, _, broken := parseForEdit(after)
	is.Deprecated, is.Withdrawn = want.Deprecated, want.Withdrawn // they are compared above
	if broken != nil || len(problems) > len(earlier) || !is.Equal(&want) {
		return errNotEdited
	}
	return nil
}

// errNotEdited is for a file in which the text around a block depends on the block, such as a comment
// that begins in its last line.
var errNotEdited = errors.New("other parts of the file would not be read after the change: edit it by hand")

// hasAll reports whether a list has all notices of another one. It may have more: a list is cut
// after maxNotices.
func hasAll(list, want []Notice) bool {
	return !slices.ContainsFunc(want, func(n Notice) bool { return !slices.ContainsFunc(list, n.same) })
}

// checkRestored returns why versions stay withdrawn without their notice: a part that cannot be read may
// withdraw them, too. See Problem.MayWithdraw. The line is the line before the edit.
func checkRestored(before, after []byte) error {
	_, problems := Parse(before)
	_, left := Parse(after)
	for _, p := range problems {
		if p.MayWithdraw && slices.ContainsFunc(left, func(l Problem) bool { return l.MayWithdraw && l.Detail == p.Detail }) {
			return fixFirst(errors.New(p.String()))
		}
	}
	return nil
}
