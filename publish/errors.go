package publish

import (
	"errors"
	"fmt"
	"strings"
)

// Why a file is not taken. Callers decide by these with errors.Is; what the disk
// reports is index.ErrDiskFull or index.ErrNotWritable.
var (
	// ErrRefused: the file can never be published as it is.
	ErrRefused = errors.New("it is refused")

	// ErrConflict: the version has other bytes, or other bytes of it are staged.
	ErrConflict = errors.New("a version never changes")

	// ErrChanged: a registry.hcl is not, or no longer, the one that was to be replaced.
	ErrChanged = errors.New("registry.hcl has been changed meanwhile: get it again, and send the change of what it says now with its ETag")

	// ErrTooLarge: it is larger than Options.MaxSize.
	ErrTooLarge = errors.New("it is too large")

	// ErrNoRoom: as much is staged as Options.MaxStaged or MaxStagedEach allow.
	ErrNoRoom = errors.New("too much is staged")

	// ErrNothing: nothing of the version is staged, or published.
	ErrNothing = errors.New("there is nothing of this version")

	// ErrInterrupted: the client stopped sending.
	ErrInterrupted = errors.New("the upload ended early: send the file again")

	// ErrUnavailable: the tree or the lock that instances share cannot be used at the
	// moment.
	ErrUnavailable = errors.New("nothing can be published at the moment: try again later")
)

// A Refusal says why a file is not taken, in sentences for its publisher.
type Refusal struct {
	Kind    error // ErrRefused, ErrConflict, ErrTooLarge or ErrNoRoom
	Reasons []string
}

func (r *Refusal) Error() string { return strings.Join(r.Reasons, "; ") }

func (r *Refusal) Unwrap() error { return r.Kind }

func refused(format string, args ...any) error {
	return &Refusal{Kind: ErrRefused, Reasons: []string{fmt.Sprintf(format, args...)}}
}

func conflict(format string, args ...any) error {
	return &Refusal{Kind: ErrConflict, Reasons: []string{fmt.Sprintf(format, args...)}}
}

func tooLarge(limit int64) error {
	return &Refusal{Kind: ErrTooLarge, Reasons: []string{fmt.Sprintf("the file is larger than %d bytes, which is the most that is taken", limit)}}
}
