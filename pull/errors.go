package pull

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/index/keys"
	"github.com/caddy-terraform/caddy-terraform-registry/pull/quota"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
)

// The errors of a Filler, in addition to the kinds of upstream.Failure and the errors
// of the disk, see tree.StorageError. Callers distinguish them with errors.Is.
var (
	// ErrNotMirrored: nothing is mirrored from the hostname, or no modules are, or
	// there is no such name. The error is upstream.ErrNotFound as well.
	ErrNotMirrored error = absent{text: "it is not mirrored"}

	// ErrExcluded: the Policy excludes the address or the platform. The error is
	// ErrNotMirrored and upstream.ErrNotFound as well.
	ErrExcluded error = absent{"the configuration of this mirror excludes it", ErrNotMirrored}

	// ErrTooYoung: the version has not reached the minimum release age. The error is
	// upstream.ErrNotFound as well, since there is no such version yet.
	ErrTooYoung error = absent{text: "the version was published too recently to be mirrored yet"}

	// ErrUnlisted: the origin was asked, and does not list the version. The error is
	// upstream.ErrNotFound as well. If the origin cannot be asked, the error is
	// upstream.ErrUnavailable or upstream.ErrTimeout.
	ErrUnlisted error = absent{text: "its registry does not list the version"}

	// errNotListedYet: the last known list lacks the version, and the origin has not sent a newer list. The
	// error is the failure of the origin as well.
	errNotListedYet = errors.New("the last known list lacks the version")

	// ErrWithdrawn: a registry.hcl in the tree withdraws the version. The error is
	// upstream.ErrNotFound as well.
	ErrWithdrawn error = absent{text: "the version is withdrawn here"}

	// ErrUnsigned: no known key has signed the release and the Policy or pinned keys
	// require it, or there is no hash of the package at all.
	ErrUnsigned = errors.New("the release is not signed by a known key")

	// ErrConflict: the tree has or had other files of the version than the origin. The
	// files in the tree stay.
	ErrConflict = errors.New("the version in the tree differs from the origin's")

	// ErrUnread: files in the tree cannot be read at the moment. Nothing replaces them,
	// and the next request tries again. The error is one of tree.StorageError as well.
	ErrUnread = errors.New("what is there of it cannot be read at the moment")

	// ErrNotOnRecord: the package is in the tree, and must be on record before it is handed out.
	// The next request tries again.
	ErrNotOnRecord = errors.New("it is not in the transparency log yet")

	// ErrWouldFill: the package is not in the tree, and the Filler is ReadOnly.
	ErrWouldFill = errors.New("it would be fetched")
)

// absent is a kind of upstream.ErrNotFound with a text of its own.
type absent struct {
	text string
	also error // a further kind; may be nil
}

func (a absent) Error() string { return a.text }

func (a absent) Is(target error) bool {
	return target == upstream.ErrNotFound || a.also != nil && target == a.also
}

// unread returns ErrUnread for an error of the tree; nil for nil.
func unread(err error) error {
	if err == nil || errors.Is(err, ErrUnread) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnread, tree.StorageError(err))
}

// The times for which failures are remembered. A client that asks again at once, or
// many that ask at the same time, must not put more load on the origin.
const (
	shortLifetime = 15 * time.Second // for failures that may soon be over
	longLifetime  = time.Minute
)

// lifetimeOf returns how long a failure is remembered. It is zero for one that says nothing about the
// origin, or that the origin is tested and may be up in a moment. Without such a failure, the next
// request reads the tree again, which costs little.
func lifetimeOf(err error) time.Duration {
	switch {
	case isCanceled(err), upstream.IsKind(err, ErrUnread, ErrWithdrawn, ErrNotOnRecord, ErrWouldFill, tree.ErrChanged, upstream.ErrTested):
		return 0
	case upstream.IsKind(err, upstream.ErrUnavailable, upstream.ErrTimeout, tree.ErrDiskFull, tree.ErrNotWritable):
		return shortLifetime
	case errors.Is(err, errNoAdditions):
		return releaseLifetime
	}
	return longLifetime
}

// isCanceled reports whether this side ended the request. This says nothing about the
// origin and is not remembered.
func isCanceled(err error) bool {
	return upstream.IsKind(err, context.Canceled, context.DeadlineExceeded, upstream.ErrBusy)
}

// Reason returns a word for the kind of an error of this package, for metrics. There
// are only a few words.
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
		{keys.ErrMissing, "keys_missing"},
		{upstream.ErrBadChecksum, "bad_checksum"},
		{upstream.ErrBadSignature, "bad_signature"},
		{ErrUnsigned, "unsigned"},
		{upstream.ErrMalformed, "malformed"},
		{upstream.ErrTooLarge, "too_large"},
		{upstream.ErrUnsafe, "unsafe"},
		{quota.ErrMaxHeld, "max_held"},
		{tree.ErrDiskFull, "disk_full"},
		{tree.ErrNotWritable, "not_writable"},
		{tree.ErrChanged, "changed"},
		{ErrNotOnRecord, "not_on_record"},
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
