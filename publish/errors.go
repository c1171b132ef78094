package publish

import (
	"errors"
	"fmt"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// The reasons for which a file is not taken, for errors.Is. What a disk reports is
// tree.ErrDiskFull or tree.ErrNotWritable.
var (
	// ErrRefused means that the file can never be published as it is.
	ErrRefused = errors.New("it is refused")

	// ErrConflict means that other bytes of the version are published or staged.
	ErrConflict = errors.New("a version never changes")

	// ErrChanged means that the registry.hcl is no longer the one that was to be
	// replaced, or never was.
	ErrChanged = errors.New("registry.hcl has been changed meanwhile: get it again, and send the change of what it says now with its ETag")

	// ErrTooLarge means that the file is larger than Options.MaxSize, or than the server
	// in front of the Publisher takes.
	ErrTooLarge = errors.New("it is too large")

	// ErrNoRoom means that as much is staged as Options.MaxStaged or MaxStagedEach
	// allow.
	ErrNoRoom = errors.New("too much is staged")

	// ErrNothing means that no file of the version is staged or published.
	ErrNothing = errors.New("there is nothing of this version")

	// ErrInterrupted means that the client stopped sending.
	ErrInterrupted = errors.New("the upload ended early: send the file again")

	// ErrUnavailable means that the tree, or the lock that instances share, cannot be
	// used at the moment.
	ErrUnavailable = errors.New("nothing can be published at the moment: try again later")
)

// A Refusal says in sentences for the publisher why a file is not taken.
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

// TooLarge returns the Refusal of a file that is larger than limit.
func TooLarge(limit int64) error {
	return &Refusal{Kind: ErrTooLarge, Reasons: []string{fmt.Sprintf("the file is larger than %d bytes, which is the most that is taken", limit)}}
}

// errOtherBytes is for a file of a published version.
func (f File) errOtherBytes() error {
	return conflict("version %s of %s is published with another %s: a version never changes, publish a new one", f.Version, f.Address, f.Name)
}

// errPublished is for a version that can no longer be dropped.
func (s stage) errPublished() error {
	return conflict("version %s of %s is published, and is not deleted: withdraw it in its %s, and clients are no longer offered it", s.version, s.address, tree.MetadataName)
}

// errPublishedWithout is for a file that a published version does not have.
func (f File) errPublishedWithout() error {
	return conflict("version %s of %s is published without %s: a version never changes, publish a new one", f.Version, f.Address, f.Name)
}
