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
// there. A HEAD is answered when a GET would be.
func (r *request) follows() bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
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
	if r.Method == http.MethodHead {
		r.answered(r.Request, http.StatusOK, 0)
		return
	}
	to := &follower{to: w, controller: http.NewResponseController(w)}
	sent, verified, err := offers.Follow(r.Context(), f, to)
	if err != nil {
		r.answered(r.Request, http.StatusOK, sent)
		if to.left || r.Context().Err() != nil { // an error of the origin may look like one of the client
			return
		}
		panic(http.ErrAbortHandler) // the Upstream logs it once, rather than once a follower
	}
	rest, err := sendRest(w, r, offers, verified, sent)
	r.answered(r.Request, http.StatusOK, sent+rest)
	switch {
	case err == nil:
		g.downloaded(r, f)
	case !leftBy(r.Request, err):
		g.breakOff(r, f, err)
	}
}

// sendRest sends the end of a package that has been verified.
func sendRest(w http.ResponseWriter, r *request, offers fileOffers, f *index.File, from int64) (int64, error) {
	opened, err := offers.Open(f)
	if err != nil {
		return 0, err
	}
	defer opened.Close()
	if _, err := opened.Seek(from, io.SeekStart); err != nil {
		return 0, err
	}
	body := bodyWriter{ResponseWriter: w, proto: r.ProtoMajor, unchanged: opened.Unchanged}
	return body.ReadFrom(&io.LimitedReader{R: opened.ReadSeekCloser, N: f.Size - from})
}

// A follower is the client of a package that grows.
type follower struct {
	to         io.Writer
	controller *http.ResponseController
	left       bool // it cannot be written to any more
}

// Send implements pull.Follower. It has a buffer only as long as there is something to send:
// most followers wait for an origin most of the time.
func (f *follower) Send(part io.Reader) (int64, error) {
	buffer := bodyBuffers.Get().(*[bodySize]byte)
	defer bodyBuffers.Put(buffer)
	return io.CopyBuffer(struct{ io.Writer }{f}, part, buffer[:])
}

func (f *follower) Write(p []byte) (int, error) {
	n, err := f.to.Write(p)
	f.left = f.left || err != nil
	return n, err
}

// FlushError implements pull.Follower.
func (f *follower) FlushError() error {
	err := f.controller.Flush()
	if errors.Is(err, http.ErrNotSupported) {
		return nil
	}
	f.left = f.left || err != nil
	return err
}
