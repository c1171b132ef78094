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
	"syscall"
)

// What an origin can fail at. Callers tell them with errors.Is.
var (
	// ErrNotFound: the origin has no such provider, version or platform.
	ErrNotFound = errors.New("there is no such thing")

	// ErrTimeout: no answer, or no further byte of one, within the timeout.
	ErrTimeout = errors.New("it takes too long")

	// ErrUnavailable: no connection, a server error, too many requests, or an
	// origin that is left alone because of those.
	ErrUnavailable = errors.New("it is not available")

	// ErrBusy: too much of the origin is waited for already, by this client or by
	// all. The error is ErrUnavailable as well.
	ErrBusy = errors.New("too much is waited for")

	// ErrRefused: it wants a token, or another one.
	ErrRefused = errors.New("it refuses access")

	// ErrMalformed: the answer is not one that a client would understand.
	ErrMalformed = errors.New("its answer is not usable")

	// ErrBadChecksum: the bytes are not those that were vouched for.
	ErrBadChecksum = errors.New("the checksum does not match")

	// ErrBadSignature: SHA256SUMS is not signed by a key that counts. The error
	// also is the one of *signing.Keyring's Verify.
	ErrBadSignature = errors.New("the signature does not verify")

	// ErrTooLarge: the answer is larger than its limit.
	ErrTooLarge = errors.New("its answer is too large")

	// ErrUnsafe: a link or a redirect to where an origin has no business: a
	// private network, or a connection without TLS.
	ErrUnsafe = errors.New("it is not safe to go there")
)

// A Failure is a request to an origin that came to nothing.
type Failure struct {
	// Host is the one that was asked, which is not always the origin's own.
	Host string

	// Status of its answer; zero without one.
	Status int

	// Kind is one of the errors above, or that of the caller's context.
	Kind error

	// Detail says more, in a sentence for the operator. May be empty.
	Detail string

	// Cause is ErrBusy, or an error of the caller or of package signing, where it tells
	// more than Kind. May be nil.
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

// Unwrap gives the kind, and what is behind it.
func (f *Failure) Unwrap() []error {
	if f.Cause == nil {
		return []error{f.Kind}
	}
	return []error{f.Kind, f.Cause}
}

// fail is a failure that a document's content or a caller's wish makes.
func fail(u *url.URL, kind error, format string, args ...any) *Failure {
	return &Failure{Host: u.Host, Kind: kind, Detail: fmt.Sprintf(format, args...)}
}

// brokenLink is a 404 for what the origin itself has pointed to: to pass it on
// would deny that the release exists.
func brokenLink(err error, what string) error {
	var f *Failure
	if errors.As(err, &f) && f.Kind == ErrNotFound {
		return &Failure{Host: f.Host, Status: f.Status, Kind: ErrMalformed, Detail: "the origin links to a " + what + " that is not there"}
	}
	return err
}

// statusFailure is what an answer with that status means; nil for success.
func (c *Client) statusFailure(r *http.Response, ranged bool) *Failure {
	f := &Failure{Host: r.Request.URL.Host, Status: r.StatusCode}
	switch s := r.StatusCode; {
	case s == http.StatusOK, s == http.StatusPartialContent && ranged:
		return nil
	case s == http.StatusNotFound, s == http.StatusGone:
		f.Kind = ErrNotFound
	case s == http.StatusUnauthorized, s == http.StatusForbidden:
		f.Kind = ErrRefused
		switch {
		case !c.own(r.Request.URL):
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

// errSlow ends requests of ours that take too long. With it as the cause they
// are told from those whose callers have gone.
var errSlow = errors.New("too slow")

// transportFailure is why there is no answer. It says nothing that the
// libraries say, since they name whole URLs and addresses.
func transportFailure(ctx context.Context, u *url.URL, err error) *Failure {
	f := &Failure{Host: u.Host, Kind: ErrUnavailable}
	var last *url.Error // of a redirect, perhaps
	if errors.As(err, &last) {
		if u, err := url.Parse(last.URL); err == nil && u.Host != "" {
			f.Host = u.Host
		}
	}
	var unsafe *unsafeAddress
	var name *net.DNSError
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var slow net.Error
	switch {
	case errors.Is(context.Cause(ctx), errSlow):
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
	case errors.As(err, &slow) && slow.Timeout():
		f.Kind = ErrTimeout
	case errors.Is(err, syscall.ECONNREFUSED):
		f.Detail = "it accepts no connections"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		f.Detail = "the connection broke off"
	}
	return f
}
