package handlers

import (
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// writeFile answers with a file that is offered.
func (g *Registry) writeFile(w http.ResponseWriter, r *request, offers fileOffers, f *index.File) error {
	// With If-Range, the client says itself of which file it has the beginning.
	if r.Header.Get("Range") != "" && r.Header.Get("If-Range") == "" && offers.Misled(f) {
		r.Header.Del("Range")
		r.isWhole = true // also if another snapshot answers
	}
	switch {
	case offers.Grows(f):
		g.writeGrowing(w, r, offers, f)
		return nil
	case !r.isWhole && g.redirects(r, f) && offers.CanRedirect(f):
		err := g.redirect(w, r, f)
		if !errors.Is(err, tree.ErrEncoded) {
			return err
		}
	}
	return g.writeOpened(w, r, f, func() (*index.OpenFile, error) {
		if r.Header.Get("Range") != "" {
			return offers.OpenRange(f)
		}
		return offers.Open(f)
	})
}

// writeOpened answers with a file. It calls open if it needs the content. The header is
// set once the file is open, since it must not be part of an error's answer. A later
// failure breaks the answer off.
func (g *Registry) writeOpened(w http.ResponseWriter, r *request, f *index.File, open func() (*index.OpenFile, error)) error {
	etag := `"` + f.Tag() + `"`
	var file io.ReadSeeker
	body := bodyWriter{ResponseWriter: w, proto: r.ProtoMajor}
	if r.TLS != nil { // without TLS, the kernel sends the file
		body.mapped = &g.mapped
	}
	if f.Size > 0 && r.needsNoContent(etag) {
		file = io.NewSectionReader(unopened{}, 0, f.Size)
	} else {
		opened, err := open()
		if errors.Is(err, tree.ErrChanged) {
			return errReplaced
		}
		if err != nil {
			return unavailable("the file cannot be read at the moment: try again, and tell the registry's operator", err)
		}
		defer opened.Close()
		file, body.unchanged = opened.ReadSeekCloser, opened.Unchanged
		if r.Kind == KindModuleArchive {
			file, body.unchanged = summed(r, &body, f, opened)
		}
	}
	caching := r.revalidate()
	if f.Immutable() {
		caching = r.keptFor("max-age=31536000, immutable")
	}
	set(w, "Etag", etag, "Cache-Control", caching, "Content-Type", f.ContentType, contentTypeOptions, noSniff)
	defer func() { r.answered(r.Request, body.status, body.length) }()
	http.ServeContent(&body, r.Request, "", time.Time{}, file)
	switch {
	case body.failed == nil && body.hasEnd():
		g.downloaded(r, f)
	case body.failed != nil && !leftBy(r.Request, body.failed):
		g.breakOff(r, f, body.failed)
	}
	return nil
}

// breakOff ends an answer whose header has been sent, in a way that every client takes
// for a failure. If the handler just returned, HTTP/2 and HTTP/3 would end a short body
// like a complete one.
func (g *Registry) breakOff(r *request, f *index.File, cause error) {
	if errors.Is(cause, tree.ErrChanged) {
		g.changed()
	}
	if g.Logger != nil {
		g.Logger.WarnContext(r.Context(), "a download was broken off", "file", f.Path(), "error", cause.Error())
	}
	panic(http.ErrAbortHandler)
}

// needsNoContent reports whether r is answered without a byte of the file: with 304
// because the client has it, or because the method is HEAD. The answer to a HEAD with a
// range, for example, needs only the size.
func (r *request) needsNoContent(etag string) bool {
	if r.Method == http.MethodHead {
		return true
	}
	// Lists of tags are left to http.ServeContent, and If-Match comes first.
	none := r.Header.Get("If-None-Match")
	return r.Header.Get("If-Match") == "" && (none == etag || none == "W/"+etag || none == "*")
}

// unopened stands for the content of a file if only its size is needed.
type unopened struct{}

var errUnopened = errors.New("the file was not opened")

// ReadAt is not called. If it were, the answer would end before its length.
func (unopened) ReadAt([]byte, int64) (int, error) { return 0, errUnopened }
