package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"syscall"
)

// The kinds of failures. Callers match them with errors.Is.
var (
	// ErrNotFound: the origin has no such provider, version or platform.
	ErrNotFound = errors.New("not found")

	// ErrTimeout: no answer, or no further byte of one, within the timeout.
	ErrTimeout = errors.New("it takes too long")

	// ErrUnavailable: no connection, a server error, too many requests, or an origin
	// that gets no requests for a while because of such failures.
	ErrUnavailable = errors.New("it is not available")

	// ErrBusy: too many requests wait for the origin, from this client or from all. The
	// error is ErrUnavailable as well.
	ErrBusy = errors.New("too many requests are waiting")

	// ErrTested: no request was sent because another one tests whether the origin is up again.
	// The error is ErrUnavailable as well.
	ErrTested = errors.New("it is being tested")

	// ErrRefused: the origin requires a token, or another one.
	ErrRefused = errors.New("it refuses access")

	// ErrMalformed: clients would not accept the answer.
	ErrMalformed = errors.New("its answer is not usable")

	// ErrBadChecksum: the bytes do not have the checksum that the origin gave.
	ErrBadChecksum = errors.New("the checksum does not match")

	// ErrBadSignature: SHA256SUMS is not signed by a key that counts. The error also
	// wraps the error of signing.Keyring.Verify.
	ErrBadSignature = errors.New("the signature does not verify")

	// ErrTooLarge: the answer exceeds its maximum size.
	ErrTooLarge = errors.New("its answer is too large")

	// ErrNoFolder: the commit of a tag does not have the folder of the module. The error is
	// ErrMalformed as well.
	ErrNoFolder = errors.New("the commit has no such folder")

	// ErrUnsafe: a link or redirect to a private network, or to a connection without
	// TLS.
	ErrUnsafe = errors.New("it is not safe to go there")
)

// IsKind reports whether an error is a failure of one of these kinds.
func IsKind(err error, kinds ...error) bool {
	return slices.ContainsFunc(kinds, func(kind error) bool { return errors.Is(err, kind) })
}

// A Failure is the error of a request to an origin.
type Failure struct {
	// Host to which the request was sent. The origin may have linked to it.
	Host string

	// Status of the answer; zero without an answer.
	Status int

	// Kind is one of the errors above, or the error of the caller's context.
	Kind error

	// Detail has more information for the operator, in a sentence. May be empty.
	Detail string

	// Cause is ErrBusy, ErrTested or ErrNoFolder, or an error of the caller or of package signing that is more
	// precise than Kind. May be nil.
	Cause error
}

func (f *Failure) Error() string {
	text := f.Host
	if f.Status != 0 {
		text += fmt.Sprintf(" answered %d", f.Status)
	}
	text += ": " + f.Kind.Error()
	if f.Detail != "" {
		text += ": " + f.Detail
	}
	return text
}

// Unwrap returns the kind and the cause.
func (f *Failure) Unwrap() []error {
	if f.Cause == nil {
		return []error{f.Kind}
	}
	return []error{f.Kind, f.Cause}
}

// fail returns a failure that is not about the connection or the status.
func fail(u *url.URL, kind error, format string, args ...any) *Failure {
	return &Failure{Host: u.Host, Kind: kind, Detail: fmt.Sprintf(format, args...)}
}

// A refusal says why the location of a module, or its files, are refused. It does not quote the location.
type refusal struct {
	kind error
	text string
}

func refuse(kind error, format string, args ...any) error {
	return &refusal{kind, fmt.Sprintf(format, args...)}
}

func (r *refusal) Error() string { return r.text }
func (r *refusal) Unwrap() error { return r.kind }

// failure returns the failure of the host that has sent what is refused.
func (r *refusal) failure(from *url.URL) *Failure { return fail(from, r.kind, "%s", r.text) }

// brokenLink replaces a 404 for a file that the origin itself links to: ErrNotFound
// would mean that the release does not exist.
func brokenLink(err error, what string) error {
	var f *Failure
	if errors.As(err, &f) && f.Kind == ErrNotFound {
		return &Failure{Host: f.Host, Status: f.Status, Kind: ErrMalformed, Detail: "the origin links to a " + what + " that is not there"}
	}
	return err
}

// statusFailure returns the failure for a status; nil for success.
func (c *Client) statusFailure(r *http.Response, ranged bool) *Failure {
	f := &Failure{Host: r.Request.URL.Host, Status: r.StatusCode}
	switch s := r.StatusCode; {
	case s == http.StatusOK, s == http.StatusNoContent, s == http.StatusPartialContent && ranged:
		return nil // callers that need a body refuse 204 themselves
	case s == http.StatusNotFound, s == http.StatusGone:
		f.Kind = ErrNotFound
	case s == http.StatusUnauthorized, s == http.StatusForbidden:
		f.Kind = ErrRefused
		switch {
		case !c.isOriginHost(r.Request.URL):
			f.Detail = "the origin's link to it may have expired"
		case c.origin.Token == "":
			f.Detail = "configure a token for this origin"
		default:
			f.Detail = "configure another token for this origin"
		}
	case s == http.StatusTooManyRequests:
		f.Kind, f.Detail = ErrUnavailable, "it has had too many requests: try again later"
	case s >= 500:
		f.Kind, f.Detail = ErrUnavailable, "try again later"
	default:
		f.Kind = ErrMalformed
	}
	return f
}

// isRefusal reports whether a host does not have a file, or does not give it to this client, and
// will say the same if it is asked again. Some object stores answer 403 for a file that does not
// exist. Mirrors that know only the files of their protocol answer 400 for any other, and some
// stores for a link that has expired.
func isRefusal(err error) bool {
	f, is := errors.AsType[*Failure](err)
	if !is || f.Kind == ErrUnavailable {
		return false
	}
	passes := f.Status == http.StatusRequestTimeout || f.Status == http.StatusTooEarly
	return f.Status >= 400 && f.Status < 500 && !passes
}

// errTimeout is the cause for the cancellation of a request that takes too long. A
// caller who cancels gives another cause.
var errTimeout = errors.New("timeout")

// transportFailure returns the failure of a request without an answer. It leaves out
// the libraries' texts, which contain whole URLs and addresses.
func transportFailure(ctx context.Context, u *url.URL, err error) *Failure {
	f := &Failure{Host: u.Host, Kind: ErrUnavailable}
	var last *url.Error // after redirects
	if errors.As(err, &last) {
		if u, err := url.Parse(last.URL); err == nil && u.Host != "" {
			f.Host = u.Host
		}
	}
	var unsafe *unsafeAddress
	var name *net.DNSError
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var timeout net.Error
	switch {
	case errors.Is(context.Cause(ctx), errTimeout):
		f.Kind = ErrTimeout
	case ctx.Err() != nil:
		f.Kind = ctx.Err()
	case errors.As(err, &unsafe):
		f.Kind, f.Detail = ErrUnsafe, unsafe.Error()
	case errors.Is(err, errRedirects):
		f.Kind, f.Detail = ErrMalformed, errRedirects.Error()
	case errors.As(err, &certificate):
		f.Detail = "its TLS certificate does not verify"
	case errors.As(err, &record):
		f.Detail = "it does not speak TLS"
	case errors.As(err, &name) && name.IsNotFound:
		f.Detail = "its name does not resolve"
	case errors.As(err, &timeout) && timeout.Timeout():
		f.Kind = ErrTimeout
	case errors.Is(err, syscall.ECONNREFUSED):
		f.Detail = "it accepts no connections"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		f.Detail = "the connection broke off"
	}
	return f
}
