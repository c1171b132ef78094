package blob

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"regexp"

	"gocloud.dev/gcerrors"
)

// ErrChanged is wrapped by the errors of reading a file whose object was replaced or
// removed since it was opened. Opening the file again returns the present object.
var ErrChanged = errors.New("the object has changed since it was opened")

// errTooSlow is the cause with which requests are canceled.
var errTooSlow = fmt.Errorf("the store does not answer: %w", context.DeadlineExceeded)

// errNoETag is the error for an object that has no ETag in the store. Its replacement
// could not be detected.
var errNoETag = &failure{text: "the store gives no ETag, which is needed to recognize changes"}

// errSamePage is the error for a listing that does not advance.
var errSamePage = &failure{text: "the store lists the same page again and again"}

// errIncomplete is the error for an answer that lacks what a store always sends: a proxy may
// have answered in its place.
var errIncomplete = &failure{text: "the answer is no complete answer of a store"}

// refuseIncomplete is deferred around requests whose answer a driver reads: drivers panic if it
// is incomplete.
func refuseIncomplete(err *error) {
	if recover() != nil {
		*err = errIncomplete
	}
}

// A failure is an error of the store, for callers and logs. It hides the SDK's error, which
// may wrap fs.ErrNotExist because of a file with credentials, and may print a URL with a
// signature.
type failure struct {
	text  string
	cause error
}

func (f *failure) Error() string { return f.text }
func (f *failure) Unwrap() error { return f.cause }

// pathError returns the error of an operation for its caller. It wraps fs.ErrNotExist
// only if the store said that there is no such object, and fs.ErrPermission only if
// this object is archived.
func (b *Bucket) pathError(ctx context.Context, op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: name, Err: b.explain(ctx, err)}
}

func (b *Bucket) explain(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, ErrChanged):
		return ErrChanged
	case errors.Is(err, errIncomplete):
		return errIncomplete
	case errors.Is(context.Cause(ctx), errTooSlow):
		return errTooSlow
	case b.dialect.missing(err):
		return fs.ErrNotExist
	}
	f := &failure{text: "the store failed: " + printable(err)}
	if code, status := b.dialect.refusal(err); status != 0 || code != "" {
		f.text = refusalText(code, status)
		if archived[code] {
			f.text, f.cause = "the store has archived it: restore it", fs.ErrPermission
		}
	}
	for _, cause := range []error{context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, cause) {
			f.cause = cause
		}
	}
	return f
}

// archived has the codes of S3 and Azure for an object that has to be restored before it
// can be read. All other refusals may concern more than one object.
var archived = map[string]bool{"InvalidObjectState": true, "BlobArchived": true}

func refusalText(code string, status int) string {
	verb := "failed"
	if status == http.StatusForbidden || status == http.StatusUnauthorized {
		verb = "refused these credentials"
	}
	switch {
	case status == 0:
		return fmt.Sprintf("the store %s: %s", verb, code)
	case code == "":
		return fmt.Sprintf("the store %s: status %d", verb, status)
	}
	return fmt.Sprintf("the store %s: %s (status %d)", verb, code, status)
}

// query matches the query of a URL, where signatures and tokens are.
var query = regexp.MustCompile(`\?[^\s"']+`)

// longest is the length to which texts of other errors are cut, in bytes.
const longest = 400

// printable returns the text of an error for a log: the text of the network error in
// it, or else its own text, without the queries of URLs.
func printable(err error) string {
	var dial *net.OpError
	var request *url.Error
	text := ""
	switch {
	case errors.As(err, &dial):
		text = dial.Error()
	case errors.As(err, &request):
		text = request.Err.Error()
	default:
		text = err.Error()
	}
	text = query.ReplaceAllString(text, "?…")
	if len(text) > longest {
		text = text[:longest] + "…"
	}
	return text
}

// refused reports whether the store refused a write because of its condition, which only
// Create sets.
func (b *Bucket) refused(err error) bool {
	_, status := b.dialect.refusal(err)
	return gcerrors.Code(err) == gcerrors.FailedPrecondition ||
		status == http.StatusPreconditionFailed || status == http.StatusConflict
}

// changed reports whether the store refused to send an object's bytes because the
// object was replaced or removed.
func (b *Bucket) changed(err error) bool {
	_, status := b.dialect.refusal(err)
	return errors.Is(err, ErrChanged) || b.dialect.missing(err) || status == http.StatusPreconditionFailed ||
		gcerrors.Code(err) == gcerrors.FailedPrecondition
}
