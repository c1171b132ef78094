package handlers

import (
	"errors"
	"io"
	"net/http"
	"strconv"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
)

// follows reports whether the client of a request may get a package while it arrives from its
// origin. A range, or what a client has already, can only be compared with a package that is
// there.
func (r *request) follows() bool {
	if r.Method != http.MethodGet {
		return false
	}
	for _, field := range [...]string{"Range", "If-Range", "If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since"} {
		if r.Header.Get(field) != "" {
			return false
		}
	}
	return true
}

// writeGrowing answers with a package that is still being received. Its end follows when it
// has been verified. Until then nothing may be kept of it: neither by caches, nor by clients
// that would ask for the rest later. If it turns out to be wrong, the answer is broken off.
func (g *Registry) writeGrowing(w http.ResponseWriter, r *request, offers fileOffers, f *index.File) {
	set(w, "Content-Type", f.ContentType, "Content-Length", strconv.FormatInt(f.Size, 10), "Cache-Control", "no-store",
		"Accept-Ranges", "none", contentTypeOptions, noSniff)
	w.WriteHeader(http.StatusOK)
	defer r.answered(r.Request, http.StatusOK, f.Size)
	if err := g.sendGrowing(w, r, offers, f); err != nil {
		g.breakOff(r, f, err)
	}
}

// sendGrowing sends a package that grows. It returns no error if the client has left.
func (g *Registry) sendGrowing(w http.ResponseWriter, r *request, offers fileOffers, f *index.File) error {
	buffer := bodyBuffers.Get().(*[bodySize]byte)
	defer bodyBuffers.Put(buffer)
	to := &follower{Writer: w, controller: http.NewResponseController(w)}
	sent, opened, err := offers.Follow(r.Context(), f, to, buffer[:])
	switch {
	case to.left || r.Context().Err() != nil: // an error of the origin may look like one of the client
		return nil
	case err != nil:
		return err
	}
	defer opened.Close()
	if _, err := opened.Seek(sent, io.SeekStart); err != nil {
		return err
	}
	rest := bodyWriter{ResponseWriter: w, proto: r.ProtoMajor, unchanged: opened.Unchanged}
	if _, err = rest.ReadFrom(&io.LimitedReader{R: opened.ReadSeekCloser, N: f.Size - sent}); err != nil && leftBy(r.Request, err) {
		return nil
	}
	return err
}

// A follower is the client of a package that grows.
type follower struct {
	io.Writer
	controller *http.ResponseController
	left       bool // it cannot be written to any more
}

func (f *follower) Write(p []byte) (int, error) {
	n, err := f.Writer.Write(p)
	f.left = f.left || err != nil
	return n, err
}

// FlushError implements fill.Follower.
func (f *follower) FlushError() error {
	err := f.controller.Flush()
	if errors.Is(err, http.ErrNotSupported) {
		return nil
	}
	f.left = f.left || err != nil
	return err
}
