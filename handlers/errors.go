package handlers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/publish"
	"github.com/caddy-terraform/caddy-terraform-registry/pull"
	"github.com/caddy-terraform/caddy-terraform-registry/pull/flight"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
)

// An answerError is an error as the client sees it: the status, and sentences that say
// what to do. It has several sentences only for the reasons why a file is not
// published. The cause is for the log.
type answerError struct {
	status   int
	messages []string
	cause    error
	allow    string // the methods of the path, for http.StatusMethodNotAllowed
}

func (e *answerError) Error() string { return strings.Join(e.messages, "; ") }

func (e *answerError) Unwrap() error { return e.cause }

func fail(status int, format string, args ...any) error {
	return &answerError{status: status, messages: []string{fmt.Sprintf(format, args...)}}
}

// unavailable returns the answer for a temporary failure.
func unavailable(message string, cause error) error {
	return &answerError{status: http.StatusServiceUnavailable, messages: []string{message}, cause: cause}
}

// methodNotAllowed returns the answer for a path that has other methods.
func methodNotAllowed(allow, message string) error {
	return &answerError{status: http.StatusMethodNotAllowed, messages: []string{message}, allow: allow}
}

var (
	errNotFound = fail(http.StatusNotFound, "there is nothing at this path: see the registry's discovery document")

	errStarting = unavailable("the registry is reading its files for the first time: try again in a moment", nil)

	// errPending is for a package in the tree that has not been read yet. A 404 would
	// send clients to another source, or stop them.
	errPending = unavailable("the registry is still reading this: try again in a moment", nil)

	// errStillFetching is for a package that an Upstream is still fetching.
	errStillFetching = unavailable("the registry is still fetching this: try again in a moment", nil)

	// errTooSlow is for a request that ended before its answer, by itself or at its
	// deadline.
	errTooSlow = unavailable("the request took too long: try again", nil)

	// errNoIfMatch is for a registry.hcl that would replace one that its sender may not
	// know.
	errNoIfMatch = fail(http.StatusPreconditionRequired, "there is a registry.hcl already: get it, change it, and send it with its ETag in `If-Match`")

	// errReplaced is for a file that was replaced after it was verified.
	errReplaced = unavailable("the file is being replaced: try again in a moment", nil)
)

// Status returns the status of the answer to an error of the registry, and a sentence
// for its body.
func Status(err error) (status int, message string) {
	answer := answerTo(err)
	return answer.status, answer.Error()
}

// Outage reports whether the status of the answer to an error is 503 because something fails. It
// is not while the registry still reads or fetches, while a file is being replaced, and if a
// request took too long. The cause is for the log. It is nil if it is logged elsewhere.
func Outage(err error) (cause error, ok bool) {
	answer := answerTo(err)
	if answer.status != http.StatusServiceUnavailable {
		return nil, false
	}
	for _, passing := range [...]error{errStarting, errPending, errStillFetching, errReplaced, errTooSlow} {
		if errors.Is(err, passing) {
			return nil, false
		}
	}
	return answer.cause, true
}

// answerTo returns the answer to an error. It tells clients only what is meant for
// them.
func answerTo(err error) *answerError {
	answer := &answerError{status: http.StatusInternalServerError, messages: []string{"the registry failed: tell its operator"}, cause: err}
	errors.As(err, &answer)
	return answer
}

// linksUnsigned returns the answer for a failure to sign links.
func linksUnsigned(err error) error {
	return unavailable("the registry cannot sign links at the moment: try again in a moment", err)
}

// linkRefused returns the answer to an invalid link, by the error of access.Links.
func linkRefused(err error) error {
	switch {
	case errors.Is(err, access.ErrNoLinkKeys):
		return unavailable("links cannot be checked at the moment: try again in a moment", nil)
	case errors.Is(err, access.ErrLinkExpired):
		return fail(http.StatusForbidden, "this link has expired: run the command again to be given a new one")
	}
	return fail(http.StatusForbidden, "this link is not one of this registry's for this file: run the command again to be given one")
}

// versionNotFetched returns the answer for a version that an Upstream did not fetch.
func versionNotFetched(a address.Address, version string, err error) error {
	return notFetched(a.String()+" "+version, err)
}

