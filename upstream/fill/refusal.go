package fill

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
)

// What a Filler can fail at beyond what an origin can. Callers tell them with
// errors.Is.
var (
	// ErrTooYoung: the version has been published too short a time ago. The error
	// is ErrNotFound as well: for now there is no such version.
	ErrTooYoung = fmt.Errorf("the version is too young to be mirrored yet: %w", upstream.ErrNotFound)

	// ErrUnsigned: nobody known has signed the release, and the Policy or pinned
	// keys want that, or there is no hash of the package at all.
	ErrUnsigned = errors.New("nobody whose key is known has signed the release")

	// ErrConflict: the tree holds other files of the release than the origin
	// offers. What is held stays.
	ErrConflict = errors.New("the release that is held is another than the origin's")

	// ErrDiskFull: there is no room for the package.
	ErrDiskFull = errors.New("the disk is full")

	// ErrWouldFill: a package is not there, and comes in unless the Filler is
	// ReadOnly.
	ErrWouldFill = errors.New("it would be fetched")

	// ErrNotWritable: there is no right to write, or the disk fails.
	ErrNotWritable = errors.New("the tree cannot be read and written")
)

// ErrNotMirrored: it is nothing that is got from an origin, by the Policy or since
// there is no such name. The error is ErrNotFound as well.
var ErrNotMirrored = fmt.Errorf("it is not mirrored: %w", upstream.ErrNotFound)

// storageError tells what the disk refuses. Paths stay out of it.
func storageError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%w: make room for the tree", ErrDiskFull)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%w: give the server the right to", ErrNotWritable)
	}
	var number syscall.Errno
	if errors.As(err, &number) {
		return fmt.Errorf("%w: %w", ErrNotWritable, number)
	}
	return ErrNotWritable
}

// How long failures are remembered: a client that asks again at once, or the
// many that ask at the same time, must not make the origin worse off.
const (
	passing = 15 * time.Second // of what may be over in a moment
	lasting = time.Minute      // of what the origin said, or the disk
)

func lifeOf(err error) time.Duration {
	if upstream.IsKind(err, upstream.ErrUnavailable, upstream.ErrTimeout, ErrDiskFull, ErrNotWritable) {
		return passing
	}
	return lasting
}

// givenUp reports whether an error is an end that we have made ourselves, which
// says nothing of the origin and is not remembered.
func givenUp(err error) bool {
	return upstream.IsKind(err, context.Canceled, context.DeadlineExceeded, upstream.ErrBusy)
}

// Reason is a word for what an error of this package is, one of a few: for
// metrics.
func Reason(err error) string {
	for _, r := range []struct {
		kind error
		word string
	}{
		{ErrTooYoung, "too_young"},
		{upstream.ErrNotFound, "not_found"},
		{upstream.ErrTimeout, "timeout"},
		{upstream.ErrBusy, "busy"},
		{upstream.ErrUnavailable, "unavailable"},
		{upstream.ErrRefused, "refused"},
		{ErrConflict, "conflict"},
		{upstream.ErrBadChecksum, "bad_checksum"},
		{upstream.ErrBadSignature, "bad_signature"},
		{ErrUnsigned, "unsigned"},
		{upstream.ErrMalformed, "malformed"},
		{upstream.ErrTooLarge, "too_large"},
		{upstream.ErrUnsafe, "unsafe"},
		{ErrMaxHeld, "max_held"},
		{ErrDiskFull, "disk_full"},
		{ErrNotWritable, "not_writable"},
		{index.ErrChanged, "changed"},
	} {
		if errors.Is(err, r.kind) {
			return r.word
		}
	}
	if givenUp(err) {
		return "given_up"
	}
	return "other"
}
