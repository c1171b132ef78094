package index

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"syscall"
)

// A finding is why something is not offered, before it is known where.
type finding struct {
	reason Reason
	detail string
}

func (f *finding) Error() string { return f.detail }

func found(reason Reason, format string, args ...any) *finding {
	return &finding{reason, fmt.Sprintf(format, args...)}
}

// asFinding keeps a finding as it is and takes every other error for a file
// that cannot be read. It drops the path that file system errors begin with:
// the report names it, relative to the tree.
func asFinding(err error) *finding {
	var f *finding
	if errors.As(err, &f) {
		return f
	}
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	switch {
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return found(exhausted, "it cannot be read: give the server more open files (%v)", err)
	case errors.Is(err, fs.ErrPermission):
		return found(Unreadable, "it cannot be read: give the server the right to (%v)", err)
	case errors.Is(err, fs.ErrNotExist):
		return found(Unreadable, "it is gone, or a symlink to nothing")
	case escapes(err):
		return found(Unreadable, "a symlink leaves the root: keep its target inside, or copy what it leads to")
	}
	return found(Unreadable, "it cannot be read: %v", err)
}

// exhausted is the reason of what cannot be read because the server itself is
// short of something, which says nothing of the tree. No report ever has it: a
// scan that meets it fails as a whole.
const exhausted Reason = "exhausted"

// failure is why a scan that came to this report cannot be believed; nil if it
// can.
func (r *Report) failure() error {
	i := slices.IndexFunc(r.Withheld, func(p Problem) bool { return p.Reason == exhausted })
	if i < 0 {
		return nil
	}
	return fmt.Errorf("%s: %s", r.Withheld[i].Path, r.Withheld[i].Detail)
}