// versionFailed returns the answer for a version that r does not get, by the error of
// Offers.
func (g *Registry) versionFailed(r *request, err error) error {
	t, a := &r.target, r.target.Address
	known := r.inTree()
	if known {
		a = *r.address
	}
	switch {
	case errors.Is(err, pull.ErrNotOffered):
		return g.versionNotFound(nil, r, known)
	case errors.Is(err, pull.ErrNoPackage):
		return fail(http.StatusNotFound, "%s %s has no package for this platform", a, t.version)
	case errors.Is(err, pull.ErrNoneFetched):
		return fail(http.StatusNotFound, "%s %s has no package for %s that this registry may fetch", a, t.version, t.platform)
	case errors.Is(err, pull.ErrNotSigned):
		return fail(http.StatusNotFound, "%s %s is not signed, so that only the network mirror offers it", a, t.version)
	case t.IsModule():
		return moduleNotFetched(a, t.version, err)
	}
	return versionNotFetched(a, t.version, err)
}

// listFailed returns the answer for a list that r does not get, by the error of Offers.
func (g *Registry) listFailed(w http.ResponseWriter, r *request, err error) error {
	a := r.target.Address
	switch {
	case errors.Is(err, pull.ErrNotOffered):
		return g.listNotFound(w, r)
	case errors.Is(err, pull.ErrNoneLeft):
		return fail(http.StatusNotFound, "this registry has no version of %s, and those that its origin lists are withdrawn here or too young", a)
	case errors.Is(err, pull.ErrNoneListed):
		return fail(http.StatusNotFound, "this registry has no version of %s, and its origin lists none that clients accept", a)
	case !errors.Is(err, upstream.ErrNotFound):
		return upstreamFailed(err)
	case r.Kind == KindMirrorIndex:
		return fail(http.StatusNotFound, "this mirror has no provider %s, nor has its registry", a)
	case a.IsModule():
		return fail(http.StatusNotFound, "this registry has no module %s, nor has its origin", a)
	}
	return fail(http.StatusNotFound, "this registry has no provider %s, nor has its origin", a)
}

// moduleNotFetched is versionNotFetched for a module. If the failure will last, the
// status is 422: clients show the text of a 4xx, but only the status of a request that
// they repeat (checklist 27, 86).
func moduleNotFetched(a address.Address, version string, failure error) error {
	err := versionNotFetched(a, version, failure)
	if status, message := Status(err); status == http.StatusBadGateway && !errors.Is(failure, upstream.ErrUnavailable) {
		return fail(http.StatusUnprocessableEntity, "%s", message)
	}
	return err
}

// notFetched returns the answer for a package that an Upstream did not fetch. It gives
// the reason that is known from the origin's list or the operator's configuration.
func notFetched(what string, err error) error {
	for _, absent := range [...]struct {
		kind   error
		status int
		text   string
	}{
		{pull.ErrTooYoung, http.StatusNotFound, "it was published too recently to be mirrored: try again later"},
		{pull.ErrWithdrawn, http.StatusGone, "the version is withdrawn: use another one"},
		{pull.ErrExcluded, http.StatusNotFound, "its configuration excludes it from what is fetched"},
		{pull.ErrNotMirrored, http.StatusNotFound, "does not fetch it from its origin"},
		{pull.ErrUnlisted, http.StatusNotFound, "its origin does not list it"},
		{upstream.ErrNotFound, http.StatusNotFound, "neither has its origin: see which versions and platforms there are"},
	} {
		if errors.Is(err, absent.kind) {
			return fail(absent.status, "this registry has no %s, and %s", what, absent.text)
		}
	}
	return upstreamFailed(err)
}

// upstreamFailed returns the answer if an origin failed, or the tree could not store
// the files. The error of an Upstream names only hosts and statuses.
func upstreamFailed(err error) error {
	status := http.StatusBadGateway
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return errTooSlow
	case errors.Is(err, pull.ErrNotYet):
		return errPending
	case errors.Is(err, pull.ErrUnfinished):
		return errStillFetching
	case errors.Is(err, flight.ErrPanicked):
		return err
	case errors.Is(err, pull.ErrOtherIssuer):
		return unavailable("what this key has signed cannot be fetched from the origin at the moment: run the command again", nil)
	case errors.Is(err, upstream.ErrBusy):
		return unavailable("too many requests are waiting for the origin: try again in a moment", nil)
	case errors.Is(err, tree.ErrChanged): // the next snapshot need not end it
		return unavailable(errReplaced.Error(), nil)
	case errors.Is(err, pull.ErrUnread):
		return unavailable("the mirror cannot read its files at the moment: try again in a moment, and tell its operator if it goes on", nil)
	case errors.Is(err, pull.ErrNotOnRecord):
		return unavailable("the package is not in the transparency log of this registry yet, which it must be: try again in a moment, and tell the registry's operator if it goes on", nil)
	case errors.Is(err, tree.ErrDiskFull), errors.Is(err, tree.ErrNotWritable):
		// The Upstream logs it once, rather than once a request.
		return unavailable("the mirror cannot store what it fetches: tell its operator", nil)
	case errors.Is(err, upstream.ErrTimeout):
		status = http.StatusGatewayTimeout
	}
	return fail(status, "the mirror could not fetch it: %v", err)
}

