package handlers

import (
	"net/http"
	"strconv"
	"strings"
)

// A Content is the body of an answer that is in memory, with the header that describes it:
// a document, an error or a page.
type Content struct {
	Type string
	Body []byte

	// Caching is the Cache-Control.
	Caching string

	// ETag is the validator, in quotes; empty if there is none.
	ETag string
}

// NotModified answers with 304 and returns true if the client has the content: if
// If-None-Match names its ETag, or another one by which the same content is known. It needs
// no Body.
func (c *Content) NotModified(w http.ResponseWriter, r *http.Request, others ...string) bool {
	known := r.Header["If-None-Match"]
	if len(known) == 0 || !eTagMatches(known[0], c.ETag, others...) {
		return false
	}
	set(w, "Etag", c.ETag, "Cache-Control", c.Caching, contentTypeOptions, noSniff)
	w.WriteHeader(http.StatusNotModified)
	return true
}

// Write answers with the content, and returns how many bytes of it: none for a HEAD.
func (c *Content) Write(w http.ResponseWriter, r *http.Request, status int) int {
	fields := [...]string{
		"Content-Type", c.Type,
		"Content-Length", strconv.Itoa(len(c.Body)),
		"Cache-Control", c.Caching,
		contentTypeOptions, noSniff,
		"Etag", c.ETag,
	}
	n := len(fields)
	if c.ETag == "" {
		n -= 2
	}
	set(w, fields[:n]...)
	w.WriteHeader(status)
	if r.Method == http.MethodHead {
		return 0
	}
	w.Write(c.Body) // that a client has left is not an error here
	return len(c.Body)
}

// Redirect answers without content: it is at another URL.
func (c *Content) Redirect(w http.ResponseWriter, status int, location string) {
	set(w, "Location", location, "Cache-Control", c.Caching, contentTypeOptions, noSniff)
	w.WriteHeader(status)
}

// eTagMatches reports whether an If-None-Match header names an ETag or one of the others,
// compared weakly as in RFC 9110 §13.1.2: a proxy that compresses makes a validator weak.
func eTagMatches(header, etag string, others ...string) bool {
	for header != "" {
		var candidate string
		candidate, header, _ = strings.Cut(header, ",")
		candidate = strings.TrimPrefix(strings.TrimSpace(candidate), "W/")
		if candidate == etag || candidate == "*" {
			return true
		}
		for _, other := range others {
			if candidate == other {
				return true
			}
		}
	}
	return false
}

// Every answer has this header, so that browsers do not take a file of the tree
// for another media type.
const (
	contentTypeOptions = "X-Content-Type-Options"
	noSniff            = "nosniff"
)

// set sets header fields, given as canonical names and values in turn: with one
// allocation for all values, where Header.Set has one for each. The fields stay on the
// stack of the caller.
func set(w http.ResponseWriter, fields ...string) {
	h, values := w.Header(), make([]string, len(fields)/2)
	for i := range values {
		values[i] = fields[2*i+1]
		h[fields[2*i]] = values[i : i+1 : i+1]
	}
}
