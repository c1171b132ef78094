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

// What a Filler can fail at beyond the kinds of upstream.Failure. Callers tell them
// apart with errors.Is.
var (
	// ErrNotMirrored: the policy excludes it, or there is no such name. The error is
	// upstream.ErrNotFound as well.
	ErrNotMirrored = fmt.Errorf("it is not mirrored: %w", upstream.ErrNotFound)

	// ErrTooYoung: the version has not reached the minimum release age. The error is
	// upstream.ErrNotFound as well: for now there is no such version.
	ErrTooYoung = fmt.Errorf("the version is too young to be mirrored yet: %w", upstream.ErrNotFound)

	// ErrUnsigned: no known key has signed the release and the Policy or pinned keys
	// require it, or there is no hash of the package at all.
	ErrUnsigned = errors.New("the release is not signed by a known key")

	// ErrConflict: the tree has other files of the release than the origin. They
	// stay.
	ErrConflict = errors.New("the release in the tree differs from the origin's")

	// ErrDiskFull: there is no room for the package.
	ErrDiskFull = errors.New("the disk is full")

	// ErrWouldFill: the package is not in the tree, and the Filler is ReadOnly.
	ErrWouldFill = errors.New("it would be fetched")

	// ErrNotWritable: the process may not write, or the disk fails.
	ErrNotWritable = errors.New("the tree cannot be read and written")
)

// storageError is what the disk reports, without paths.
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

// How long failures are remembered: a client that asks again at once, or many that
// ask at the same time, must not make it harder for the origin.
const (
	shortLifetime = 15 * time.Second // of what may be over in a moment
	longLifetime  = time.Minute
)

func lifetimeOf(err error) time.Duration {
	if upstream.IsKind(err, upstream.ErrUnavailable, upstream.ErrTimeout, ErrDiskFull, ErrNotWritable) {
		return shortLifetime
	}
	return longLifetime
}

// isCanceled reports whether this side ended the request, which says nothing about
// the origin and is not remembered.
func isCanceled(err error) bool {
	return upstream.IsKind(err, context.Canceled, context.DeadlineExceeded, upstream.ErrBusy)
}

// Reason is a word for the kind of an error of this package, one of a few: for
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
	if isCanceled(err) {
		return "given_up"
	}
	return "other"
}