// publishFailed returns the answer for a file that is not published, by the error of a
// Publisher. The Publisher logs why nothing can be published.
func publishFailed(err error) error {
	for _, refused := range [...]struct {
		kind   error
		status int
	}{
		{publish.ErrRefused, http.StatusUnprocessableEntity},
		{publish.ErrConflict, http.StatusConflict},
		{publish.ErrChanged, http.StatusPreconditionFailed},
		{publish.ErrTooLarge, http.StatusRequestEntityTooLarge},
		{publish.ErrNoRoom, http.StatusInsufficientStorage},
		{publish.ErrInterrupted, http.StatusBadRequest},
	} {
		if !errors.Is(err, refused.kind) {
			continue
		}
		var refusal *publish.Refusal
		if errors.As(err, &refusal) && len(refusal.Reasons) > 0 {
			return &answerError{status: refused.status, messages: refusal.Reasons}
		}
		return fail(refused.status, "%v", refused.kind)
	}
	switch {
	case errors.Is(err, publish.ErrNothing):
		return fail(http.StatusNotFound, "nothing is published or staged of this version")
	case errors.Is(err, tree.ErrDiskFull):
		return &answerError{status: http.StatusInsufficientStorage, messages: []string{"the registry's disk is full: tell its operator"}, cause: err}
	case errors.Is(err, tree.ErrStore):
		return unavailable("the registry's object store failed: send the file again in a moment", err)
	case errors.Is(err, tree.ErrReserved):
		return unavailable("another file of this version is being written: send the file again in a moment", err)
	case errors.Is(err, tree.ErrNotWritable):
		return unavailable("the registry cannot write to its tree: tell its operator", err)
	case errors.Is(err, publish.ErrUnavailable):
		return unavailable("nothing can be published at the moment: try again in a moment", nil)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return errTooSlow
	}
	return err
}

// writeError answers with an error. Module clients print the body as it is, so it has
// one line (checklist 86).
func (g *Registry) writeError(w http.ResponseWriter, r *request, err error) {
	answer := answerTo(err)
	if answer.cause != nil && g.Logger != nil && !abandoned(r, answer) {
		g.Logger.ErrorContext(r.Context(), "request failed", "status", answer.status, "error", answer.cause.Error())
	}
	body := encodeErrors(answer, r.Method == http.MethodPut && r.fromArtifactoryClient())
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		body = append(body, '\n') // curl prints the body
	}
	switch answer.status {
	case http.StatusMethodNotAllowed:
		set(w, "Allow", answer.allow)
	case http.StatusServiceUnavailable:
		set(w, "Retry-After", "1") // clients sleep for as long (checklist 26)
	case http.StatusUnauthorized:
		set(w, "Www-Authenticate", r.challenge())
	}
	r.write(w, answer.status, Content{Type: jsonType, Body: body, Caching: r.revalidate()})
}

// abandoned reports whether something only seems to fail because the client has left: the errors of
// storage do not always say so.
func abandoned(r *request, answer *answerError) bool {
	passing := answer.status == http.StatusServiceUnavailable || errors.Is(answer.cause, context.Canceled)
	return passing && errors.Is(r.Context().Err(), context.Canceled)
}

// encodeErrors returns the document of an error. Artifactory's form has the status
// beside each message, because its clients show both to their users.
func encodeErrors(answer *answerError, artifactory bool) []byte {
	if !artifactory {
		body, _ := json.Marshal(map[string][]string{"errors": answer.messages}) // strings always encode
		return body
	}
	type message struct {
		Status  int    `json:"status"`
		Message string `json:"message"`
	}
	list := make([]message, len(answer.messages))
	for i, text := range answer.messages {
		list[i] = message{answer.status, text}
	}
	body, _ := json.Marshal(map[string][]message{"errors": list}) // numbers and strings always encode, too
	return body
}
