package handlers

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/publish"
)

// uploadStall is how long a client may send nothing. There is no limit for a whole
// file: it may be large, and the line slow.
const uploadStall = time.Minute

// unaskedBody is how long the server receives a body that it has not asked for, after
// it has answered.
const unaskedBody = time.Second / 2

// An uploadBody is the body of a request. It returns an error if the client stalls, and
// it limits how long the server waits for a body that the handler does not read.
//
// If a body is not read, net/http reads a quarter of a megabyte of it before it
// answers. If that is all of the body, it keeps the connection. Otherwise it reads
// nothing, answers, and closes the connection half a second later, so that the client
// can receive the answer. A client that looks for the answer only after it has sent the
// body therefore sees the answer only for a small body. A client that looks for it
// while sending, such as curl and GoReleaser, always sees it.
//
// A client that waits for 100 Continue is answered at once if the answer closes the
// connection. net/http closes it by itself only if no handler has wrapped the body.
// Caddy's server wraps it, and net/http would otherwise read a body that the client
// does not send.
type uploadBody struct {
	body       io.Reader
	header     http.Header // the header of the answer
	controller *http.ResponseController
	closes     bool // the answer closes the connection, unless the body is read
	renewed    time.Time
	until      time.Time // when all of it must be there; zero: there is no such limit
}

func newUploadBody(w http.ResponseWriter, r *http.Request) *uploadBody {
	b := &uploadBody{body: r.Body, header: w.Header(), controller: http.NewResponseController(w)}
	if r.ContentLength == 0 {
		return b
	}
	b.renew()
	if r.ProtoMajor == 1 && strings.EqualFold(r.Header.Get("Expect"), "100-continue") {
		b.closes = true
		b.header.Set("Connection", "close")
	}
	return b
}

// Read implements io.Reader.
func (b *uploadBody) Read(p []byte) (int, error) {
	if b.closes {
		b.closes = false
		b.header.Del("Connection")
	}
	b.renew()
	n, err := b.body.Read(p)
	if err != nil {
		// From now on the server reads ahead to notice that the client has left, for as
		// long as it takes to publish the file.
		b.setDeadline(time.Time{})
	}
	return n, err
}

// release is called when the answer is known. The server then sends the answer without
// waiting for a body that the client has not been asked for, and closes the connection
// a moment later. Clients that have not waited are still sending, and an immediate
// close would reset their connection.
func (b *uploadBody) release() {
	if b.closes {
		b.setDeadline(time.Now().Add(unaskedBody))
	}
}

// renew starts the client's time again. With HTTP/2 a new deadline is a message to the
// goroutine of the connection, so renew sets at most one a second.
func (b *uploadBody) renew() {
	if now := time.Now(); now.Sub(b.renewed) >= time.Second {
		b.renewed = now
		deadline := now.Add(uploadStall)
		if !b.until.IsZero() && b.until.Before(deadline) {
			deadline = b.until
		}
		b.setDeadline(deadline)
	}
}

// setDeadline sets the deadline of the connection or stream, if it supports one.
func (b *uploadBody) setDeadline(t time.Time) { _ = b.controller.SetReadDeadline(t) }

// A fileBody is the body of a request that has a file. If the server in front limits
// bodies, as Caddy's request_body does, a longer one has not ended early, which would have
// its client send it again.
type fileBody struct{ io.Reader }

// Read implements io.Reader.
func (b fileBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if limit, limited := serverLimit(err); limited {
		err = publish.TooLarge(limit)
	}
	return n, err
}

// serverLimit returns the size that the server in front allows a body, if reading the body
// failed for that.
func serverLimit(err error) (limit int64, limited bool) {
	var tooLarge *http.MaxBytesError
	if !errors.As(err, &tooLarge) {
		return 0, false
	}
	return tooLarge.Limit, true
}
