package handlers

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
)

// writeDocument answers with a document, prefix before each link in it.
func (g *Registry) writeDocument(w http.ResponseWriter, r *request, d *index.Document, prefix string) error {
	etag := `"` + d.Tag + g.tag + `"`
	if matches(r.Header.Get("If-None-Match"), etag) {
		set(w, "Etag", etag, "Cache-Control", "no-cache")
		w.WriteHeader(http.StatusNotModified)
		r.answered(r.Request, http.StatusNotModified, 0)
		return nil
	}
	size := d.Size() + len(d.Links)*len(prefix)
	r.answered(r.Request, http.StatusOK, int64(size))
	set(w,
		"Etag", etag,
		"Cache-Control", "no-cache",
		"Content-Type", "application/json", // exactly (checklist 2, 63)
		"Content-Length", strconv.Itoa(size))
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return nil
	}
	if prefix == "" && len(d.Tail) == 0 {
		w.Write(d.Head) // a client that left is no error of ours
		return nil
	}
	b, _ := g.buffers.Get().(*bytes.Buffer)
	if b == nil {
		b = new(bytes.Buffer)
	}
	b.Reset()
	done := 0
	for _, link := range d.Links {
		b.Write(d.Head[done:link.Start])
		b.WriteString(prefix)
		done = link.Start
	}
	b.Write(d.Head[done:])
	b.Write(d.Tail)
	w.Write(b.Bytes())
	g.buffers.Put(b)
	return nil
}

// writeFile answers with a file. Headers are set once the file is open: they
// must not reach an error's answer.
func (g *Registry) writeFile(w http.ResponseWriter, r *request, f *index.File) error {
	content, err := r.snapshot.Open(f)
	if errors.Is(err, index.ErrChanged) {
		if g.Changed != nil {
			g.Changed()
		}
		return unavailable("the file is just being replaced: try again in a moment", nil)
	}
	if err != nil {
		return unavailable("the file cannot be read at the moment: try again, and tell the registry's operator", err)
	}
	defer content.Close()
	caching := "no-cache"
	if f.Immutable() {
		caching = "public, max-age=31536000, immutable"
	}
	set(w, "Etag", `"`+f.Tag()+`"`, "Cache-Control", caching, "Content-Type", f.ContentType)
	http.ServeContent(w, r.Request, "", time.Time{}, content)
	r.answered(r.Request, servedStatus(r.Request, w.Header()), servedBytes(w.Header()))
	return nil
}

// servedStatus reads from its header what http.ServeContent has answered: a
// writer around w that notes it would cost every download.
func servedStatus(r *http.Request, h http.Header) int {
	switch {
	case h.Get("Etag") == "" && r.Header.Get("Range") == "": // taken back: it failed
		return http.StatusInternalServerError
	case h.Get("Etag") == "":
		return http.StatusRequestedRangeNotSatisfiable
	case h.Get("Content-Type") == "":
		return http.StatusNotModified
	case h.Get("Content-Length") == "":
		return http.StatusPreconditionFailed
	case h.Get("Content-Range") != "" || strings.HasPrefix(h.Get("Content-Type"), "multipart/byteranges"):
		return http.StatusPartialContent
	}
	return http.StatusOK
}

func servedBytes(h http.Header) int64 {
	n, _ := strconv.ParseInt(h.Get("Content-Length"), 10, 64) // none is zero
	return n
}

// set sets header fields, given as names in their canonical form and values in
// turn: in one allocation, where Header.Set has one for each.
func set(w http.ResponseWriter, fields ...string) {
	h := w.Header()
	for i := 0; i < len(fields); i += 2 {
		h[fields[i]] = fields[i+1 : i+2 : i+2]
	}
}

// matches tells whether an If-None-Match header names etag, compared weakly as
// RFC 9110 §13.1.2 wants it.
func matches(header, etag string) bool {
	for header != "" {
		var candidate string
		candidate, header, _ = strings.Cut(header, ",")
		candidate = strings.TrimPrefix(strings.TrimSpace(candidate), "W/")
		if candidate == etag || candidate == "*" {
			return true
		}
	}
	return false
}

// shortHash tells configurations apart in validators.
func shortHash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return base64.RawURLEncoding.EncodeToString(sum[:6])
}

// An answerError is a request that gets no document: its status, one sentence
// for the client that says what to do, and what the log should know.
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

var notFound = fail(http.StatusNotFound, "there is nothing at this path: see the registry's discovery document")

// pending is the answer for what lies in the tree and has not been read yet. A
// 404 would send clients elsewhere, or end their work.
var pending = unavailable("the registry is still reading this: try again in a moment", nil)

// unavailable is a failure that passes.
func unavailable(message string, cause error) error {
	return &answerError{status: http.StatusServiceUnavailable, message: message, cause: cause}
}

// writeError is the one place where errors become answers. Module clients print
// the body as it is, so it is one line (checklist 86).
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
		"Cache-Control", "no-cache")
	if answer.status == http.StatusServiceUnavailable {
		set(w, "Retry-After", "1") // clients sleep whatever is asked (checklist 26)
	}
	w.WriteHeader(answer.status)
	r.answered(r.Request, answer.status, int64(len(body)))
	if r.Method != http.MethodHead {
		w.Write(body)
	}
}
