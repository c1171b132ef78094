package handlers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/fill"
)

// An answerError is an error as the client sees it: the status, and one sentence
// that says what to do. The cause is for the log.
type answerError struct {
	status  int
	message string
	cause   error
}

func (e *answerError) Error() string { return e.message }

func (e *answerError) Unwrap() error { return e.cause }

func fail(status int, format string, args ...any) error {
	return &answerError{status: status, message: fmt.Sprintf(format, args...)}
}

// unavailable is a failure that passes.
func unavailable(message string, cause error) error {
	return &answerError{status: http.StatusServiceUnavailable, message: message, cause: cause}
}

var (
	errNotFound = fail(http.StatusNotFound, "there is nothing at this path: see the registry's discovery document")

	// errPending is for what lies in the tree and has not been read yet. A 404 would
	// send clients to another source, or stop them.
	errPending = unavailable("the registry is still reading this: try again in a moment", nil)

	// errReplaced is for a file that is no longer the one that was verified.
	errReplaced = unavailable("the file is being replaced: try again in a moment", nil)
)

// linksUnsigned is a failure to sign links.
func linksUnsigned(err error) error {
	return unavailable("the registry cannot sign links at the moment: try again in a moment", err)
}

// linkRefused is the answer to an invalid link, by the error of access.Links.
func linkRefused(err error) error {
	switch {
	case errors.Is(err, access.ErrNoLinkKeys):
		return unavailable("links cannot be checked at the moment: try again in a moment", nil)
	case errors.Is(err, access.ErrLinkExpired):
		return fail(http.StatusForbidden, "this link has expired: run the command again to be given a new one")
	}
	return fail(http.StatusForbidden, "this link is not one of this registry's for this file: run the command again to be given one")
}

// fileNotFilled is the answer to a request for a file of a that an Upstream did
// not get.
func fileNotFilled(a address.Address, err error) error {
	switch {
	case errors.Is(err, fill.ErrNotMirrored):
		return fail(http.StatusNotFound, "this mirror has no such file of %s, and does not fetch it from its registry", a)
	case errors.Is(err, fill.ErrTooYoung):
		return fail(http.StatusNotFound, "this version of %s was published too recently to be mirrored: try again later", a)
	case errors.Is(err, upstream.ErrNotFound):
		return fail(http.StatusNotFound, "neither this mirror nor the registry of %s has such a file: see which platforms the version has", a)
	}
	return upstreamFailed(err)
}

// upstreamFailed is the answer when an origin failed, or the tree could not take
// what it sent. The error of an Upstream names hosts and statuses only.
func upstreamFailed(err error) error {
	status := http.StatusBadGateway
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return unavailable("the request took too long: try again", nil)
	case errors.Is(err, upstream.ErrBusy):
		return unavailable("too many requests are waiting for the origin: try again in a moment", nil)
	case errors.Is(err, fill.ErrDiskFull), errors.Is(err, fill.ErrNotWritable):
		// The Upstream logs it once, rather than once a request.
		return unavailable("the mirror cannot store what it fetches: tell its operator", nil)
	case errors.Is(err, upstream.ErrTimeout):
		status = http.StatusGatewayTimeout
	}
	return fail(status, "the mirror could not fetch it: %v", err)
}

// writeError answers with an error. Module clients print the body as it is, so it
// is one line (checklist 86).
func (g *Registry) writeError(w http.ResponseWriter, r *request, err error) {
	answer := &answerError{status: http.StatusInternalServerError, message: "the registry failed: tell its operator", cause: err}
	errors.As(err, &answer)
	if answer.cause != nil && g.Logger != nil {
		g.Logger.ErrorContext(r.Context(), "request failed", "status", answer.status, "error", answer.cause.Error())
	}
	body, _ := json.Marshal(map[string][]string{"errors": {answer.message}}) // strings always encode
	set(w,
		"Content-Type", "application/json",
		"Content-Length", strconv.Itoa(len(body)),
		"Cache-Control", r.revalidate(),
		contentTypeOptions, noSniff)
	switch answer.status {
	case http.StatusServiceUnavailable:
		set(w, "Retry-After", "1") // clients sleep for as long as it says (checklist 26)
	case http.StatusUnauthorized:
		set(w, "Www-Authenticate", r.challenge())
	}
	w.WriteHeader(answer.status)
	r.answered(r.Request, answer.status, int64(len(body)))
	if r.Method != http.MethodHead {
		w.Write(body)
	}
}
