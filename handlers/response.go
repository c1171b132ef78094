package handlers

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// links are how a site writes the names of files in a document: prefix comes
// before each, and where not everybody may read the files, what authorises to
// fetch the one of that name in folder comes behind. The tag is what prefix adds
// to the document's validator beside what it adds to all.
type links struct{ prefix, folder, tag string }

// writeDocument answers with a document.
func (g *Registry) writeDocument(w http.ResponseWriter, r *request, d *wire.Document, l links) error {
	tag, expiry := d.Tag+g.tag+l.tag, int64(0)
	if r.private && len(d.Links) > 0 {
		expiry = g.Links.Expiry(time.Now())
		tag += "-" + strconv.FormatInt(expiry, 36)
	}
	etag, caching := `"`+tag+`"`, r.revalidate()
	if matches(r.Header.Get("If-None-Match"), etag) {
		set(w, "Etag", etag, "Cache-Control", caching, contentTypeOptions, noSniff)
		w.WriteHeader(http.StatusNotModified)
		r.answered(r.Request, http.StatusNotModified, 0)
		return nil
	}
	body := d.Head
	switch {
	case expiry != 0:
		var err error
		if body, err = g.sign(d, l, expiry); err != nil {
			return unavailable("the registry cannot sign links at the moment: try again in a moment", err)
		}
	case l.prefix != "" || len(d.Tail) > 0:
		b, _ := g.buffers.Get().(*[]byte)
		if b == nil {
			b = new([]byte)
		}
		defer g.buffers.Put(b)
		*b, _ = appendDocument((*b)[:0], d, l.prefix, nil) // which cannot fail
		body = *b
	}
	r.answered(r.Request, http.StatusOK, int64(len(body)))
	set(w,
		"Etag", etag,
		"Cache-Control", caching,
		"Content-Type", "application/json", // exactly (checklist 2, 63)
		"Content-Length", strconv.Itoa(len(body)),
		contentTypeOptions, noSniff)
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		w.Write(body) // a client that left is no error of ours
	}
	return nil
}

// appendDocument writes a document with prefix before each link, and behind it
// what sign appends for the file of that name; nil appends nothing.
func appendDocument(b []byte, d *wire.Document, prefix string, sign func(b []byte, name string) ([]byte, error)) ([]byte, error) {
	done := 0
	for _, link := range d.Links {
		b = append(b, d.Head[done:link.Start]...)
		b = append(b, prefix...)
		done = link.Start
		if sign == nil {
			continue
		}
		name := d.Head[link.Start:link.End]
		var err error
		if b, err = sign(append(b, name...), string(name)); err != nil {
			return b, err
		}
		done = link.End
	}
	b = append(b, d.Head[done:]...)
	return append(b, d.Tail...), nil
}

// revalidate is the Cache-Control of what may change.
func (r *request) revalidate() string {
	if r.private {
		return "private, no-cache"
	}
	return "no-cache"
}

// writeFile answers with a file of the tree.
func (g *Registry) writeFile(w http.ResponseWriter, r *request, f *index.File) error {
	return g.write(w, r, content{
		open: func() (io.ReadSeekCloser, error) {
			if r.Header.Get("Range") != "" {
				return r.snapshot.OpenRange(f)
			}
			return r.snapshot.Open(f)
		},
		size: f.Size, tag: f.Tag(), mediaType: f.ContentType, immutable: f.Immutable(),
	})
}

// content is the bytes of a file, and what an answer with them says of them.
type content struct {
	open      func() (io.ReadSeekCloser, error)
	size      int64 // zero: not known before it is open
	tag       string
	mediaType string
	immutable bool // the same under this name for ever
}

// write answers with a file. Headers are set once it is open: they must not
// reach an error's answer. What needs none of its bytes opens nothing.
func (g *Registry) write(w http.ResponseWriter, r *request, c content) error {
	etag := `"` + c.tag + `"`
	var file io.ReadSeeker
	if c.size > 0 && r.needsNoContent(etag) {
		file = &unopened{size: c.size}
	} else {
		opened, err := c.open()
		if errors.Is(err, index.ErrChanged) {
			g.changed()
			return replaced
		}
		if err != nil {
			return unavailable("the file cannot be read at the moment: try again, and tell the registry's operator", err)
		}
		defer opened.Close()
		file = opened
	}
	caching := r.revalidate()
	switch {
	case c.immutable && r.private:
		caching = "private, max-age=31536000, immutable"
	case c.immutable:
		caching = "public, max-age=31536000, immutable"
	}
	set(w, "Etag", etag, "Cache-Control", caching, "Content-Type", c.mediaType, contentTypeOptions, noSniff)
	http.ServeContent(bodyWriter(w, r.Request), r.Request, "", time.Time{}, file)
	r.answered(r.Request, servedStatus(r.Request, w.Header()), servedBytes(w.Header()))
	return nil
}

// changed has a scan follow.
func (g *Registry) changed() {
	if g.Changed != nil {
		g.Changed()
	}
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

// Every answer has this header: browsers are not to take a file of the tree for
// something else than its media type says.
const (
	contentTypeOptions = "X-Content-Type-Options"
	noSniff            = "nosniff"
)

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

// replaced is the answer for a file that is not the one that was verified.
var replaced = unavailable("the file is just being replaced: try again in a moment", nil)

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
		"Cache-Control", r.revalidate(),
		contentTypeOptions, noSniff)
	switch answer.status {
	case http.StatusServiceUnavailable:
		set(w, "Retry-After", "1") // clients sleep whatever is asked (checklist 26)
	case http.StatusUnauthorized:
		set(w, "Www-Authenticate", r.challenge())
	}
	w.WriteHeader(answer.status)
	r.answered(r.Request, answer.status, int64(len(body)))
	if r.Method != http.MethodHead {
		w.Write(body)
	}
}
